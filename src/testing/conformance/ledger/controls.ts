import type { Attempt } from '../../../ports/item.js'
import type { Effect, Settlement } from '../../../ports/settlement.js'
import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  byLease,
  byStatus,
  cancelled,
  commitOne,
  complete,
  deadLetter,
  kinds,
  type LedgerBench,
  redrive,
  release,
  retry,
  setGroupValue,
  worker,
} from './bench.js'

/** What the cancel of a pending item commits. */
const cancelPending = (id: string, groupId: string): Settlement =>
  byStatus(id, 'pending', [cancelled(id, 'cancelled: not needed'), { do: 'leaveGroup', groupId, count: 1 }])

const markCancelled = (id: string): Settlement =>
  byStatus(id, 'running', [{ do: 'requestCancel', id, reason: 'not needed' }])

/** An error as it is stored, with a cause and the characters that stores get wrong. */
const DETAIL = {
  name: 'TypeError',
  message: 'it\'s "broken": \\ ünïcödé 🌊',
  code: 'E_BROKEN',
  stack: '    at charge (/app/charge.js:1:2)\n    at run (/app/run.js:3:4)',
  cause: { name: 'Error', message: 'the cause' },
} as const

export const controlClauses = clausesOn<LedgerBench>()({
  'ledger: a status guard holds only in that status': {
    law: 'Guard `status`: the effects happen if the item is in one of the statuses; otherwise, or when it is absent, `stale`.',
    hint: 'whether the status is compared in the same step as the effects.',
    async run(bench) {
      const { ledger } = bench
      const [a] = await bench.enqueueAndTake(['a'], { groupId: 'g' })
      const results = await ledger.commit([cancelPending('a', 'g'), cancelPending('absent', 'g'), redrive('a', 'g')])
      same(kinds(results), ['stale', 'stale', 'stale'], 'guards on pending and dead, with the item running or absent')
      same(await bench.openCount('g'), 1, 'the open count')
      await bench.apply('the end, still by its lease', [complete(a)])
      same(await commitOne(ledger, cancelPending('a', 'g')), { kind: 'stale' }, 'a cancel after the end')
    },
  },
  'ledger: a pending item is cancelled once, and never runs': {
    law: 'A cancel of a pending item dead-letters it as cancelled and takes it out of its group; a second cancel is stale.',
    hint: 'whether the item leaves the ready index and the delayed ones.',
    async run(bench) {
      const { ledger, time } = bench
      await bench.apply('two enqueues', [
        bench.enqueue('now', { groupId: 'g' }),
        bench.enqueue('later', { groupId: 'h' }, { delayMs: time.ms(3) }),
      ])
      const batch = [cancelPending('now', 'g'), cancelPending('later', 'h')]
      same(
        await bench.apply('two cancels', batch),
        [{ groupId: 'g' }, { groupId: 'h' }],
        'the groups closed by the cancels',
      )
      same(kinds(await ledger.commit(batch)), ['stale', 'stale'], 'the same again')
      const { status, ending, error } = await bench.view('now')
      same([status, ending, error], ['dead', 'cancelled', 'cancelled: not needed'], 'status, ending and error')
      await bench.nothingToClaim('after the cancel')
      await time.pass(time.ms(5))
      await bench.nothingToClaim('when the delayed one would have been due')
      same([await bench.openCount('g'), await bench.openCount('h')], [0, 0], 'the open counts')
    },
  },
  'ledger: a heartbeat notifies the holder of an item of its cancel': {
    law: '`requestCancel` marks a running item; extend then answers `cancelled` to its holder, whose lease still settles.',
    hint: 'whether extend reads the mark.',
    async run(bench) {
      const { ledger, time } = bench
      const [a, b] = await bench.enqueueAndTake(['a', 'b'])
      const person = await bench.again()
      await bench.apply('the cancel, by another process', [markCancelled('a')], person)
      const held = [a, b].map(({ lease }) => ({ lease, running: true }))
      same(await ledger.extend(held, time.ms(30), worker()), ['cancelled', 'held'], 'the answers to the heartbeat')
      const end = byLease(a.lease, [cancelled('a'), { do: 'leaveGroup', groupId: 'g-a', count: 1 }])
      same(await bench.apply('the end by the holder', [end]), [{ groupId: 'g-a' }], 'groups closed by it')
      same((await bench.view('a')).ending, 'cancelled', 'its ending')
    },
  },
  'ledger: a cancel outlives a run that did not see it': {
    law: 'The view has the mark of a cancel, which stays when the run ends otherwise: the next claim gets the reason.',
    hint: 'whether a retry, a release or a lapse drops the mark, and whether a claim hands it out.',
    async run(bench) {
      const { ledger, time } = bench
      const three = ['retried', 'released', 'lapsed'] as const
      const [retried, released] = await bench.enqueueAndTake(three, {}, { leaseTicks: 20 })
      const held = [retried, released].map(({ lease }) => ({ lease, running: true }))
      await bench.apply('three cancels', three.map(markCancelled))
      same((await bench.view('retried')).cancelReason, 'not needed', 'the reason, in the view of a running item')
      await ledger.extend(held, time.ms(100), worker())
      await bench.apply('a retry and a release', [retry(retried, 0), release(released)])
      await time.pass(time.ms(25))
      const again = await ledger.claim({
        queues: [{ queue: bench.queue, max: 5 }],
        leaseMs: time.ms(50),
        worker: 'w2',
      })
      const reasons = new Map(again.items.map(({ lease, cancelReason }) => [lease.id, cancelReason]))
      for (const id of three) {
        // A ledger may also end it right there, where it reads the mark anyway.
        const { ending } = await bench.view(id)
        holds(
          reasons.get(id) === 'not needed' || ending === 'cancelled',
          `the ${id} item comes with its reason, or has ended as cancelled (${String(reasons.get(id))}, ${String(ending)})`,
        )
      }
    },
  },
  'ledger: a redriven item is pending again, from its first attempt': {
    law: '`redrive` makes a dead item pending with attempt 1 and no lapses or crashes; its deadline in the past is cleared.',
    hint: 'what redrive resets: attempt, ending, error, counters, expiry, deadline.',
    needs: ['redrive and delete'],
    async run(bench) {
      const { ledger, time } = bench
      const now = time.clock.now()
      const past = bench.item('past', { deadline: now + time.ms(1), groupId: 'g' })
      const future = bench.item('future', { deadline: now + time.ms(100_000) })
      await bench.apply('two enqueues', [bench.enqueue(past), bench.enqueue(future)])
      await bench.take(['past', 'future'], { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [a, b] = await bench.take(['past', 'future'])
      await bench.apply('a retry', [retry(a, 0)])
      const [again] = await bench.take(['past'])
      await bench.apply('the ends', [deadLetter(again, 'Error: x', [], time.ms(20)), deadLetter(b)])
      await bench.apply('two redrives', [redrive('past', 'g', time.ms(4)), redrive('future', 'g-future')])
      const { status, ending, error, endAt } = await bench.view('past')
      same([status, ending, error, endAt], ['pending', undefined, undefined, undefined], 'status, ending, error, end')
      await bench.take(['future'])
      await time.pass(time.ms(5))
      const [first] = await bench.take(['past'])
      same(first.envelope.attempt, 1, 'its attempt')
      same([first.lapses, first.crashes], [0, 0], 'its lapses and crashes')
      same(first.envelope.deadline, undefined, 'a deadline that had passed')
      holds(first.lease.fence > again.lease.fence, 'its fence goes on rising')
      same((await ledger.read(['future']))[0]?.envelope.deadline, future.deadline, 'a deadline that had not')
      await time.pass(time.ms(20))
      holds((await ledger.read(['past']))[0] !== undefined, 'it is not removed when its old retention is over')
    },
  },
  'ledger: a redriven item opens its group again': {
    law: 'A group that had closed is open again after a redrive, and closes again, once, when the item ends.',
    hint: 'whether a closed group can be opened, and reports its next close.',
    needs: ['redrive and delete'],
    async run(bench) {
      const { ledger } = bench
      const [a] = await bench.enqueueAndTake(['a'], { groupId: 'g' })
      same(await bench.apply('the end', [deadLetter(a)]), [{ groupId: 'g' }], 'groups closed by it')
      same(
        kinds(await ledger.commit([redrive('a', 'g'), redrive('a', 'g')])),
        ['applied', 'stale'],
        'two concurrent redrives',
      )
      same(await bench.openCount('g'), 1, 'the open count after the redrive')
      const [again] = await bench.take(['a'])
      same(await bench.apply('the second end', [complete(again, '"ok"')]), [{ groupId: 'g' }], 'groups closed by it')
      const { status, result, error } = await bench.view('a')
      same([status, result, error], ['completed', '"ok"', undefined], 'status, result and error')
    },
  },
  'ledger: a group that a redrive opened is kept while it is open': {
    law: 'A redrive cancels the expiry of its group, also of a root that was the only item in the group of its id.',
    hint: 'whether the expiry that the close had set is removed.',
    needs: ['native ledger', 'redrive and delete'],
    async run(bench) {
      const { time } = bench
      for (const groupId of ['a', 'g']) {
        const [a] = await bench.enqueueAndTake(['a'], { groupId })
        const value: Effect = setGroupValue(groupId, '"said"')
        await bench.apply('the end', [deadLetter(a, 'Error: boom', [value], time.ms(10))])
        await bench.apply('the redrive', [redrive('a', groupId)])
        await time.pass(time.ms(11))
        same(await bench.openCount(groupId), 1, `the open count of ${groupId} when it would have been forgotten`)
        const [again] = await bench.take(['a'])
        const closed = await bench.apply('the second end', [complete(again, '1', [], time.ms(2))])
        same(closed, [{ groupId, value: '"said"' }], 'the groups closed by it')
        await time.pass(time.ms(3))
      }
    },
  },
  'ledger: a group that has closed stays closed when its items are erased': {
    law: 'Deleting an ended item changes no count: its group stays closed, also where it was the only item in the group of its id.',
    hint: 'what becomes of a group that lives on the row of its root.',
    needs: ['native ledger', 'redrive and delete'],
    async run(bench) {
      for (const groupId of ['a', 'g']) {
        const [a] = await bench.enqueueAndTake(['a'], { groupId })
        await bench.apply('the end', [deadLetter(a)])
        const discard: Settlement = {
          guard: { by: 'status', id: 'a', in: ['dead'] },
          effects: [{ do: 'delete', id: 'a' }],
        }
        same(await bench.apply('the removal', [discard]), [], 'groups closed by the removal')
        same(await bench.openCount(groupId), 0, `the open count of ${groupId}`)
      }
    },
  },
  'ledger: nothing remains of an erased item': {
    law: '`delete` removes the item and all that belongs to it; its id is free, and a lease on it is worth nothing.',
    hint: 'every place an item is kept: row, index, result, error, history.',
    needs: ['redrive and delete'],
    async run(bench) {
      const { ledger, time } = bench
      const all = ['pending', 'later', 'dead', 'running'].map((id) =>
        bench.enqueue(id, {}, id === 'later' ? { delayMs: time.ms(3) } : {}),
      )
      await bench.apply('four enqueues', all)
      const [pending, dead, running] = await bench.take(['pending', 'dead', 'running'])
      await bench.apply('a retry and a dead-lettering', [retry(pending, 0), deadLetter(dead)])
      const erase = (id: string): Settlement => ({
        guard: { by: 'status', id, in: ['pending', 'running', 'dead'] },
        effects: [
          { do: 'delete', id },
          { do: 'leaveGroup', groupId: `g-${id}`, count: 1 },
        ],
      })
      await bench.apply('four erasures', ['pending', 'later', 'dead', 'running'].map(erase))
      const none = [undefined, undefined, undefined, undefined]
      same([...(await ledger.read(['pending', 'later', 'dead', 'running']))], none, 'the items read')
      same((await commitOne(ledger, complete(running))).kind, 'stale', 'the end of a run whose item was erased')
      await time.pass(time.ms(5))
      await bench.nothingToClaim('after the erasures')
      same((await commitOne(ledger, bench.enqueue('dead'))).kind, 'applied', 'an enqueue of a free id')
      const [fresh] = await bench.take(['dead'])
      same(
        [fresh.envelope.attempt, fresh.lapses, fresh.crashes],
        [1, 0, 0],
        'attempt, lapses and crashes of the new item',
      )
      if (ledger.inspect !== undefined) same([...(await ledger.inspect.attempts('dead'))], [], 'its history')
    },
  },
  'ledger: a schedule fires once': {
    law: 'Guard `schedule`: of any number of processes that fire a schedule for one instant, exactly one does.',
    hint: 'whether nextAt is compared and replaced in one step.',
    async run(bench) {
      const { ledger } = bench
      const other = await bench.again()
      const fire = (at: number | undefined, nextAt: number, id: string): Settlement => ({
        guard: { by: 'schedule', name: 'nightly', at },
        effects: [
          { do: 'schedule', name: 'nightly', spec: '0 3 * * *', nextAt },
          { do: 'joinGroup', groupId: `g-${id}`, count: 1 },
          bench.enqueueEffect(id),
        ],
      })
      const all = async (settlement: Settlement) =>
        kinds(await Promise.all([ledger, other, ledger, other].map((l) => commitOne(l, settlement)))).filter(
          (kind) => kind === 'applied',
        ).length
      same(
        (await commitOne(ledger, fire(5000, 9000, 'too early'))).kind,
        'stale',
        'a fire of a schedule that does not exist',
      )
      same(await all(fire(undefined, 1000, 'first')), 1, 'of four that create it, those applied')
      same((await commitOne(ledger, fire(undefined, 2000, 'again'))).kind, 'stale', 'creating it again')
      same(await all(fire(1000, 2000, 'second')), 1, 'of four that fire it at 1000, those applied')
      same((await commitOne(ledger, fire(1000, 3000, 'late'))).kind, 'stale', 'firing it at 1000 once more')
      same(await all(fire(2000, 3000, 'third')), 1, 'of four that fire it at 2000, those applied')
      await bench.take(['first', 'second', 'third'])
      if (ledger.schedules === undefined) return
      same(
        [...(await other.schedules!(['nightly', 'absent']))],
        [{ spec: '0 3 * * *', nextAt: 3000 }, undefined],
        'the records of a schedule and of none',
      )
      const never = 8_640_000_000_000_000
      await bench.apply('the end of the schedule', [
        {
          guard: { by: 'schedule', name: 'nightly', at: 3000 },
          effects: [{ do: 'schedule', name: 'nightly', spec: 'next()', nextAt: never }],
        },
      ])
      same([...(await other.schedules!(['nightly']))], [{ spec: 'next()', nextAt: never }], 'the record of its end')
      if (ledger.inspect?.schedules === undefined) return
      same(
        [...(await ledger.inspect.schedules())],
        [{ name: 'nightly', spec: 'next()', nextAt: never }],
        'the schedules that there are',
      )
    },
  },
  'ledger: the history of an item is kept': {
    law: '`recordAttempt` adds to the history of the item, in order and whole, with the detail of its error; retries and a redrive keep it.',
    hint: 'where attempts are written, and what redrive clears.',
    needs: ['inspect', 'redrive and delete'],
    async run(bench) {
      const { ledger, time } = bench
      const inspect = ledger.inspect
      holds(inspect !== undefined, 'the ledger has `inspect`')
      await bench.enqueueItems(['a'], { groupId: 'g' })
      const was = (attempt: number, error?: string): Attempt => ({
        attempt,
        startedAt: time.clock.now(),
        endedAt: time.clock.now(),
        worker: 'w1',
        ...(error === undefined
          ? {}
          : { class: 'retryable', rule: 'default', error, fingerprint: 'f1', detail: DETAIL }),
      })
      const [first] = await bench.take(['a'])
      const one = was(1, 'Error: one')
      await bench.apply('', [
        byLease(first.lease, [{ do: 'recordAttempt', id: 'a', was: one }, ...retry(first, 0).effects]),
      ])
      const [second] = await bench.take(['a'])
      const two = was(2, 'Error: two')
      await bench.apply('the end', [deadLetter(second, 'Error: two', [{ do: 'recordAttempt', id: 'a', was: two }])])
      same([...(await inspect.attempts('a'))], [one, two], 'the history of a dead item')
      await bench.apply('the redrive', [redrive('a', 'g')])
      const [third] = await bench.take(['a'])
      const three = was(1)
      await bench.apply('the success', [complete(third, '1', [{ do: 'recordAttempt', id: 'a', was: three }])])
      same([...(await inspect.attempts('a'))], [one, two, three], 'the history after a redrive')
      same([...(await inspect.attempts('absent'))], [], 'the history of an item that does not exist')
    },
  },
})
