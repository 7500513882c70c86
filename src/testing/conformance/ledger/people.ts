import type { Attempt } from '../../../ports/item.js'
import type { Effect, Settlement } from '../../../ports/settlement.js'
import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  byLease,
  commitOne,
  DAY,
  enqueue,
  finish,
  item,
  kinds,
  type LedgerBench,
  nothingToClaim,
  openCount,
  park,
  push,
  release,
  retry,
  take,
  view,
  worker,
} from './bench.js'

/** What a person's cancel of a pending item commits. */
const cancelPending = (id: string, groupId: string): Settlement => ({
  guard: { by: 'status', id, in: ['pending'] },
  effects: [
    { do: 'park', id, ending: 'cancelled', class: 'unclassified', error: 'cancelled: not needed', keepMs: DAY },
    { do: 'closeGroup', groupId, by: 1 },
  ],
})

const markCancelled = (id: string): Settlement => ({
  guard: { by: 'status', id, in: ['running'] },
  effects: [{ do: 'cancel', id, reason: 'not needed' }],
})

const redrive = (id: string, groupId: string, delayMs = 0): Settlement => ({
  guard: { by: 'status', id, in: ['dead'] },
  effects: [
    { do: 'openGroup', groupId, by: 1 },
    { do: 'reopen', id, delayMs },
  ],
})

export const peopleClauses = clausesOn<LedgerBench>()({
  'ledger: a status guard holds only in that status': {
    law: 'Guard `status`: the effects happen if the item is in one of the statuses; otherwise, or when it is absent, `stale`.',
    look: 'whether the status is compared in the same step as the effects.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      const results = await ledger.commit([cancelPending('a', 'g'), cancelPending('nobody', 'g'), redrive('a', 'g')])
      same(kinds(results), ['stale', 'stale', 'stale'], 'guards on pending and dead, with the item running or absent')
      same(await openCount(bench, 'g'), 1, 'the open count')
      await applied(ledger, [finish(a)], 'the end, still by its lease')
      same(await commitOne(ledger, cancelPending('a', 'g')), { kind: 'stale' }, 'a cancel after the end')
    },
  },
  'ledger: a pending item is cancelled once, and never runs': {
    law: 'A cancel of a pending item parks it as cancelled and closes its place in the group; a second one is stale.',
    look: 'whether the item leaves the ready index and the delayed ones.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(
        ledger,
        [
          enqueue(bench, item(bench, 'now', { groupId: 'g' })),
          enqueue(bench, item(bench, 'later', { groupId: 'h' }), { delayMs: time.ms(3) }),
        ],
        'two enqueues',
      )
      const batch = [cancelPending('now', 'g'), cancelPending('later', 'h')]
      same(
        await applied(ledger, batch, 'two cancels'),
        [{ groupId: 'g' }, { groupId: 'h' }],
        'the groups closed by the cancels',
      )
      same(kinds(await ledger.commit(batch)), ['stale', 'stale'], 'the same again')
      const { status, ending, error } = await view(bench, 'now')
      same([status, ending, error], ['dead', 'cancelled', 'cancelled: not needed'], 'status, ending and error')
      await nothingToClaim(bench, 'after the cancel')
      await time.pass(time.ms(5))
      await nothingToClaim(bench, 'when the delayed one would have been due')
      same([await openCount(bench, 'g'), await openCount(bench, 'h')], [0, 0], 'the open counts')
    },
  },
  'ledger: the holder of a cancelled item hears it with its heartbeat': {
    law: '`cancel` marks a running item; extend then answers `cancelled` to its holder, whose lease still settles.',
    look: 'whether extend reads the mark.',
    async run(bench) {
      const { ledger, time } = bench
      const both = ['a', 'b'].map((id) => enqueue(bench, item(bench, id)))
      await applied(ledger, both, 'two enqueues')
      const [a, b] = await take(bench, ['a', 'b'])
      const person = await bench.again()
      await applied(person, [markCancelled('a')], 'the cancel, by another process')
      const held = [a, b].map(({ lease }) => ({ lease, running: true }))
      same(await ledger.extend(held, time.ms(30), worker()), ['cancelled', 'held'], 'the answers to the heartbeat')
      const end = byLease(a.lease, [
        { do: 'park', id: 'a', ending: 'cancelled', class: 'unclassified', error: 'cancelled', keepMs: DAY },
        { do: 'closeGroup', groupId: 'g-a', by: 1 },
      ])
      same(await applied(ledger, [end], 'the end by the holder'), [{ groupId: 'g-a' }], 'groups closed by it')
      same((await view(bench, 'a')).ending, 'cancelled', 'its ending')
    },
  },
  'ledger: a cancel outlives a run that did not hear of it': {
    law: 'The mark of a cancel stands in the view, and stays when the run ends otherwise: who claims the item next is told why.',
    look: 'whether a retry, a put-back or a lapse drops the mark, and whether a claim hands it out.',
    async run(bench) {
      const { ledger, time } = bench
      const three = ['retried', 'released', 'lapsed'] as const
      await applied(
        ledger,
        three.map((id) => enqueue(bench, item(bench, id))),
        'three enqueues',
      )
      const [retried, released] = await take(bench, three, { leaseTicks: 20 })
      const held = [retried, released].map(({ lease }) => ({ lease, running: true }))
      await applied(ledger, three.map(markCancelled), 'three cancels')
      same((await view(bench, 'retried')).cancelled, 'not needed', 'the reason, in the view of one that runs')
      await ledger.extend(held, time.ms(100), worker())
      await applied(ledger, [retry(retried, 0), release(released)], 'a retry and a put-back')
      await time.pass(time.ms(25))
      const again = await ledger.claim({
        from: [{ queue: bench.queue, max: 5 }],
        leaseMs: time.ms(50),
        worker: 'w2',
      })
      const told = new Map(again.items.map(({ lease, cancelled }) => [lease.id, cancelled]))
      for (const id of three) {
        // A ledger may also end it there and then, where it has to look at the mark anyway.
        const { ending } = await view(bench, id)
        holds(
          told.get(id) === 'not needed' || ending === 'cancelled',
          `the one that was ${id} comes with its reason, or has ended as cancelled (${String(told.get(id))}, ${String(ending)})`,
        )
      }
    },
  },
  'ledger: a redriven item is pending again, from its first attempt': {
    law: '`reopen` makes a dead item pending with attempt 1 and no lapses or crashes; its deadline in the past is cleared.',
    look: 'what reopen resets: attempt, ending, error, counters, expiry, deadline.',
    needs: ['redrive and erase'],
    async run(bench) {
      const { ledger, time } = bench
      const now = time.clock.now()
      const past = item(bench, 'past', { deadline: now + time.ms(1), groupId: 'g' })
      const future = item(bench, 'future', { deadline: now + time.ms(100_000) })
      await applied(ledger, [enqueue(bench, past), enqueue(bench, future)], 'two enqueues')
      await take(bench, ['past', 'future'], { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [a, b] = await take(bench, ['past', 'future'])
      await applied(ledger, [retry(a, 0)], 'a retry')
      const [again] = await take(bench, ['past'])
      await applied(ledger, [park(again, 'Error: x', [], time.ms(20)), park(b)], 'the ends')
      await applied(ledger, [redrive('past', 'g', time.ms(4)), redrive('future', 'g-future')], 'two redrives')
      const { status, ending, error, endAt } = await view(bench, 'past')
      same([status, ending, error, endAt], ['pending', undefined, undefined, undefined], 'status, ending, error, end')
      await take(bench, ['future'])
      await time.pass(time.ms(5))
      const [first] = await take(bench, ['past'])
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
    look: 'whether a closed group can be opened, and tells its next close.',
    needs: ['redrive and erase'],
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      same(await applied(ledger, [park(a)], 'the end'), [{ groupId: 'g' }], 'groups closed by it')
      same(
        kinds(await ledger.commit([redrive('a', 'g'), redrive('a', 'g')])),
        ['applied', 'stale'],
        'two redrives at once',
      )
      same(await openCount(bench, 'g'), 1, 'the open count after the redrive')
      const [again] = await take(bench, ['a'])
      same(await applied(ledger, [finish(again, '"ok"')], 'the second end'), [{ groupId: 'g' }], 'groups closed by it')
      const { status, result, error } = await view(bench, 'a')
      same([status, result, error], ['success', '"ok"', undefined], 'status, result and error')
    },
  },
  'ledger: a group that a redrive opened is kept while it is open': {
    law: 'A redriven item takes its group out of what is soon forgotten, also a root that was alone in a group of its name.',
    look: 'whether the end of its record, which its close had set, is taken back.',
    needs: ['native ledger', 'redrive and erase'],
    async run(bench) {
      const { ledger, time } = bench
      for (const groupId of ['a', 'g']) {
        await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId }))], 'the enqueue')
        const [a] = await take(bench, ['a'])
        const value: Effect = { do: 'contribute', groupId, value: '"said"', final: false }
        await applied(ledger, [park(a, 'Error: boom', [value], time.ms(10))], 'the end')
        await applied(ledger, [redrive('a', groupId)], 'the redrive')
        await time.pass(time.ms(11))
        same(await openCount(bench, groupId), 1, `the open count of ${groupId} when it would have been forgotten`)
        const [again] = await take(bench, ['a'])
        const closed = await applied(ledger, [finish(again, '1', [], time.ms(2))], 'the second end')
        same(closed, [{ groupId, value: '"said"' }], 'the groups closed by it')
        await time.pass(time.ms(3))
      }
    },
  },
  'ledger: a group that has closed stays closed when its items are erased': {
    law: 'To erase an item that has ended moves no count: its group stays, closed, also where it was alone in a group of its name.',
    look: 'what becomes of a group that lives on the row of its root.',
    needs: ['native ledger', 'redrive and erase'],
    async run(bench) {
      const { ledger } = bench
      for (const groupId of ['a', 'g']) {
        await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId }))], 'the enqueue')
        const [a] = await take(bench, ['a'])
        await applied(ledger, [park(a)], 'the end')
        const discard: Settlement = {
          guard: { by: 'status', id: 'a', in: ['dead'] },
          effects: [{ do: 'erase', id: 'a' }],
        }
        same(await applied(ledger, [discard], 'the removal'), [], 'groups closed by the removal')
        same(await openCount(bench, groupId), 0, `the open count of ${groupId}`)
      }
    },
  },
  'ledger: nothing remains of an erased item': {
    law: '`erase` removes the item and all that belongs to it; its id is free, and a lease on it is worth nothing.',
    look: 'every place an item is kept: row, index, result, error, history.',
    needs: ['redrive and erase'],
    async run(bench) {
      const { ledger, time } = bench
      const all = ['pending', 'later', 'dead', 'running'].map((id) =>
        enqueue(bench, item(bench, id), id === 'later' ? { delayMs: time.ms(3) } : {}),
      )
      await applied(ledger, all, 'four enqueues')
      const [pending, dead, running] = await take(bench, ['pending', 'dead', 'running'])
      await applied(ledger, [retry(pending, 0), park(dead)], 'a retry and a park')
      const erase = (id: string): Settlement => ({
        guard: { by: 'status', id, in: ['pending', 'running', 'dead'] },
        effects: [
          { do: 'erase', id },
          { do: 'closeGroup', groupId: `g-${id}`, by: 1 },
        ],
      })
      await applied(ledger, ['pending', 'later', 'dead', 'running'].map(erase), 'four erasures')
      const none = [undefined, undefined, undefined, undefined]
      same([...(await ledger.read(['pending', 'later', 'dead', 'running']))], none, 'the items read')
      same((await commitOne(ledger, finish(running))).kind, 'stale', 'the end of a run whose item was erased')
      await time.pass(time.ms(5))
      await nothingToClaim(bench, 'after the erasures')
      same((await commitOne(ledger, enqueue(bench, item(bench, 'dead')))).kind, 'applied', 'an enqueue of a free id')
      const [fresh] = await take(bench, ['dead'])
      same(
        [fresh.envelope.attempt, fresh.lapses, fresh.crashes],
        [1, 0, 0],
        'attempt, lapses and crashes of the new item',
      )
      if (ledger.inspect !== undefined) same([...(await ledger.inspect.attempts('dead'))], [], 'its history')
    },
  },
  'ledger: a schedule fires once': {
    law: 'Guard `fire`: of any number of processes that fire a schedule for one instant, exactly one does.',
    look: 'whether nextAt is compared and replaced in one step.',
    async run(bench) {
      const { ledger } = bench
      const other = await bench.again()
      const fire = (at: number | undefined, nextAt: number, id: string): Settlement => ({
        guard: { by: 'fire', name: 'nightly', at },
        effects: [
          { do: 'schedule', name: 'nightly', spec: '0 3 * * *', nextAt },
          { do: 'openGroup', groupId: `g-${id}`, by: 1 },
          push(bench, item(bench, id)),
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
      await take(bench, ['first', 'second', 'third'])
      if (ledger.schedules === undefined) return
      same(
        [...(await other.schedules!(['nightly', 'nobody']))],
        [{ spec: '0 3 * * *', nextAt: 3000 }, undefined],
        'the records of a schedule and of none',
      )
      const never = 8_640_000_000_000_000
      await applied(
        ledger,
        [
          {
            guard: { by: 'fire', name: 'nightly', at: 3000 },
            effects: [{ do: 'schedule', name: 'nightly', spec: 'next()', nextAt: never }],
          },
        ],
        'the end of the schedule',
      )
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
    law: '`recordAttempt` adds to the history of the item, in order; retries and a redrive keep it.',
    look: 'where attempts are written, and what reopen clears.',
    needs: ['inspect', 'redrive and erase'],
    async run(bench) {
      const { ledger, time } = bench
      const inspect = ledger.inspect
      holds(inspect !== undefined, 'the ledger has `inspect`')
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const was = (attempt: number, error?: string): Attempt => ({
        attempt,
        startedAt: time.clock.now(),
        endedAt: time.clock.now(),
        worker: 'w1',
        ...(error === undefined ? {} : { class: 'retryable', rule: 'default', error, fingerprint: 'f1' }),
      })
      const [first] = await take(bench, ['a'])
      const one = was(1, 'Error: one')
      await applied(
        ledger,
        [byLease(first.lease, [{ do: 'recordAttempt', id: 'a', was: one }, ...retry(first, 0).effects])],
        '',
      )
      const [second] = await take(bench, ['a'])
      const two = was(2, 'Error: two')
      await applied(ledger, [park(second, 'Error: two', [{ do: 'recordAttempt', id: 'a', was: two }])], 'the end')
      same([...(await inspect.attempts('a'))], [one, two], 'the history of a dead item')
      await applied(ledger, [redrive('a', 'g')], 'the redrive')
      const [third] = await take(bench, ['a'])
      const three = was(1)
      await applied(ledger, [finish(third, '1', [{ do: 'recordAttempt', id: 'a', was: three }])], 'the success')
      same([...(await inspect.attempts('a'))], [one, two, three], 'the history after a redrive')
      same([...(await inspect.attempts('nobody'))], [], 'the history of an item that does not exist')
    },
  },
})
