import { ITEM_STATE_WORDS, type ItemStateWord } from '../../../ports/words.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { applied, claim, enqueue, finish, gated, item, type LedgerBench, park, take, worker } from './bench.js'
import { inspectOf, listed, oneOfEach } from './listing.js'

export const inspectClauses = clausesOn<LedgerBench>()({
  'ledger: lists items by their state': {
    law: 'list({ state }) returns exactly the items in that state, in the words that everything uses.',
    look: 'how states are derived from status, hold, due time, attempt and ending: words.ts has the one table.',
    needs: ['inspect'],
    async run(bench) {
      await oneOfEach(bench)
      for (const state of ITEM_STATE_WORDS) same(await listed(bench, { state }), [state], `items in the state ${state}`)
      same((await listed(bench, {})).toSorted(), [...ITEM_STATE_WORDS].toSorted(), 'items without a filter')
    },
  },
  'ledger: lists items by type, queue, group, tag, class and fingerprint': {
    law: 'Each filter of a query narrows the list, alone and together with a state.',
    look: 'the index or scan behind each filter.',
    needs: ['inspect'],
    async run(bench) {
      await oneOfEach(bench)
      same(await listed(bench, { type: 'type of waiting' }), ['waiting'], 'items of a type')
      same(await listed(bench, { groupId: 'g-active' }), ['active'], 'items of a group')
      same(await listed(bench, { tag: 'tag of dead' }), ['dead'], 'items with a tag')
      same((await listed(bench, { tag: 'all' })).length, 7, 'the number of items with a tag that seven have')
      same(await listed(bench, { class: 'retryable' }), ['dead'], 'items of a class')
      same(await listed(bench, { fingerprint: 'f-dead' }), ['dead'], 'items with a fingerprint')
      same((await listed(bench, { queue: bench.queue })).length, 8, 'the number of items of the queue')
      same(await listed(bench, { queue: 'no such queue' }), [], 'items of a queue that does not exist')
      same(await listed(bench, { state: 'dead', tag: 'all' }), ['dead'], 'dead items with a tag')
      same(
        await listed(bench, { state: 'completed', type: 'type of dead' }),
        [],
        'completed items of the type of another',
      )
    },
  },
  'ledger: pages have no gaps and no repetitions': {
    law: 'Following the cursor to the end lists every item once, whatever the page size.',
    look: 'whether the cursor names a position in a total order.',
    needs: ['inspect'],
    async run(bench) {
      const names = Array.from({ length: 23 }, (_, i) => `i${String(i).padStart(2, '0')}`)
      await applied(
        bench.ledger,
        names.map((id) => enqueue(bench, item(bench, id))),
        'the enqueues',
      )
      for (const limit of [1, 5, 23, 100]) {
        same((await listed(bench, { state: 'waiting' }, limit)).toSorted(), names, `items over pages of ${limit}`)
        same((await listed(bench, {}, limit)).toSorted(), names, `items over pages of ${limit}, without a filter`)
      }
    },
  },
  'ledger: counts agree with the lists': {
    law: 'counts() tells for each queue and type how many items are in each state.',
    look: 'whether counters are moved with every change of state, or counted when asked.',
    needs: ['inspect'],
    async run(bench) {
      await oneOfEach(bench)
      const total: Partial<Record<ItemStateWord, number>> = {}
      for (const { queue, counts } of await inspectOf(bench).counts()) {
        same(queue, bench.queue, 'the queue of a count')
        for (const [word, n] of Object.entries(counts) as [ItemStateWord, number][])
          total[word] = (total[word] ?? 0) + n
      }
      for (const state of ITEM_STATE_WORDS) same(total[state] ?? 0, 1, `the number of items in the state ${state}`)
      const counted = (await inspectOf(bench).counts()).find(({ type }) => type === 'type of dead')
      same(counted?.counts.dead, 1, 'the number of dead items of one type')
    },
  },
  'ledger: an item becomes waiting when it falls due': {
    law: 'States follow the time of the backend: what was scheduled or retrying is waiting once it is due.',
    look: 'whether lists and counts compare the due time with now, also before a claim has promoted the item.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'), { delayMs: 1000 })], 'the enqueue')
      same(await listed(bench, { state: 'scheduled' }), ['a'], 'scheduled items')
      await time.pass(1000)
      same(await listed(bench, { state: 'waiting' }), ['a'], 'waiting items, when it is due')
      same(await listed(bench, { state: 'scheduled' }), [], 'scheduled items, when it is due')
    },
  },
  'ledger: what has expired is neither listed nor counted': {
    law: 'An item whose retention is over is in no list and no count.',
    look: 'whether removal reaches every index.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const both = ['a', 'b'].map((id) => enqueue(bench, item(bench, id, { tags: ['x'] })))
      await applied(ledger, both, 'two enqueues')
      const [a, b] = await take(bench, ['a', 'b'])
      await applied(ledger, [finish(a, '1', [], 5000), park(b, 'Error: x', [], 5000)], 'the ends')
      same((await listed(bench, { tag: 'x' })).toSorted(), ['a', 'b'], 'items with a tag')
      await time.pass(5001)
      same(await listed(bench, { tag: 'x' }), [], 'items with a tag, after the retention')
      same(await listed(bench, { state: 'dead' }), [], 'dead items, after the retention')
      const sum = (await inspectOf(bench).counts()).flatMap(({ counts }) => Object.values(counts))
      same(
        sum.reduce((n, m) => n + m, 0),
        0,
        'the sum of all counts, after the retention',
      )
    },
  },
  'ledger: tells how many ended items it has removed': {
    law: 'Retention really removes, by and by, and claims tell how much: each removal once.',
    look: 'whether the sweep runs with claims, in bounded steps, and what it returns.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const names = ['a', 'b', 'c'] as const
      await applied(
        ledger,
        names.map((id) => enqueue(bench, item(bench, id))),
        'three enqueues',
      )
      const [a, b, c] = await take(bench, names)
      await applied(ledger, [finish(a, '1', [], 5000), park(b, 'Error: x', [], 5000), finish(c, '1')], 'the ends')
      const removed = async () => {
        let sum = 0
        for (let claims = 0; claims < 5; claims += 1) {
          sum += (await claim(bench)).removed ?? 0
          await time.pass(60_000)
        }
        return sum
      }
      await time.pass(5001)
      same(await removed(), 2, 'items removed, as five claims told')
      same(await removed(), 0, 'items removed later')
    },
  },
  'ledger: shows the input of an item, apart from its view': {
    law: 'input(id) is the encoded input of an item that has not succeeded; views never carry it.',
    look: 'whether the input is kept while the item can still run, or run again.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger } = bench
      const made = ['a', 'b'].map((id) => enqueue(bench, item(bench, id, { input: JSON.stringify(`of ${id}`) })))
      await applied(ledger, made, 'two enqueues')
      const inputs = async () => [
        await inspectOf(bench).input('a'),
        await inspectOf(bench).input('b'),
        await inspectOf(bench).input('no such item'),
      ]
      same(await inputs(), ['"of a"', '"of b"', undefined], 'the inputs while they wait')
      const [a] = await take(bench, ['a', 'b'])
      await applied(ledger, [park(a, 'Error: x')], 'the end of one')
      same(await inputs(), ['"of a"', '"of b"', undefined], 'the inputs of one that is dead and one that runs')
      const [view] = await ledger.read(['b'])
      holds(view !== undefined && !('input' in view.envelope), 'a view has no input')
    },
  },
  'ledger: shows what a gate waits for': {
    law: 'gate(key) tells whom it holds, how many it needs, and which members have not ended, until it has decided.',
    look: 'whether the relation of gate and member can be read from the side of the gate.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger } = bench
      const members = ['m1', 'm2', 'm3'] as const
      await applied(
        ledger,
        members.map((id) => enqueue(bench, item(bench, id))),
        'three enqueues',
      )
      await applied(ledger, [gated(bench, 'held', members)], 'the gate')
      const [held] = await ledger.read(['held'])
      const key = present(held?.hold, 'the hold of the item that the gate holds').key
      const seen = async () => {
        const gate = await inspectOf(bench).gate(key)
        return gate === undefined ? undefined : [gate.holds, gate.need, gate.of, gate.waiting.toSorted()]
      }
      same(await seen(), ['held', 3, 'success', [...members]], 'the gate')
      const [m1, m2, m3] = await take(bench, members)
      await applied(ledger, [finish(m1, '1')], 'the end of a member')
      same(await seen(), ['held', 2, 'success', ['m2', 'm3']], 'the gate, after the end of a member')
      await applied(ledger, [finish(m2, '1'), finish(m3, '1')], 'the ends of the others')
      same(await seen(), undefined, 'the gate, when it has decided')
      same(await inspectOf(bench).gate('no such gate'), undefined, 'a gate that does not exist')
    },
  },
  'ledger: keeps a log of what people did': {
    law: 'log(limit) tells who did what and why, and when, the newest first.',
    look: 'whether the effect `log` is stored in the step of its settlement, in order.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger, time } = bench
      const entry = (what: string) => ({ do: 'log', who: 'ada', why: 'because', what }) as const
      await applied(ledger, [{ guard: { by: 'none' }, effects: [entry('first'), entry('second')] }], 'two entries')
      await time.pass(time.ms(5))
      await applied(ledger, [{ guard: { by: 'none' }, effects: [entry('third')] }], 'another')
      const log = await inspectOf(bench).log(2)
      same(
        log.map(({ who, why, what }) => [who, why, what]),
        [
          ['ada', 'because', 'third'],
          ['ada', 'because', 'second'],
        ],
        'the last two entries',
      )
      if (time.exact) same(log[0]?.at, time.clock.now(), 'when the last was made')
    },
  },
  'ledger: knows the workers that have been heard of': {
    law: 'A worker that extends leases is in workers(), with what it told of itself and when.',
    look: 'whether the record that rides on heartbeats is stored, also with no leases to extend.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const { items } = await claim(bench, { worker: 'w-1' })
      const me = { ...worker('w-1'), types: ['t', 'u'] }
      await ledger.extend([{ lease: items[0]!.lease, running: true }], time.ms(30), me)
      const { seenAt, ...known } = present(
        (await inspectOf(bench).workers()).find((w) => w.id === 'w-1'),
        'the worker that extended a lease',
      )
      same({ ...known }, { ...me }, 'what it told of itself')
      if (time.exact) same(seenAt, time.clock.now(), 'when it was seen')
    },
  },
})
