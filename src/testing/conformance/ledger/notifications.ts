import type { Ledger } from '../../../ports/ledger.js'
import type { Settlement } from '../../../ports/settlement.js'
import { holds, same, show } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  commitOne,
  complete,
  control,
  deadLetter,
  type LedgerBench,
  listen,
  notifyGate,
  retry,
  wakeUps,
} from './bench.js'

/** A notification arrives in real time, soon. */
async function hears(bench: LedgerBench, isHeard: () => boolean, claim: string, heard: unknown): Promise<void> {
  await bench.time.eventually(isHeard)
  holds(isHeard(), `${claim} (received: ${show(heard)})`)
}

export const notificationClauses = clausesOn<LedgerBench>()({
  'ledger: wakes workers when an item is ready': {
    law: 'onReady names the queue when an enqueue makes an item ready.',
    hint: 'whether a commit that enqueues wakes the listeners.',
    async run(bench) {
      const { heard, leave } = wakeUps(bench.ledger)
      await bench.enqueueItems(['a'])
      await hears(
        bench,
        () => heard.some(({ queue }) => queue === bench.queue),
        'the queue of the item is named',
        heard,
      )
      leave()
      leave()
    },
  },
  'ledger: wake-ups carry the due time': {
    law: 'For an item that is ready later, the wake-up says when: a retry in 100 ms does not wait for a poll.',
    hint: 'whether enqueues and retries with a delay pass their due time on.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const { heard } = wakeUps(ledger)
      const due = (ms: number) => heard.some(({ dueAt }) => dueAt === time.clock.now() + ms)
      await bench.enqueueItems(['a'], {}, { delayMs: 700 })
      await hears(bench, () => due(700), 'a wake-up carries the due time of a delayed enqueue', heard)
      await time.pass(700)
      const [a] = await bench.take(['a'])
      await bench.apply('a retry', [retry(a, 300)])
      await hears(bench, () => due(300), 'a wake-up carries the due time of a retry', heard)
    },
  },
  'ledger: wakes workers for children, retries and freed gates': {
    law: 'Whatever a settlement makes ready wakes workers: a child, a retry without delay, a freed gate.',
    hint: 'whether only enqueues wake the listeners.',
    async run(bench) {
      const { ledger, queue } = bench
      const { heard } = wakeUps(ledger)
      const heardAfter = async (what: string, batch: readonly Settlement[]) => {
        heard.length = 0
        await bench.apply(what, batch)
        await hears(bench, () => heard.some(({ queue: woken }) => woken === queue), `${what} wakes workers`, heard)
      }
      const [root] = await bench.enqueueAndTake(['root'])
      const plan = [...bench.gated('gate', ['child']).effects, bench.enqueueEffect('child')]
      await heardAfter('a child', [complete(root, undefined, plan)])
      const [child] = await bench.take(['child'])
      await heardAfter('a retry without delay', [retry(child, 0)])
      const [third] = await bench.take(['child'])
      await heardAfter('a freed gate', [complete(third, '1', [notifyGate('gate', 'child')])])
    },
  },
  'ledger: a resume wakes workers': {
    law: 'resume wakes the listeners of the queue or type that was paused.',
    hint: 'whether resume notifies the listeners of the queues whose items it freed.',
    needs: ['holds'],
    async run(bench) {
      const { ledger, queue } = bench
      const { heard } = wakeUps(ledger)
      for (const [what, name] of [
        ['queue', queue],
        ['type', 't'],
      ] as const) {
        const id = `held by ${what}`
        await bench.apply('the pause', [control('pause', what, name)])
        await bench.apply('the enqueue', [bench.enqueue(id)])
        await ledger.claim({ queues: [{ queue, max: 5 }], leaseMs: 1000, worker: 'w1' })
        heard.length = 0
        await bench.apply('the resume', [control('resume', what, name)])
        await hears(
          bench,
          () => heard.some(({ queue: woken }) => woken === queue),
          `the resume of the ${what} wakes workers`,
          heard,
        )
        await bench.take([id])
      }
    },
  },
  'ledger: an inbox receives what it is sent': {
    law: '`notify` reaches the listeners of that inbox, in every process.',
    hint: 'how inboxes are named on the channel.',
    async run(bench) {
      const other = await bench.again()
      const mine = listen(bench.ledger, 'inbox-1')
      const theirs = listen(other, 'inbox-1')
      const send = (from: Ledger, ids: readonly string[]) =>
        bench.apply('the notify', [{ guard: { by: 'none' }, effects: [{ do: 'notify', inbox: 'inbox-1', ids }] }], from)
      // Each process sends once: a call waits for the subscriptions of its own process, and for no other's.
      await send(other, ['a'])
      await hears(bench, () => theirs.heard.ids.includes('a'), 'the inbox receives from its own process', theirs.heard)
      await send(bench.ledger, ['b', 'c'])
      await hears(bench, () => mine.heard.ids.includes('c'), 'the inbox receives in the same process', mine.heard)
      await hears(bench, () => theirs.heard.ids.includes('c'), 'the inbox receives in another process', theirs.heard)
      same([...new Set(theirs.heard.ids)].toSorted(), ['a', 'b', 'c'], 'what it received')
      mine.leave()
      mine.leave()
      await send(bench.ledger, ['d'])
      await hears(bench, () => theirs.heard.ids.includes('d'), 'the other listener still receives', theirs.heard)
      await bench.time.quiet()
      holds(!mine.heard.ids.includes('d'), 'a listener that left receives nothing more')
    },
  },
  'ledger: an inbox receives nothing that was not sent to it': {
    law: 'What concerns one inbox is sent to no other; the end of an item without a watcher is sent to no inbox.',
    hint: 'how inboxes are named on the channel, and whether ends are sent to recorded watchers only.',
    needs: ['own inboxes'],
    async run(bench) {
      const { ledger } = bench
      const mine = listen(ledger, 'inbox-1')
      const another = listen(ledger, 'inbox-10')
      const batch = [bench.enqueue('a', { waiter: 'inbox-1' }), bench.enqueue('unwatched')]
      await bench.apply('two enqueues', batch)
      const [a, unwatched] = await bench.take(['a', 'unwatched'])
      await bench.apply('the end of the unwatched item', [complete(unwatched)])
      await bench.apply('the end of the other', [complete(a)])
      const note = { do: 'notify', inbox: 'inbox-1', ids: ['x'] } as const
      await bench.apply('a notify', [{ guard: { by: 'none' }, effects: [note] }])
      await hears(bench, () => mine.heard.ids.includes('x'), 'the inbox receives what it is sent', mine.heard)
      await bench.time.quiet()
      same(mine.heard.ids.toSorted(), ['a', 'x'], 'items that the inbox received')
      same(another.heard, { ids: [], groups: [] }, 'what another inbox received')
    },
  },
  'ledger: the end of an item notifies the waiter in its envelope': {
    law: 'An item that carries a waiter notifies its inbox when it is completed or dead-lettered, without another registration.',
    hint: 'whether the waiter of the envelope is a recorded watcher.',
    async run(bench) {
      const { ledger } = bench
      const { heard } = listen(ledger, 'me')
      const [done, dead] = await bench.enqueueAndTake(['done', 'dead'], { waiter: 'me' })
      await bench.time.quiet()
      same(heard.ids, [], 'items received before any of them ended')
      await bench.apply('the ends', [complete(done), deadLetter(dead)])
      await hears(
        bench,
        () => heard.ids.includes('done') && heard.ids.includes('dead'),
        'both ends are received',
        heard,
      )
    },
  },
  'ledger: the close of a group notifies the waiter in the envelope of its root': {
    law: 'A closing group notifies recorded watchers: the waiter of an item waits for its group as well.',
    hint: 'whether the waiter of the root is recorded for the group.',
    async run(bench) {
      const { ledger } = bench
      const { heard } = listen(ledger, 'me')
      const [root] = await bench.enqueueAndTake(['root'], { groupId: 'g', waiter: 'me' })
      const child = bench.enqueue('child', { groupId: 'g' }).effects
      await bench.apply('the end of the root', [complete(root, undefined, child)])
      await bench.time.quiet()
      same(heard.groups, [], 'groups received while the child is open')
      const [found] = await bench.take(['child'])
      await bench.apply('the end of the child', [complete(found)])
      await hears(bench, () => heard.groups.includes('g'), 'the close of the group is received', heard)
    },
  },
  'ledger: a watcher registered later is notified too': {
    law: '`watch` records an inbox for items and groups: it is notified of their end, whichever process commits it.',
    hint: 'where watchers are recorded, and whether ends and closes read them.',
    async run(bench) {
      const { ledger } = bench
      const other = await bench.again()
      const { heard } = listen(ledger, 'late')
      await bench.enqueueItems(['a', 'b'], { groupId: 'g' })
      await ledger.watch('late', { itemIds: ['a', 'unknown'], groupIds: ['g'] })
      const [a, b] = await bench.take(['a', 'b'], { ledger: other })
      await bench.apply('the first end', [complete(a)], other)
      await hears(bench, () => heard.ids.includes('a'), 'the end of the watched item is received', heard)
      same(heard.groups, [], 'groups received while one is open')
      await bench.apply('the second end', [complete(b)], other)
      await hears(bench, () => heard.groups.includes('g'), 'the close of the watched group is received', heard)
    },
  },
  'ledger: a closing group reports whether it is watched': {
    law: '`watched` of a closed group is true if an inbox was registered for it, which tells an orphan from others.',
    hint: 'whether the close reads the watchers of the group before it forgets them.',
    async run(bench) {
      const { ledger } = bench
      const batch = [bench.enqueue('named', { waiter: 'me' }), bench.enqueue('later'), bench.enqueue('orphan')]
      await bench.apply('three enqueues', batch)
      await ledger.watch('me', { itemIds: [], groupIds: ['g-later'] })
      const taken = await bench.take(['named', 'later', 'orphan'])
      const watched = []
      for (const claimed of taken) {
        const result = await commitOne(ledger, complete(claimed))
        watched.push(result.kind === 'applied' ? result.closed.map((group) => group.watched === true) : result.kind)
      }
      same(watched, [[true], [true], [false]], '`watched` of three groups, two of which are watched')
    },
  },
  'ledger: a listener that throws does not affect the others': {
    law: 'A throwing listener neither fails the commit nor keeps other listeners from being called.',
    hint: 'whether each listener is called in its own try, after the commit.',
    async run(bench) {
      const { ledger } = bench
      const boom = () => {
        throw new Error('a listener of the conformance suite throws on purpose')
      }
      ledger.onReady(boom)
      ledger.onInbox('me', boom)
      const ready = wakeUps(ledger)
      const inbox = listen(ledger, 'me')
      await bench.enqueueItems(['a'], { waiter: 'me' })
      await hears(bench, () => ready.heard.length > 0, 'the other listener receives the wake-up', ready.heard)
      const [a] = await bench.take(['a'])
      await bench.apply('the end', [complete(a)])
      await hears(bench, () => inbox.heard.ids.includes('a'), 'the other listener receives the end', inbox.heard)
    },
  },
})
