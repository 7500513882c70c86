import type { Ledger } from '../../../ports/ledger.js'
import { holds, same, show } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  commitOne,
  enqueue,
  finish,
  gated,
  item,
  type LedgerBench,
  listen,
  nudges,
  park,
  push,
  retry,
  take,
  tell,
} from './bench.js'

/** Something is heard in real time, soon. */
async function hears(bench: LedgerBench, isHeard: () => boolean, claim: string, heard: unknown): Promise<void> {
  await bench.time.eventually(isHeard)
  holds(isHeard(), `${claim} (heard: ${show(heard)})`)
}

export const signalClauses = clausesOn<LedgerBench>()({
  'ledger: nudges when an item is ready': {
    law: 'onReady tells the queue when an enqueue makes an item ready.',
    look: 'whether a commit that pushes wakes the listeners.',
    async run(bench) {
      const { heard, leave } = nudges(bench.ledger)
      await applied(bench.ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
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
  'ledger: nudges carry the due time': {
    law: 'For an item that is ready later, the nudge tells when: a retry in 100 ms does not wait for a poll.',
    look: 'whether pushes and retries with a delay pass their due time on.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const { heard } = nudges(ledger)
      const due = (ms: number) => heard.some(({ dueAt }) => dueAt === time.clock.now() + ms)
      await applied(ledger, [enqueue(bench, item(bench, 'a'), { delayMs: 700 })], 'a delayed enqueue')
      await hears(bench, () => due(700), 'a nudge tells the due time of a delayed enqueue', heard)
      await time.pass(700)
      const [a] = await take(bench, ['a'])
      await applied(ledger, [retry(a, 300)], 'a retry')
      await hears(bench, () => due(300), 'a nudge tells the due time of a retry', heard)
    },
  },
  'ledger: nudges for children, retries and freed gates': {
    law: 'Whatever a settlement makes ready nudges: a child, a retry without delay, a freed gate.',
    look: 'whether only enqueues wake the listeners.',
    async run(bench) {
      const { ledger, queue } = bench
      const { heard } = nudges(ledger)
      const heardAfter = async (what: string, settlement: Parameters<typeof applied>[1]) => {
        heard.length = 0
        await applied(ledger, settlement, what)
        await hears(bench, () => heard.some((nudge) => nudge.queue === queue), `${what} nudges`, heard)
      }
      await applied(ledger, [enqueue(bench, item(bench, 'root'))], 'the enqueue')
      const [root] = await take(bench, ['root'])
      const plan = [...gated(bench, 'gate', ['child']).effects, push(bench, item(bench, 'child'))]
      await heardAfter('a child', [finish(root, undefined, plan)])
      const [child] = await take(bench, ['child'])
      await heardAfter('a retry without delay', [retry(child, 0)])
      const [third] = await take(bench, ['child'])
      await heardAfter('a freed gate', [finish(third, '1', [tell('gate', 'child')])])
    },
  },
  'ledger: a resume nudges': {
    law: 'resume wakes whoever waits for the queue or type that was paused.',
    look: 'whether resume tells the listeners of the queues whose items it freed.',
    needs: ['holds'],
    async run(bench) {
      const { ledger, queue } = bench
      const { heard } = nudges(ledger)
      for (const [what, name] of [
        ['queue', queue],
        ['type', 't'],
      ] as const) {
        const id = `held by ${what}`
        await applied(ledger, [{ guard: { by: 'none' }, effects: [{ do: 'pause', what, name }] }], 'the pause')
        await applied(ledger, [enqueue(bench, item(bench, id))], 'the enqueue')
        await ledger.claim({ from: [{ queue, max: 5 }], leaseMs: 1000, worker: 'w1' })
        heard.length = 0
        await applied(ledger, [{ guard: { by: 'none' }, effects: [{ do: 'resume', what, name }] }], 'the resume')
        await hears(
          bench,
          () => heard.some((nudge) => nudge.queue === queue),
          `the resume of the ${what} nudges`,
          heard,
        )
        await take(bench, [id])
      }
    },
  },
  'ledger: an inbox hears what it is sent': {
    law: '`notify` reaches the listeners of that inbox, in every process.',
    look: 'how inboxes are named on the channel.',
    async run(bench) {
      const other = await bench.again()
      const mine = listen(bench.ledger, 'inbox-1')
      const theirs = listen(other, 'inbox-1')
      const send = (from: Ledger, ids: readonly string[]) =>
        applied(from, [{ guard: { by: 'none' }, effects: [{ do: 'notify', to: 'inbox-1', ids }] }], 'the notify')
      // Each process speaks once: a call waits for the subscriptions of its own process, and for no other's.
      await send(other, ['a'])
      await hears(bench, () => theirs.heard.ids.includes('a'), 'the inbox hears its own process', theirs.heard)
      await send(bench.ledger, ['b', 'c'])
      await hears(bench, () => mine.heard.ids.includes('c'), 'the inbox hears in the same process', mine.heard)
      await hears(bench, () => theirs.heard.ids.includes('c'), 'the inbox hears in another process', theirs.heard)
      same([...new Set(theirs.heard.ids)].toSorted(), ['a', 'b', 'c'], 'what it heard')
      mine.leave()
      mine.leave()
      await send(bench.ledger, ['d'])
      await hears(bench, () => theirs.heard.ids.includes('d'), 'the other listener still hears', theirs.heard)
      await bench.time.quiet()
      holds(!mine.heard.ids.includes('d'), 'a listener that left hears nothing more')
    },
  },
  'ledger: an inbox hears nothing that was not sent to it': {
    law: 'What concerns one inbox is told to no other; an item that nobody waits for is told to nobody.',
    look: 'how inboxes are named on the channel, and whether ends are told to recorded watchers only.',
    needs: ['own inboxes'],
    async run(bench) {
      const { ledger } = bench
      const mine = listen(ledger, 'inbox-1')
      const another = listen(ledger, 'inbox-10')
      const batch = [enqueue(bench, item(bench, 'a', { waiter: 'inbox-1' })), enqueue(bench, item(bench, 'unwatched'))]
      await applied(ledger, batch, 'two enqueues')
      const [a, unwatched] = await take(bench, ['a', 'unwatched'])
      await applied(ledger, [finish(unwatched)], 'the end of the one that nobody waits for')
      await applied(ledger, [finish(a)], 'the end of the other')
      const note = { do: 'notify', to: 'inbox-1', ids: ['x'] } as const
      await applied(ledger, [{ guard: { by: 'none' }, effects: [note] }], 'a notify')
      await hears(bench, () => mine.heard.ids.includes('x'), 'the inbox hears what it is sent', mine.heard)
      await bench.time.quiet()
      same(mine.heard.ids.toSorted(), ['a', 'x'], 'items that the inbox heard of')
      same(another.heard, { ids: [], groups: [] }, 'what another inbox heard')
    },
  },
  'ledger: the waiter named in the envelope hears of the end': {
    law: 'An item that carries a waiter tells its inbox when it is finished or parked, without being asked again.',
    look: 'whether the waiter of the envelope is a recorded watcher.',
    async run(bench) {
      const { ledger } = bench
      const { heard } = listen(ledger, 'me')
      const both = ['done', 'dead'].map((id) => enqueue(bench, item(bench, id, { waiter: 'me' })))
      await applied(ledger, both, 'two enqueues')
      const [done, dead] = await take(bench, ['done', 'dead'])
      await bench.time.quiet()
      same(heard.ids, [], 'items heard of before any of them ended')
      await applied(ledger, [finish(done), park(dead)], 'the ends')
      await hears(bench, () => heard.ids.includes('done') && heard.ids.includes('dead'), 'both ends are heard', heard)
    },
  },
  'ledger: the waiter named in the envelope hears of the close of its group': {
    law: 'A closing group tells recorded watchers: the waiter of an item waits for its group as well.',
    look: 'whether the waiter of the root is recorded for the group.',
    async run(bench) {
      const { ledger } = bench
      const { heard } = listen(ledger, 'me')
      await applied(ledger, [enqueue(bench, item(bench, 'root', { groupId: 'g', waiter: 'me' }))], 'the enqueue')
      const [root] = await take(bench, ['root'])
      const child = enqueue(bench, item(bench, 'child', { groupId: 'g' })).effects
      await applied(ledger, [finish(root, undefined, child)], 'the end of the root')
      await bench.time.quiet()
      same(heard.groups, [], 'groups heard of while the child is open')
      const [found] = await take(bench, ['child'])
      await applied(ledger, [finish(found)], 'the end of the child')
      await hears(bench, () => heard.groups.includes('g'), 'the close of the group is heard', heard)
    },
  },
  'ledger: who watches later hears too': {
    law: '`watch` records an inbox for items and groups: their end is told to it, whichever process commits it.',
    look: 'where watchers are recorded, and whether ends and closes read them.',
    async run(bench) {
      const { ledger } = bench
      const other = await bench.again()
      const { heard } = listen(ledger, 'late')
      const both = ['a', 'b'].map((id) => enqueue(bench, item(bench, id, { groupId: 'g' })))
      await applied(ledger, both, 'two enqueues')
      await ledger.watch('late', { ids: ['a', 'never heard of'], groups: ['g'] })
      const [a, b] = await take(bench, ['a', 'b'], { ledger: other })
      await applied(other, [finish(a)], 'the first end')
      await hears(bench, () => heard.ids.includes('a'), 'the end of the watched item is heard', heard)
      same(heard.groups, [], 'groups heard of while one is open')
      await applied(other, [finish(b)], 'the second end')
      await hears(bench, () => heard.groups.includes('g'), 'the close of the watched group is heard', heard)
    },
  },
  'ledger: a closing group tells whether anybody waits for it': {
    law: '`watched` of a closed group is true if an inbox was registered for it, so that an orphan is known as one.',
    look: 'whether the close looks for the watchers of the group before it forgets them.',
    async run(bench) {
      const { ledger } = bench
      const batch = [
        enqueue(bench, item(bench, 'named', { waiter: 'me' })),
        enqueue(bench, item(bench, 'later')),
        enqueue(bench, item(bench, 'orphan')),
      ]
      await applied(ledger, batch, 'three enqueues')
      await ledger.watch('me', { ids: [], groups: ['g-later'] })
      const taken = await take(bench, ['named', 'later', 'orphan'])
      const watched = []
      for (const claimed of taken) {
        const result = await commitOne(ledger, finish(claimed))
        watched.push(result.kind === 'applied' ? result.closed.map((group) => group.watched === true) : result.kind)
      }
      same(watched, [[true], [true], [false]], '`watched` of three groups, two of which are waited for')
    },
  },
  'ledger: a listener that throws stops nobody': {
    law: 'A throwing listener neither fails the commit nor keeps the others from hearing.',
    look: 'whether each listener is called in its own try, after the commit.',
    async run(bench) {
      const { ledger } = bench
      const boom = () => {
        throw new Error('a listener of the conformance suite throws on purpose')
      }
      ledger.onReady(boom)
      ledger.onInbox('me', boom)
      const ready = nudges(ledger)
      const inbox = listen(ledger, 'me')
      await applied(ledger, [enqueue(bench, item(bench, 'a', { waiter: 'me' }))], 'the enqueue')
      await hears(bench, () => ready.heard.length > 0, 'the other listener hears the nudge', ready.heard)
      const [a] = await take(bench, ['a'])
      await applied(ledger, [finish(a)], 'the end')
      await hears(bench, () => inbox.heard.ids.includes('a'), 'the other listener hears the end', inbox.heard)
    },
  },
})
