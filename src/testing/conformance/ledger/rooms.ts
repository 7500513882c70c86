import type { Envelope } from '../../../ports/item.js'
import type { Room } from '../../../ports/ledger.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { type Ask, control, deadLetter, ids, type LedgerBench, redrive } from './bench.js'

/** More than a claim scans in one step. */
const MANY = 3000
const BATCH = 500
/** A claim that scans a part of the queue says `more`, and makes progress each time. */
const MOST_CLAIMS = 20

const roomFor = (max: number, ...types: string[]): Room => ({ types, max })

/** Enqueues one item for each of `type:id`, in this order. */
async function line(bench: LedgerBench, names: readonly string[]): Promise<void> {
  const batch = names.map((name) => bench.enqueue(name, { type: name.split(':')[0]! }))
  await bench.apply(`the enqueues of ${names.join(', ')}`, batch)
}

/** The names of what a claim takes. */
const taken = async (bench: LedgerBench, ask: Ask): Promise<string[]> => ids((await bench.claim(ask)).items)

/** Claims as the engine does, until something comes or the ledger says that there is no more. */
async function claimThrough(bench: LedgerBench, ask: Ask) {
  for (let claims = 1; ; claims += 1) {
    const reply = await bench.claim(ask)
    if (reply.items.length > 0 || !reply.more) return reply
    holds(claims < MOST_CLAIMS, `a claim that says \`more\` gets ahead: something comes within ${MOST_CLAIMS} claims`)
  }
}

const needs = ['rooms', 'arrival order'] as const

export const roomClauses = clausesOn<LedgerBench>()({
  'ledger: a claim leaves what it has no room for in its place': {
    law: 'An item whose type no room names is neither delivered nor counted, and keeps its place; without rooms any type comes.',
    hint: 'whether the claim filters by type before it counts, and writes nothing to what it passes over.',
    needs,
    async run(bench) {
      await line(bench, ['u:1', 't:1', 'v:1', 't:2', 'u:2'])
      const rooms = [roomFor(10, 't')]
      same(await taken(bench, { rooms, max: 1 }), ['t:1'], 'taken with room for ten of t, and max 1')
      same(await taken(bench, { rooms }), ['t:2'], 'taken with room for ten of t')
      await bench.nothingToClaim('with room for none of the types', { rooms: [roomFor(10, 'other')] })
      await bench.nothingToClaim('without any room', { rooms: [] })
      const { items } = await bench.claim()
      same(ids(items), ['u:1', 'v:1', 'u:2'], 'taken without rooms: the rest, in its order')
      same(
        items.map(({ deliveries }) => deliveries),
        [1, 1, 1],
        'deliveries of what had been passed over',
      )
    },
  },
  'ledger: a room takes no more than it holds': {
    law: 'Items count against the room that names their type: a room of several types is shared, one with max 0 takes nothing.',
    hint: 'whether rooms are counted down within the claim, and types of one room together.',
    needs,
    async run(bench) {
      await line(bench, ['t:1', 't:2', 'u:1', 'v:1', 't:3', 'v:2', 'u:2', 'w:1'])
      const rooms = [roomFor(2, 't'), roomFor(3, 'u', 'v'), roomFor(0, 'w')]
      same(await taken(bench, { rooms }), ['t:1', 't:2', 'u:1', 'v:1', 'v:2'], 'taken with room for 2 t, 3 u or v, 0 w')
      same(await taken(bench, { rooms }), ['t:3', 'u:2'], 'taken by the same claim, made again')
      await bench.nothingToClaim('with a room of max 0', { rooms })
      same(await taken(bench, {}), ['w:1'], 'taken without rooms')
    },
  },
  'ledger: rooms are shared by the queues of a claim': {
    law: 'A room holds for the whole claim, over all its queues; `max` of a queue holds besides.',
    hint: 'whether what is left of a room is carried from one queue to the next.',
    needs: [...needs, 'named queues'],
    async run(bench) {
      const { queue } = bench
      const other = bench.other()
      const made = (['t:1', 't:2', 'u:1'] as const).map((id) => bench.item(id, { type: id[0]! }))
      const there = (['t:3', 't:4', 'u:2'] as const).map((id) => bench.item(id, { type: id[0]! }))
      await bench.apply('enqueues to two queues', [
        ...made.map((one) => bench.enqueue(one)),
        ...there.map((one) => bench.enqueue(one, {}, { queue: other })),
      ])
      const both = (max: number) => [
        { queue, max: 5 },
        { queue: other, max },
      ]
      const rooms = [roomFor(3, 't'), roomFor(1, 'u')]
      same(await taken(bench, { queues: both(5), rooms }), ['t:1', 't:2', 'u:1', 't:3'], 'taken from both queues')
      same(await taken(bench, { queues: both(1), rooms }), ['t:4'], 'taken with room for two more, and max 1')
    },
  },
  'ledger: items that have room come in the order of claim': {
    law: 'Among what has room the order is unchanged: priority descending, due time, arrival.',
    hint: 'whether the filter keeps the order of the ready index, over several types and priorities.',
    needs: [...needs, 'priority'],
    async run(bench) {
      const { time } = bench
      const at = (id: string, priority: number, delayMs = 0) =>
        bench.apply(`the enqueue of ${id}`, [bench.enqueue(id, { type: id[0]!, priority }, { delayMs })])
      await at('t low', -1)
      await at('v high', 7)
      await at('u late', 0, time.ms(9))
      await at('t high late', 7, time.ms(9))
      await at('u 1', 0)
      await at('t 1', 0)
      await at('v 1', 0)
      await at('t 2', 0)
      await at('u 2', 0)
      await time.pass(time.ms(10))
      const order = ['t high late', 'u 1', 't 1', 't 2', 'u 2', 'u late', 't low']
      const rooms = [roomFor(9, 'u'), roomFor(9, 't')]
      const first = await taken(bench, { rooms, max: 3 })
      same([...first, ...(await taken(bench, { rooms }))], order, 'the order of two claims with room for t and u')
    },
  },
  'ledger: an item without room hides nothing behind it': {
    law: 'However many items without room stand in front, what has room is found behind them, and they keep their places.',
    hint: 'the scan for the next item: one that ends after a fixed number of rows must say `more` and go on from there.',
    needs,
    async run(bench) {
      const made = Array.from({ length: MANY }, (_, i) => bench.item(`u:${i}`, { type: 'u', priority: i % 2 }))
      for (let at = 0; at < MANY; at += BATCH)
        await bench.apply(
          'the enqueues of what has no room',
          made.slice(at, at + BATCH).map((one) => bench.enqueue(one)),
        )
      await line(bench, ['t:1', 'v:1', 't:2'])
      const rooms = [roomFor(5, 't'), roomFor(0, 'u')]
      same(ids((await claimThrough(bench, { rooms, max: 1 })).items), ['t:1'], 'taken with max 1')
      same(ids((await claimThrough(bench, { rooms })).items), ['t:2'], 'taken with room for five')
      const rest = await claimThrough(bench, { rooms })
      same([ids(rest.items), rest.more], [[], false], 'what is left, and `more`')
      same(await taken(bench, { max: 2 }), ['u:1', 'u:3'], 'taken without rooms: the first of those in front')
    },
  },
  'ledger: says that there is more only of what has room': {
    law: '`more` is true if the same claim, repeated, would find work: items left for lack of room do not count.',
    hint: 'whether `more` asks for a ready item of a type that a room with a max above 0 names.',
    needs,
    async run(bench) {
      await line(bench, ['u:1', 't:1', 't:2', 't:3'])
      const more = async (ask: Ask) => (await bench.claim(ask)).more
      same(await more({ rooms: [roomFor(1, 't')] }), true, '`more` with two left that the same claim has room for')
      same(await more({ rooms: [roomFor(9, 't')] }), false, '`more` with only another type left')
      same(await more({ rooms: [roomFor(0, 'u'), roomFor(9, 't')] }), false, '`more` with only a room of max 0 left')
      same(await more({ rooms: [] }), false, '`more` without any room')
      same(await more({ rooms: [roomFor(9, 'u')] }), false, '`more` with nothing left')
    },
  },
  'ledger: a claim frees what lapsed also where it has no room for it': {
    law: 'The next claim of its queue frees and reports a lease that ran out; the item waits for one that has room for it.',
    hint: 'whether the reclaim stands before the filter, and whether the item lands in its old place.',
    needs,
    async run(bench) {
      const { time } = bench
      await line(bench, ['t:1', 't:2', 'u:1'])
      same(await taken(bench, { max: 1, leaseTicks: 2, runs: true }), ['t:1'], 'taken first')
      await time.pass(time.ms(3))
      const reply = await bench.claim({ rooms: [roomFor(9, 'u')] })
      same([ids(reply.items), reply.crashed ?? []], [['u:1'], ['t']], 'what a claim with room for u takes and reports')
      const [first, ...rest] = (await bench.claim({ rooms: [roomFor(9, 't')] })).items
      same([first?.lease.id, first?.crashes, ids(rest)], ['t:1', 1, ['t:2']], 'what one with room for t takes')
    },
  },
  'ledger: an expired item is handed out whatever its type': {
    law: 'With rooms, a ready item whose deadline has passed needs no room and comes by deadline and arrival, before what has room, up to its share of `max`; what is in time, due later or paused does not come.',
    hint: 'whether the claim asks its index of deadlines before it asks by type, and counts what it finds only against its share and `max`.',
    needs,
    async run(bench) {
      const { time } = bench
      const now = time.clock.now()
      const expiring = (id: string, ticks: number, delayMs = 0) => {
        const made = bench.item(id, { type: id.split(':')[0]!, deadline: now + time.ms(ticks) })
        return bench.apply(`the enqueue of ${id}`, [bench.enqueue(made, {}, { delayMs })])
      }
      await line(bench, ['t:1', 'u:in time'])
      await expiring('u:second', 3)
      await expiring('t:third', 4)
      await expiring('v:first', 2)
      await expiring('u:fourth', 5)
      await expiring('u:far', 900)
      await expiring('u:due later', 2, time.ms(800))
      const rooms = [roomFor(1, 't')]
      await bench.nothingToClaim('before any deadline, with room for another type', { rooms: [roomFor(9, 'w')] })
      await time.pass(time.ms(10))
      const reply = await bench.claim({ rooms: [], max: 8 })
      same([ids(reply.items), reply.more], [['v:first', 'u:second'], true], 'taken with max 8 and no room, and `more`')
      same(await taken(bench, { rooms }), ['t:third', 'u:fourth', 't:1'], 'taken then: what expired took no room')
      const rest = await bench.claim({ rooms: [] })
      same([ids(rest.items), rest.more], [[], false], 'taken without any room, and `more`')
      same(await taken(bench, {}), ['u:in time', 'u:far'], 'taken without rooms: what kept its place')
    },
  },
  'ledger: expired items leave room for live ones': {
    law: 'Of what has expired a claim with rooms takes at most a quarter of `max`, rounded up, and live items come in the same claim; `more` holds while expired items are left.',
    hint: 'whether the scan of the index of deadlines ends at `expiredShare`, and what follows it still asks by type.',
    needs: [...needs, 'priority'],
    async run(bench) {
      const { time } = bench
      const deadline = time.clock.now() + time.ms(2)
      const put = (type: string, names: readonly string[], more: Partial<Envelope> = {}) =>
        bench.apply(
          `the enqueues of ${type}`,
          names.map((name) => bench.enqueue(`${type}:${name}`, { type, ...more })),
        )
      const pile = Array.from({ length: 9 }, (_, i) => `${i}`)
      await put('u', pile, { deadline, priority: 9 })
      await put('t', ['1', '2', '3', '4'])
      await put('v', ['late', 'later'], { deadline: deadline + time.ms(1) })
      await put('v', ['live'], { priority: 1 })
      await time.pass(time.ms(5))
      const rooms = [roomFor(3, 't'), roomFor(2, 'v')]
      const late = (...numbers: number[]) => numbers.map((n) => `u:${n}`)
      const next = async (max: number) => {
        const { items, more } = await bench.claim({ rooms, max })
        return [ids(items), more]
      }
      same(await next(4), [[...late(0), 'v:live', 't:1', 't:2'], true], 'taken with max 4, and `more`')
      same(
        await next(5),
        [[...late(1, 2), 't:3', 't:4', 'v:late'], true],
        'taken with max 5: a type with room keeps its place',
      )
      same(await next(9), [[...late(3, 4, 5), 'v:later'], true], 'taken with max 9, and `more`')
      same(await next(1), [late(6), true], 'taken with max 1, and `more`')
      same(await next(8), [late(7, 8), false], 'the rest, and `more`')
    },
  },
  'ledger: a body pushed by hand comes beside expired items': {
    law: 'A claim that makes a body of the plain queue an item takes no more than the share of expired items in all, and that item beside them.',
    hint: 'whether a claim that scans a second time, for what it has just adopted, begins its share anew.',
    needs: [...needs, 'foreign bodies'],
    async run(bench) {
      const deadline = bench.time.clock.now() + bench.time.ms(2)
      const pile = Array.from({ length: 9 }, (_, i) => bench.item(`u:${i}`, { type: 'u', deadline }))
      await bench.apply(
        'the enqueues',
        pile.map((one) => bench.enqueue(one)),
      )
      await bench.time.pass(bench.time.ms(5))
      await bench.pushRaw(JSON.stringify(bench.item('t:hand', { type: 't' })))
      const { items, more } = await bench.claim({ rooms: [roomFor(3, 't')], max: 8 })
      same([ids(items), more], [['u:0', 'u:1', 't:hand'], true], 'taken with max 8, and `more`')
    },
  },
  'ledger: an expired item stays while it is paused': {
    law: 'An item of a paused type or queue is not handed out when its deadline passes; it comes after the resume.',
    hint: 'whether what the index of deadlines finds is checked against the pauses, and held like what is found by type.',
    needs: [...needs, 'holds'],
    async run(bench) {
      const { time } = bench
      const word = (...words: Parameters<typeof control>) => bench.apply(words.join(' '), [control(...words)])
      const deadline = time.clock.now() + time.ms(2)
      const made = ['u:1', 'u:2', 'v:1'].map((id) => bench.item(id, { type: id[0]!, deadline }))
      await bench.apply(
        'the enqueues',
        made.map((one) => bench.enqueue(one)),
      )
      await word('pause', 'type', 'u')
      await time.pass(time.ms(5))
      const rooms = [roomFor(9, 't')]
      same(
        await taken(bench, { rooms, max: 1 }).then(async (first) => [...first, ...(await taken(bench, { rooms }))]),
        ['v:1'],
        'taken by two claims while u is paused',
      )
      await word('pause', 'queue', bench.queue)
      await word('resume', 'type', 'u')
      await bench.nothingToClaim('while the queue is paused', { rooms })
      await word('resume', 'queue', bench.queue)
      same(await taken(bench, { rooms }), ['u:1', 'u:2'], 'taken once everything is resumed')
    },
  },
  'ledger: a deadline that a redrive drops is dropped everywhere': {
    law: 'A redriven item whose deadline had passed has none any more: it comes only by its type.',
    hint: 'whether the index of deadlines follows the envelope when an item is redriven.',
    needs: [...needs, 'redrive and delete'],
    async run(bench) {
      const { time } = bench
      const made = bench.item('u:1', { type: 'u', deadline: time.clock.now() + time.ms(2) })
      await bench.apply('the enqueue', [bench.enqueue(made)])
      await time.pass(time.ms(5))
      const rooms = [roomFor(9, 't')]
      const [expired] = (await bench.claim({ rooms })).items
      same(expired?.lease.id, 'u:1', 'taken when it has expired')
      await bench.apply('its end', [deadLetter(present(expired, 'what was taken'))])
      await bench.apply('the redrive', [redrive('u:1', made.groupId)])
      await bench.nothingToClaim('with room for another type', { rooms })
      same(await taken(bench, { rooms: [roomFor(1, 'u')] }), ['u:1'], 'taken with room for its type')
    },
  },
  'ledger: a paused type is not taken, whatever the room': {
    law: 'A pause and a lack of room are two things: what is paused stays though there is room, and comes when it is resumed.',
    hint: 'whether a held paused item does not count against its room.',
    needs: [...needs, 'holds'],
    async run(bench) {
      const word = (what: 'pause' | 'resume') => bench.apply(what, [control(what, 'type', 't')])
      await line(bench, ['t:1', 'u:1', 'v:1', 'u:2'])
      await word('pause')
      const rooms = [roomFor(2, 't', 'u')]
      same(await taken(bench, { rooms }), ['u:1', 'u:2'], 'taken while t is paused')
      await word('resume')
      same(await taken(bench, { rooms }), ['t:1'], 'taken once it is resumed')
      same(await taken(bench, {}), ['v:1'], 'taken without rooms')
    },
  },
})
