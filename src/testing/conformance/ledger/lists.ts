import { ITEM_STATES, type ItemState } from '../../../ports/words.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { complete, deadLetter, type LedgerBench, worker } from './bench.js'
import { listed, oneOfEach } from './inspect-bench.js'

export const listClauses = clausesOn<LedgerBench>()({
  'ledger: lists items by their state': {
    law: 'list({ state }) returns exactly the items in that state, in the words that everything uses.',
    hint: 'how states are derived from status, hold, due time, attempt and ending: words.ts has the one table.',
    needs: ['inspect'],
    async run(bench) {
      await oneOfEach(bench)
      for (const state of ITEM_STATES) same(await listed(bench, { state }), [state], `items in the state ${state}`)
      same((await listed(bench, {})).toSorted(), [...ITEM_STATES].toSorted(), 'items without a filter')
    },
  },
  'ledger: lists items by type, queue, group, tag, class and fingerprint': {
    law: 'Each filter of a query narrows the list, by itself and together with a state.',
    hint: 'the index or scan behind each filter.',
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
    hint: 'whether the cursor names a position in a total order.',
    needs: ['inspect'],
    async run(bench) {
      const names = Array.from({ length: 23 }, (_, i) => `i${String(i).padStart(2, '0')}`)
      await bench.enqueueItems(names)
      for (const limit of [1, 5, 23, 100]) {
        same((await listed(bench, { state: 'waiting' }, limit)).toSorted(), names, `items over pages of ${limit}`)
        same((await listed(bench, {}, limit)).toSorted(), names, `items over pages of ${limit}, without a filter`)
      }
    },
  },
  'ledger: finds ids by how they begin': {
    law: 'idsStartingWith(prefix, limit) gives the ids of items that begin with exactly that text, whatever characters it has and whatever state they are in, and at most `limit` of them.',
    hint: 'whether the range of the index ends where the prefix does, whether signs of patterns are taken for themselves, and whether expired items are left out.',
    needs: ['inspect'],
    async run(bench) {
      const begin = async (prefix: string, limit = 10) => {
        const { ids, isComplete } = await bench.inspect.idsStartingWith(prefix, limit)
        holds(isComplete, 'the answer is complete')
        return ids.toSorted()
      }
      await oneOfEach(bench)
      for (const state of ITEM_STATES)
        same(await begin(state.slice(0, 5)), [state], `ids that begin as that of the ${state} item`)
      same(await begin('active'), ['active'], 'ids that begin with a whole id')
      same(await begin('activer'), [], 'ids that begin with more than any')
      same(await begin('A'), [], 'ids that begin with a letter of the other case')
      const odd = [
        'p%a',
        'p_b',
        'p*c',
        'p?d',
        'p[e]',
        'p\\f',
        "p'g",
        'p"h',
        'p\ni',
        'p\u{1f600}j',
        'p\ud7ffk',
        'p\uffffl',
        'p\u{10ffff}m',
      ]
      await bench.enqueueItems(odd)
      for (const id of odd)
        same(await begin(id.slice(0, -1)), [id], `ids that begin with ${JSON.stringify(id.slice(0, -1))}`)
      same(await begin('p', 100), odd.toSorted(), 'ids that begin with p')
      same((await begin('p', 3)).length, 3, 'the number of ids when three are wanted')
      same(await begin('p\ud83d'), [], 'ids that begin with half of a character')
    },
  },
  'ledger: counts agree with the lists': {
    law: 'counts() reports for each queue and type how many items are in each state.',
    hint: 'whether counters are moved with every change of state, or counted when asked.',
    needs: ['inspect'],
    async run(bench) {
      await oneOfEach(bench)
      const total: Partial<Record<ItemState, number>> = {}
      for (const { queue, counts } of await bench.inspect.counts()) {
        same(queue, bench.queue, 'the queue of a count')
        for (const [word, n] of Object.entries(counts) as [ItemState, number][]) total[word] = (total[word] ?? 0) + n
      }
      for (const state of ITEM_STATES) same(total[state] ?? 0, 1, `the number of items in the state ${state}`)
      const counted = (await bench.inspect.counts()).find(({ type }) => type === 'type of dead')
      same(counted?.counts.dead, 1, 'the number of dead items of one type')
    },
  },
  'ledger: an item becomes waiting when it falls due': {
    law: 'States follow the time of the backend: what was scheduled or retrying is waiting once it is due.',
    hint: 'whether lists and counts compare the due time with now, also before a claim has promoted the item.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { time } = bench
      await bench.enqueueItems(['a'], {}, { delayMs: 1000 })
      same(await listed(bench, { state: 'scheduled' }), ['a'], 'scheduled items')
      await time.pass(1000)
      same(await listed(bench, { state: 'waiting' }), ['a'], 'waiting items, when it is due')
      same(await listed(bench, { state: 'scheduled' }), [], 'scheduled items, when it is due')
    },
  },
  'ledger: an expired item is neither listed nor counted': {
    law: 'An item whose retention is over is in no list and no count.',
    hint: 'whether removal reaches every index.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { time } = bench
      const [a, b] = await bench.enqueueAndTake(['a', 'b'], { tags: ['x'] })
      await bench.apply('the ends', [complete(a, '1', [], 5000), deadLetter(b, 'Error: x', [], 5000)])
      same((await listed(bench, { tag: 'x' })).toSorted(), ['a', 'b'], 'items with a tag')
      await time.pass(5001)
      same(await listed(bench, { tag: 'x' }), [], 'items with a tag, after the retention')
      same(await listed(bench, { state: 'dead' }), [], 'dead items, after the retention')
      const sum = (await bench.inspect.counts()).flatMap(({ counts }) => Object.values(counts))
      same(
        sum.reduce((n, m) => n + m, 0),
        0,
        'the sum of all counts, after the retention',
      )
    },
  },
  'ledger: claims report how many ended items they removed': {
    law: 'Retention removes ended items over time, and claims report how many: each removal once.',
    hint: 'whether the sweep runs with claims, in bounded steps, and what it returns.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { time } = bench
      const names = ['a', 'b', 'c'] as const
      const [a, b, c] = await bench.enqueueAndTake(names)
      await bench.apply('the ends', [complete(a, '1', [], 5000), deadLetter(b, 'Error: x', [], 5000), complete(c, '1')])
      const removed = async () => {
        let sum = 0
        for (let claims = 0; claims < 5; claims += 1) {
          sum += (await bench.claim()).removed ?? 0
          await time.pass(60_000)
        }
        return sum
      }
      await time.pass(5001)
      same(await removed(), 2, 'items removed, as five claims reported')
      same(await removed(), 0, 'items removed later')
    },
  },
  'ledger: shows the input of an item, apart from its view': {
    law: 'input(id) is the encoded input of an item that has not succeeded; views never carry it.',
    hint: 'whether the input is kept while the item can still run, or run again.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger } = bench
      const made = ['a', 'b'].map((id) => bench.enqueue(id, { input: JSON.stringify(`of ${id}`) }))
      await bench.apply('two enqueues', made)
      const inputs = async () => [
        await bench.inspect.input('a'),
        await bench.inspect.input('b'),
        await bench.inspect.input('no such item'),
      ]
      same(await inputs(), ['"of a"', '"of b"', undefined], 'the inputs while they wait')
      const [a] = await bench.take(['a', 'b'])
      await bench.apply('the end of one', [deadLetter(a, 'Error: x')])
      same(await inputs(), ['"of a"', '"of b"', undefined], 'the inputs of a dead item and a running one')
      const [view] = await ledger.read(['b'])
      holds(view !== undefined && !('input' in view.envelope), 'a view has no input')
    },
  },
  'ledger: shows what a gate waits for': {
    law: 'gate(key) shows the held item, how many members it needs, and which have not ended, until it has decided.',
    hint: 'whether the members of a gate can be read by the key of the gate.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger } = bench
      const members = ['m1', 'm2', 'm3'] as const
      await bench.enqueueItems(members)
      await bench.apply('the gate', [bench.gated('held', members)])
      const [held] = await ledger.read(['held'])
      const key = present(held?.hold, 'the hold of the item that the gate holds').key
      const seen = async () => {
        const gate = await bench.inspect.gate(key)
        return gate === undefined ? undefined : [gate.heldId, gate.need, gate.of, gate.waiting.toSorted()]
      }
      same(await seen(), ['held', 3, 'success', [...members]], 'the gate')
      const [m1, m2, m3] = await bench.take(members)
      await bench.apply('the end of a member', [complete(m1, '1')])
      same(await seen(), ['held', 2, 'success', ['m2', 'm3']], 'the gate, after the end of a member')
      await bench.apply('the ends of the others', [complete(m2, '1'), complete(m3, '1')])
      same(await seen(), undefined, 'the gate, when it has decided')
      same(await bench.inspect.gate('no such gate'), undefined, 'a gate that does not exist')
    },
  },
  'ledger: keeps a log of operator actions': {
    law: 'log(limit) lists who did what, when and why, newest first.',
    hint: 'whether the effect `log` is stored in the step of its settlement, in order.',
    needs: ['inspect'],
    async run(bench) {
      const { time } = bench
      const entry = (what: string) => ({ do: 'log', who: 'ada', why: 'because', what }) as const
      await bench.apply('two entries', [{ guard: { by: 'none' }, effects: [entry('first'), entry('second')] }])
      await time.pass(time.ms(5))
      await bench.apply('another', [{ guard: { by: 'none' }, effects: [entry('third')] }])
      const log = await bench.inspect.log(2)
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
  'ledger: lists the workers that sent a heartbeat': {
    law: 'A worker that extends leases is in workers(), with the record it sent and when.',
    hint: 'whether the record that heartbeats carry is stored, also with no leases to extend.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger, time } = bench
      await bench.enqueueItems(['a'])
      const { items } = await bench.claim({ worker: 'w-1' })
      const me = { ...worker('w-1'), types: ['t', 'u'] }
      await ledger.extend([{ lease: items[0]!.lease, running: true }], time.ms(30), me)
      const { seenAt, ...known } = present(
        (await bench.inspect.workers()).find((w) => w.id === 'w-1'),
        'the worker that extended a lease',
      )
      same({ ...known }, { ...me }, 'the record it sent')
      if (time.exact) same(seenAt, time.clock.now(), 'when it was seen')
    },
  },
})
