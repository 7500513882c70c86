import type { PulledWork, Queue } from '../../ports/ports.js'
import { holds, present, same } from './check.js'
import { clausesOn } from './clause.js'
import { HOSTILE_TEXTS } from './hostile-texts.js'
import type { TestTime } from './time.js'

/** What a clause on a queue gets: an empty queue, and its time. */
export interface QueueBench {
  readonly queue: Queue
  readonly time: TestTime
}

const bodies = (pulled: readonly PulledWork[]) => pulled.map((p) => p.body)
const counted = (pulled: readonly PulledWork[]) => pulled.map((p) => [p.body, p.attempt])

/** A lease long enough that it never ends within a clause unless the clause waits for it. */
const LONG = 60

/** Pops until `wanted` bodies came or nothing more comes: a queue may return fewer than asked. */
async function popAll({ queue, time }: QueueBench, wanted: number, ticks = LONG): Promise<PulledWork[]> {
  const all: PulledWork[] = []
  for (let idle = 0; all.length < wanted && idle < 3; ) {
    const some = await queue.pop(wanted - all.length, time.ms(ticks))
    all.push(...some)
    idle = some.length === 0 ? idle + 1 : 0
  }
  return all
}

async function popOne(bench: QueueBench, what: string, ticks = LONG): Promise<PulledWork> {
  const [one] = await popAll(bench, 1, ticks)
  return present(one, what)
}

/** Nothing is visible now. */
async function isEmpty({ queue, time }: QueueBench, when: string): Promise<void> {
  same(bodies(await queue.pop(100, time.ms(LONG))), [], `bodies visible ${when}`)
}

/** The obligations of `Queue`. */
export const queueClauses = clausesOn<QueueBench>()({
  'queue: delivers a body until it is acked': {
    law: 'A body accepted by push is delivered again and again, until it is acked; then never again.',
    hint: 'whether pop removes a body instead of leasing it, and whether ack removes it for good.',
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      same(bodies(await popAll(bench, 1, 2)), ['a'], 'the first delivery')
      await time.pass(time.ms(3))
      const again = await popOne(bench, 'the delivery after the first lease ran out', 2)
      await queue.ack(again)
      await time.pass(time.ms(3))
      await isEmpty(bench, 'after the ack')
    },
  },
  'queue: returns bodies exactly as they were pushed': {
    law: 'A body is opaque text: quotes, newlines, any script and a hundred kilobytes come back unchanged.',
    hint: 'how the body is quoted, encoded or limited on its way in and out.',
    async run(bench) {
      const texts = [...HOSTILE_TEXTS, '', 'x'.repeat(100_000)]
      for (const text of texts) await bench.queue.push(text)
      const came = bodies(await popAll(bench, texts.length))
      same(came.toSorted(), texts.toSorted(), 'the bodies popped')
    },
  },
  'queue: hides a delayed body until it is due': {
    law: 'A body pushed with a delay is not delivered before now + delay, and is delivered after.',
    hint: 'whether push stores the due time and pop compares it with the time of the backend.',
    async run(bench) {
      const { queue, time } = bench
      await queue.push('later', { delay: time.ms(4) })
      await queue.push('now')
      same(bodies(await popAll(bench, 2)), ['now'], 'bodies visible immediately')
      await time.pass(time.ms(2))
      await isEmpty(bench, 'before the delay has passed')
      await time.pass(time.ms(3))
      same(bodies(await popAll(bench, 1)), ['later'], 'bodies visible after the delay')
    },
  },
  'queue: a delayed body is due exactly at its due time': {
    law: 'It is hidden one millisecond before now + delay and visible at now + delay.',
    hint: 'the comparison of the due time: due means dueAt <= now.',
    needs: ['exact time'],
    async run(bench) {
      const { queue, time } = bench
      await queue.push('later', { delay: 50 })
      await time.pass(49)
      await isEmpty(bench, 'one millisecond early')
      await time.pass(1)
      same(bodies(await popAll(bench, 1)), ['later'], 'bodies visible at the due time')
    },
  },
  'queue: a dedupe key in the queue makes another push a no-op': {
    law: 'While a body pushed with key K is visible, delayed or leased, another push with K does nothing.',
    hint: 'whether the key is kept while the body is delayed and while it is leased.',
    needs: ['exact dedupe'],
    async run(bench) {
      const { queue, time } = bench
      await queue.push('first', { dedupeKey: 'k' })
      await queue.push('second', { dedupeKey: 'k' })
      const first = await popOne(bench, 'the first body')
      same(first.body, 'first', 'the body that keeps the key')
      await queue.push('third', { dedupeKey: 'k' })
      await isEmpty(bench, 'after pushes of a key whose body was visible, then leased')
      await queue.fail(first, time.ms(4))
      await queue.push('fourth', { dedupeKey: 'k' })
      await isEmpty(bench, 'after a push of a key whose body is delayed')
      await queue.push('other', { dedupeKey: 'K' })
      await queue.push('none')
      same(bodies(await popAll(bench, 2)).toSorted(), ['none', 'other'], 'bodies of another key and of none')
    },
  },
  'queue: a dedupe key is free after the ack': {
    law: 'Once the body has been acked, its key may be used again.',
    hint: 'whether ack forgets the dedupe key.',
    needs: ['exact dedupe'],
    async run(bench) {
      await bench.queue.push('first', { dedupeKey: 'k' })
      await bench.queue.ack(await popOne(bench, 'the first body'))
      await bench.queue.push('second', { dedupeKey: 'k' })
      same(bodies(await popAll(bench, 1)), ['second'], 'bodies after the key was free')
    },
  },
  'queue: pops at most max bodies': {
    law: '`pop(max)` leases at most max bodies; `pop(0)` leases none.',
    hint: 'whether the limit is applied after reclaiming and promoting, not before.',
    async run(bench) {
      const { queue, time } = bench
      for (let i = 0; i < 7; i += 1) await queue.push(`b${i}`)
      same((await queue.pop(0, time.ms(LONG))).length, 0, 'bodies popped with max 0')
      for (const max of [3, 1, 2]) {
        const some = await queue.pop(max, time.ms(LONG))
        holds(some.length <= max, `pop(${max}) returns at most ${max} bodies (it returned ${some.length})`)
      }
    },
  },
  'queue: pops no body twice, and equal bodies are two messages': {
    law: 'One call never returns a message twice; a popped body is hidden; two equal bodies have their own leases.',
    hint: 'whether messages are told apart by an id of their own rather than by their text.',
    async run(bench) {
      const { queue } = bench
      await queue.push('same')
      await queue.push('same')
      const [a, b] = await popAll(bench, 2)
      holds(b !== undefined, 'both messages with the same text are delivered')
      await isEmpty(bench, 'while both are leased')
      await queue.ack(present(a, 'the first message'))
      await queue.fail(b)
      same(bodies(await popAll(bench, 2)), ['same'], 'bodies after one of the two was acked')
    },
  },
  'queue: two concurrent pops never share a body': {
    law: 'Of any number of concurrent pops, each body goes to exactly one.',
    hint: 'whether selecting and leasing are one atomic step.',
    async run(bench) {
      const { queue, time } = bench
      const all = Array.from({ length: 40 }, (_, i) => `b${String(i).padStart(2, '0')}`)
      for (const body of all) await queue.push(body)
      const taken: string[] = []
      for (let round = 0; taken.length < all.length && round < 20; round += 1) {
        const pops = await Promise.all(Array.from({ length: 8 }, async () => queue.pop(3, time.ms(LONG))))
        taken.push(...pops.flatMap(bodies))
      }
      same(taken.toSorted(), all, 'bodies over all concurrent pops')
    },
  },
  'queue: a lapsed lease is freed by the next pop': {
    law: '`pop` first frees every lease that has run out; until then the body stays hidden.',
    hint: 'whether pop reclaims leases whose end is not after now before it looks for visible bodies.',
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      await popOne(bench, 'the body', 4)
      await time.pass(time.ms(2))
      await isEmpty(bench, 'while it is leased')
      await time.pass(time.ms(3))
      same(bodies(await popAll(bench, 1)), ['a'], 'bodies visible after the lease ran out')
    },
  },
  'queue: a lease ends exactly at its end': {
    law: 'A lease has run out when its end is not after now.',
    hint: 'the comparison of the lease: expired means leaseUntil <= now.',
    needs: ['exact time'],
    async run({ queue, time }) {
      await queue.push('a')
      same(bodies(await queue.pop(1, 100)), ['a'], 'the first delivery')
      await time.pass(99)
      same(bodies(await queue.pop(1, 100)), [], 'bodies visible one millisecond before the lease ends')
      await time.pass(1)
      same(bodies(await queue.pop(1, 100)), ['a'], 'bodies visible when the lease ends')
    },
  },
  'queue: keeps the order of arrival, and a returned body keeps its place': {
    law: 'Bodies come in order of due time and arrival; after a fail or a lapse a body has its old place.',
    hint: 'whether fail without a delay keeps the due time, and whether a reclaim puts the body at the end.',
    needs: ['arrival order'],
    async run(bench) {
      const { queue, time } = bench
      for (const body of ['a', 'b', 'c', 'd']) {
        await queue.push(body)
        await time.pass(1)
      }
      const [a, b] = await popAll(bench, 2, 2)
      same([a?.body, b?.body], ['a', 'b'], 'the first two bodies')
      await queue.fail(present(b, 'the second body'))
      await time.pass(time.ms(3))
      same(bodies(await popAll(bench, 4)), ['a', 'b', 'c', 'd'], 'the order after a lapse (a) and a fail (b)')
    },
  },
  'queue: counts deliveries of a message': {
    law: '`attempt` is 1 at the first lease, and 1 more after a lapse and after a fail; a re-push starts again at 1.',
    hint: 'where the delivery count is raised: on reclaim and on fail, never on push.',
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      same(counted(await popAll(bench, 1, 2)), [['a', 1]], 'the first delivery')
      await time.pass(time.ms(3))
      const second = await popOne(bench, 'the delivery after the lapse')
      same(second.attempt, 2, 'the delivery number after a lapse')
      await queue.fail(second)
      const third = await popOne(bench, 'the delivery after the fail')
      same(third.attempt, 3, 'the delivery number after a fail')
      await queue.push('a')
      same(counted(await popAll(bench, 1)), [['a', 1]], 'the first delivery of the same text, pushed again')
    },
  },
  'queue: a stale handle can do nothing': {
    law: '`heartbeat`, `ack` and `fail` act only on the current lease; with an older handle they change nothing, silently.',
    hint: 'whether every lease has a fresh token, and whether the three verbs compare it.',
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      const old = await popOne(bench, 'the body', 2)
      await time.pass(time.ms(3))
      const current = await popOne(bench, 'the body after the lapse', 6)
      await queue.ack(old)
      await queue.fail(old)
      await queue.heartbeat(old, time.ms(LONG))
      await isEmpty(bench, 'after a fail with a stale handle')
      await time.pass(time.ms(7))
      const third = await popOne(bench, 'the body, after an ack and a heartbeat with a stale handle')
      same(third.attempt, current.attempt + 1, 'the delivery number')
    },
  },
  'queue: an unknown handle is ignored silently': {
    law: '`heartbeat`, `ack` and `fail` with a handle that no lease has neither throw nor change anything.',
    hint: 'what happens to a token that is not in the index, or is not a token at all.',
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      const real = await popOne(bench, 'the body')
      for (const handle of ['nope', "'; drop table x; --", undefined, null, 42, {}]) {
        const forged: PulledWork = { body: 'a', handle, attempt: 1 }
        await queue.heartbeat(forged, time.ms(1))
        await queue.fail(forged)
        await queue.ack(forged)
      }
      await isEmpty(bench, 'after calls with unknown handles')
      await queue.fail(real)
      await queue.ack(await popOne(bench, 'the body, put back by its real handle'))
      await queue.ack(real)
      await isEmpty(bench, 'after the ack, and a second one')
    },
  },
  'queue: a heartbeat moves the end of the lease to now + visibility': {
    law: '`heartbeat(p, v)` makes the lease end v from now; it does not add v to what was left.',
    hint: 'whether the new end is computed from now.',
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      const leased = await popOne(bench, 'the body', 6)
      await time.pass(time.ms(4))
      await queue.heartbeat(leased, time.ms(6))
      await time.pass(time.ms(4))
      await isEmpty(bench, 'after the first end, while the extended lease runs')
      await time.pass(time.ms(3))
      same(bodies(await popAll(bench, 1)), ['a'], 'bodies visible after the extended lease ran out')
    },
  },
  'queue: a heartbeat may shorten the lease': {
    law: '`heartbeat(p, v)` sets the end to now + v, also when that is sooner than before.',
    hint: 'whether the end is replaced or only ever raised.',
    needs: ['free lease length'],
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      const leased = await popOne(bench, 'the body', LONG)
      await queue.heartbeat(leased, time.ms(2))
      await time.pass(time.ms(3))
      same(bodies(await popAll(bench, 1)), ['a'], 'bodies visible after the shortened lease ran out')
    },
  },
  'queue: fail gives the body back after its delay': {
    law: '`fail(p, d)` ends the lease; the body is visible d from now, or immediately without d.',
    hint: 'whether fail clears the lease and sets the due time.',
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      await queue.fail(await popOne(bench, 'the body'), time.ms(4))
      await time.pass(time.ms(2))
      await isEmpty(bench, 'before the delay of the fail is over')
      await time.pass(time.ms(3))
      await queue.fail(await popOne(bench, 'the body, after the delay of the fail'))
      same(bodies(await popAll(bench, 1)), ['a'], 'bodies visible immediately after a fail without a delay')
    },
  },
  'queue: a dead letter is a copy': {
    law: '`deadLetter(body, error)` keeps a copy and leaves the leased message where it is.',
    hint: 'whether deadLetter removes or acks anything.',
    needs: ['deadLetter'],
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      const leased = await popOne(bench, 'the body', 2)
      await queue.deadLetter?.(leased.body, 'Error: boom')
      await time.pass(time.ms(3))
      const again = await popOne(bench, 'the message, after its copy went to the dead letters')
      await queue.ack(again)
      await isEmpty(bench, 'after the ack')
    },
  },
  'queue: size follows what is in the queue': {
    law: '`size()` is a cheap count: 0 when nothing is there, above 0 while visible bodies are.',
    hint: 'whether size counts what was acked or forgets what is visible.',
    needs: ['size'],
    async run(bench) {
      const { queue, time } = bench
      const size = async () => (await queue.size?.()) ?? Number.NaN
      same(await size(), 0, 'the size of an empty queue')
      for (let i = 0; i < 3; i += 1) await queue.push(`b${i}`)
      holds(await time.eventually(async () => (await size()) === 3), `size() is 3 after three pushes (${await size()})`)
      for (const pulled of await popAll(bench, 3)) await queue.ack(pulled)
      holds(await time.eventually(async () => (await size()) === 0), `size() is 0 after three acks (${await size()})`)
    },
  },
  'queue: a heartbeat reports a lost lease': {
    law: '`heartbeat` answers false for a lease that is not current, and anything else while it is.',
    hint: 'whether heartbeat reports the number of leases it extended.',
    needs: ['lease report'],
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      const old = await popOne(bench, 'the body', 2)
      holds((await queue.heartbeat(old, time.ms(2))) !== false, 'the heartbeat of a live lease does not answer false')
      await time.pass(time.ms(3))
      await popOne(bench, 'the body after the lapse')
      same(await queue.heartbeat(old, time.ms(2)), false, 'the answer to a heartbeat of a lost lease')
    },
  },
  'queue: pushMany is many pushes': {
    law: '`pushMany` keeps order, delays, dedupe keys and priorities as single pushes would.',
    hint: 'whether the options of each body reach the queue.',
    needs: ['pushMany'],
    async run(bench) {
      const { queue, time } = bench
      await queue.pushMany?.([])
      await queue.pushMany?.([
        { body: 'a' },
        { body: 'later', options: { delay: time.ms(3) } },
        { body: 'b', options: { dedupeKey: 'k' } },
        { body: 'c', options: { dedupeKey: 'k' } },
      ])
      same(bodies(await popAll(bench, 4)).toSorted(), ['a', 'b'], 'bodies visible immediately')
      await time.pass(time.ms(4))
      same(bodies(await popAll(bench, 4)), ['later'], 'bodies visible after the delay')
    },
  },
  'queue: ackMany acks each by its own handle': {
    law: '`ackMany` removes the bodies whose lease is current and ignores the others.',
    hint: 'whether a stale handle in the list stops or widens the rest.',
    needs: ['ackMany'],
    async run(bench) {
      const { queue, time } = bench
      for (const body of ['a', 'b', 'c']) await queue.push(body)
      const pulled = await popAll(bench, 3, 4)
      const keep = present(pulled.pop(), 'the third body')
      await queue.ackMany?.([])
      await queue.ackMany?.([...pulled, { ...keep, handle: 'nope' }])
      await time.pass(time.ms(5))
      same(bodies(await popAll(bench, 3)), [keep.body], 'bodies left after ackMany')
    },
  },
  'queue: heartbeatMany answers for each lease': {
    law: '`heartbeatMany` extends every current lease and answers in the order of its list, false for the lost ones.',
    hint: 'whether the answers align with the list.',
    needs: ['heartbeatMany'],
    async run(bench) {
      const { queue, time } = bench
      await queue.push('a')
      await queue.push('b')
      const [a, b] = await popAll(bench, 2, 3)
      const list = [
        present(a, 'the first body'),
        { body: 'x', handle: 'nope', attempt: 1 },
        present(b, 'the second body'),
      ]
      const answers = (await queue.heartbeatMany?.(list, time.ms(8))) ?? []
      same(
        answers.map((answer) => answer !== false),
        [true, false, true],
        'which leases are still held',
      )
      await time.pass(time.ms(5))
      await isEmpty(bench, 'while the extended leases run')
    },
  },
  'queue: a message keeps its id': {
    law: 'A pulled body has an id: the same in every delivery, never that of another message, and not enumerable.',
    hint: 'whether the id is stored with the message, and whether a spread of what pop returns is as the seed has it.',
    needs: ['starts'],
    async run(bench) {
      const { queue, time } = bench
      await queue.push('same')
      await queue.push('same')
      const first = await popAll(bench, 2, 2)
      const ids = first.map((pulled) => pulled.id)
      holds(
        ids.every((id) => typeof id === 'string' && id !== ''),
        `every message has an id (${ids})`,
      )
      holds(ids[0] !== ids[1], 'two messages with the same text have two ids')
      same(Object.keys(first[0] ?? {}).toSorted(), ['attempt', 'body', 'handle'], 'the enumerable members')
      await queue.fail(present(first[0], 'the first message'))
      await time.pass(time.ms(3))
      const again = await popAll(bench, 2)
      same(again.map((pulled) => pulled.id).toSorted(), ids.toSorted(), 'the ids after a fail and a lapse')
      for (const pulled of again) await queue.ack(pulled)
      await queue.push('same')
      const next = await popOne(bench, 'a message pushed later')
      holds(!ids.includes(next.id), 'the id of a message that was acked is not used again')
    },
  },
  'queue: counts the deliveries that began to run': {
    law: '`starts` counts the earlier deliveries for which `start` was called, each once; lapses and put-backs of others do not count.',
    hint: 'whether start is counted once for each lease, and forgotten by no fail and no lapse.',
    needs: ['starts'],
    async run(bench) {
      const { queue, time } = bench
      const start = present(queue.start, 'Queue.start')
      await queue.push('a')
      const first = await popOne(bench, 'the first delivery', 2)
      same(first.starts, 0, 'the starts before the first delivery')
      same(await start([first, { ...first, handle: 'nope' }]), [true, false], 'which leases are held')
      await start([first])
      await time.pass(time.ms(3))
      const second = await popOne(bench, 'the delivery after the lapse')
      same([second.starts, second.attempt], [1, 2], 'starts and attempt after a lapse of a started delivery')
      same(await start([first]), [false], 'a stale lease')
      await queue.fail(second)
      const third = await popOne(bench, 'the delivery after a fail', 2)
      same([third.starts, third.attempt], [1, 3], 'starts and attempt after a put-back that had not started')
      await time.pass(time.ms(3))
      const fourth = await popOne(bench, 'the delivery after another lapse')
      same(fourth.starts, 1, 'starts after a lapse of a delivery that had not started')
      await start([fourth])
      await queue.fail(fourth)
      same((await popOne(bench, 'the last delivery')).starts, 2, 'starts after a fail of a started delivery')
    },
  },
  'queue: keeps a note with a message': {
    law: 'The note given to fail comes with every later delivery, until another fail gives another one.',
    hint: 'whether fail stores its third argument, and a fail without one leaves it.',
    needs: ['starts'],
    async run(bench) {
      const { queue } = bench
      await queue.push('a')
      const first = await popOne(bench, 'the first delivery')
      same(first.note, undefined, 'the note before any was given')
      await queue.fail(first, undefined, 'as "noted"\n')
      const second = await popOne(bench, 'the second delivery')
      same(second.note, 'as "noted"\n', 'the note')
      await queue.fail(second)
      same((await popOne(bench, 'the third delivery')).note, 'as "noted"\n', 'the note after a fail without one')
    },
  },
  'queue: lists, redrives and discards dead letters': {
    law: '`deadLetters` lists what was dead-lettered, page by page; `redrive` moves letters back with their ids, and `discard` removes them.',
    hint: 'whether a letter with the id of another replaces it, and whether redrive removes and pushes in one step.',
    needs: ['dead letter list'],
    async run(bench) {
      const { queue } = bench
      const sink = present(queue.deadLetters, 'Queue.deadLetters')
      await sink.add({ id: 'm-1', body: 'one', error: 'boom', detail: '{"reason":"poison"}' })
      await queue.deadLetter?.('two', 'Error: boom')
      await sink.add({ id: 'm-3', body: 'three', error: 'boom' })
      await sink.add({ id: 'm-1', body: 'one again', error: 'boom, again' })
      same(await sink.count(), 3, 'the number of letters')
      const [two, three, ...rest] = await sink.list({ limit: 2 })
      same([two?.body, three?.body, rest.length], ['two', 'three', 0], 'the first page')
      const [one] = await sink.list({ after: present(three, 'the third letter').cursor, limit: 10 })
      same(
        [one?.id, one?.body, one?.error, one?.detail],
        ['m-1', 'one again', 'boom, again', undefined],
        'the last one',
      )
      same(await sink.redrive([present(one, 'the last letter'), three!]), 2, 'how many were redriven')
      same(await sink.redrive([one!, three!]), 0, 'how many were redriven by a repetition')
      const came = await popAll(bench, 2)
      same(
        came.map(({ body, id, attempt }) => [body, attempt, queue.start === undefined ? '' : id]).toSorted(),
        [
          ['one again', 1, queue.start === undefined ? '' : 'm-1'],
          ['three', 1, queue.start === undefined ? '' : 'm-3'],
        ],
        'the messages that came back',
      )
      same(await sink.discard([one!, two!]), 1, 'how many were discarded')
      same([await sink.count(), await sink.list({ limit: 10 })], [0, []], 'what is left')
    },
  },
  'queue: the highest priority comes first': {
    law: 'A visible body of higher priority is delivered before all of lower priority; equal ones in order of arrival.',
    hint: 'the order of the backlog: priority descending, due time, arrival.',
    needs: ['priority', 'arrival order'],
    async run(bench) {
      const { queue } = bench
      const pushes = { a0: 0, b9: 9, 'c-5': -5, d0: 0, e9: 9 }
      for (const [body, priority] of Object.entries(pushes)) await queue.push(body, { priority })
      same(bodies(await popAll(bench, 5)), ['b9', 'e9', 'a0', 'd0', 'c-5'], 'the order of delivery')
    },
  },
  'queue: its methods work detached': {
    law: 'A port is called without `this`, and { ...queue } is a queue too: every method is an own enumerable function.',
    hint: 'whether the factory returns a class instance or a method that reads `this`.',
    async run({ queue, time }) {
      const copy: Queue = { ...queue }
      const { push, pop, ack, fail, heartbeat } = copy
      for (const [name, method] of Object.entries({ push, pop, ack, fail, heartbeat }))
        holds(typeof method === 'function', `${name} survives an object spread`)
      await push('a')
      const [first] = await pop(1, time.ms(LONG))
      await heartbeat(present(first, 'the body popped by a detached pop'), time.ms(LONG))
      await fail(present(first, 'the body'))
      const [second] = await pop(1, time.ms(LONG))
      await ack(present(second, 'the body put back by a detached fail'))
      same(bodies(await pop(1, time.ms(LONG))), [], 'bodies left after a detached ack')
    },
  },
})
