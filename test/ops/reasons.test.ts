import { describe, expect, it } from 'vitest'
import { pauseOf } from '../../src/ops/fleet/pauses.js'
import { type ExplainFacts, explain } from '../../src/ops/items/explain.js'
import type { ItemView } from '../../src/ports/inspect.js'
import type { DeadEnding } from '../../src/ports/item.js'
import type { SeenWorker } from '../../src/work/worker/worker-registration.js'

const now = Date.UTC(2026, 0, 1, 12)
const worker: SeenWorker = {
  id: 'w-1',
  host: 'host-7',
  version: '1',
  types: ['mail'],
  queues: ['default'],
  seenAt: now - 1_000,
}
const view = (more: Partial<ItemView> & { readonly head?: Partial<ItemView['envelope']> } = {}): ItemView => {
  const { head, ...rest } = more
  const at = now - 60_000
  const envelope = { id: 'i', type: 'mail', groupId: 'i', queueAt: at, startAt: at, attempt: 1, priority: 0, ...head }
  return { envelope, queue: 'default', status: 'pending', dueAt: envelope.startAt, ...rest }
}
const facts = (seen: ItemView, more: Partial<ExplainFacts> = {}): ExplainFacts => ({
  id: 'i',
  now,
  view: seen,
  workers: [worker],
  gate: undefined,
  members: new Map(),
  lastError: undefined,
  paused: {},
  ...more,
})
const reasons = (seen: ItemView, more: Partial<ExplainFacts> = {}) => explain(facts(seen, more))
const codes = (seen: ItemView, more: Partial<ExplainFacts> = {}) => reasons(seen, more).map(({ code }) => code)

describe('an item that could run', () => {
  it('waits for its turn when a worker serves it', () => {
    expect(codes(view())).toEqual(['waiting'])
    expect(reasons(view())[0].text).toContain('for 1 m')
  })

  it('says that it was cancelled in its last run, and does not run again', () => {
    const again = view({ cancelReason: 'too many', head: { attempt: 2 } })
    expect(reasons(again)).toEqual([
      {
        code: 'stopping',
        text: 'It was cancelled (too many) during its last run: it does not run again, and ends as cancelled when a worker claims it.',
        remedy: 'There is nothing to do. Cancel it once more to end it now.',
      },
    ])
    expect(codes(again, { workers: [] })).toEqual(['stopping', 'no-worker'])
    const [later] = reasons({ ...again, dueAt: now + 60_000 })
    expect(later.text).toContain('ends as cancelled at 2026-01-01 12:01:00Z, in 1 m.')
  })

  it('gives every reason, the deciding one first', () => {
    const entry = { at: now - 7_500_000, who: 'ana', why: 'the bank is closed' }
    const paused = { queue: { entry }, type: {} }
    expect(reasons(view(), { paused, workers: [] })).toEqual([
      {
        code: 'paused',
        text: 'The queue "default" is paused: ana paused it at 2026-01-01 09:55:00Z, 2 h 5 m ago (the bank is closed).',
        remedy: 'Resume the queue "default": what waits there runs again.',
      },
      {
        code: 'paused',
        text: 'The type "mail" is paused.',
        remedy: 'Resume the type "mail": what waits there runs again.',
      },
      expect.objectContaining({ code: 'no-worker' }),
    ])
  })

  it('names the host where a program has paused', () => {
    const [reason] = reasons(view(), { paused: { queue: { entry: { at: now, who: 'w-1', why: '' } } } })
    expect(reason.text).toBe('The queue "default" is paused: host-7 paused it at 2026-01-01 12:00:00Z, 0 ms ago.')
  })

  it('says that it will expire instead of run', () => {
    expect(codes(view({ head: { deadline: now - 1 } }))).toEqual(['deadline'])
    const late = view({ dueAt: now + 60_000, head: { deadline: now + 30_000 } })
    expect(codes(late)).toEqual(['scheduled', 'deadline'])
    expect(codes(view({ dueAt: now + 60_000, head: { deadline: now + 60_000 } }))).toEqual(['scheduled'])
  })

  it('has a type that no worker handles: the only reason once it is due, the second one before', () => {
    const other = { workers: [{ ...worker, types: ['other'] }] }
    expect(codes(view(), other)).toEqual(['unknown-type'])
    expect(codes(view({ dueAt: now + 5_000 }), other)).toEqual(['scheduled', 'unknown-type'])
  })

  it('says since when no live worker handles it, which workers there are, what ends it, and what to do', () => {
    const many = ['a', 'b', 'c', 'd', 'e', 'f']
    const workers = [
      { ...worker, types: ['@work/dependency', ...many] },
      { ...worker, id: 'w-2', types: [] },
      { ...worker, id: 'w-3', types: ['x'] },
      { ...worker, id: 'w-4', types: ['y'] },
      { ...worker, id: 'w-5', types: ['mail'], seenAt: now - 61_000 },
      { ...worker, id: 'w-6', types: ['mail'], queues: ['bulk'] },
    ]
    expect(reasons(view({ head: { deadline: now + 60_000 } }), { workers })).toEqual([
      {
        code: 'unknown-type',
        text:
          'No live worker of queue "default" handles type "mail": it has waited since 2026-01-01 11:59:00Z, 1 m ago, and stays where it is. ' +
          'Alive there: host-7 (worker w-1, types "a", "b", "c", "d", "e" and 1 more), host-7 (worker w-2, no types), ' +
          'host-7 (worker w-3, types "x") and 1 more.',
        remedy:
          'Start a worker that has "mail" in its `work` list. Otherwise cancel it, or start a worker with unknownTypeTimeout: ' +
          'it dead-letters items that have waited for that long. At its deadline, 2026-01-01 12:01:00Z, it ends as expired.',
      },
    ])
    // Before its time it does not wait for a worker.
    expect(reasons(view({ dueAt: now + 5_000 }), { workers })[1]?.text).toMatch(
      /^No live worker of queue "default" handles type "mail"\. /,
    )
  })
})

describe('an item that a worker holds', () => {
  const held = (more: Partial<ItemView>) =>
    view({ status: 'running', worker: 'w-1', leaseUntil: now + 30_000, ...more })

  it('runs, or was only taken', () => {
    expect(reasons(held({ runAt: now - 5_000 }))[0].text).toBe(
      'It has been running on host-7 (worker w-1) for 5 s, attempt 1, lease until 2026-01-01 12:00:30Z.',
    )
    expect(reasons(held({ runAt: now - 5_000, running: true }))).toEqual(reasons(held({ runAt: now - 5_000 })))
    expect(reasons(held({ runAt: now - 3_000, running: false }))).toEqual([
      {
        code: 'taken',
        text: 'It was taken 3 s ago by host-7 (worker w-1), whose last heartbeat did not report it as running; lease until 2026-01-01 12:00:30Z.',
        remedy: expect.stringContaining('heartbeats report every few seconds'),
      },
    ])
  })

  it('counts as running where heartbeats are not stored', () => {
    const plain = { status: 'running', runAt: now - 5_000 } as const
    expect(reasons(view(plain), { workers: undefined })[0].text).toBe(
      'It has been running on worker (unknown) for 5 s, attempt 1.',
    )
  })

  it('was cut off, and how often before', () => {
    const [reason] = reasons(held({ leaseUntil: now - 12_000, crashes: 2 }))
    expect(reason).toMatchObject({
      code: 'lease-lapsed',
      text: 'Its run was cut off: the lease of host-7 (worker w-1) ended 12 s ago, and it had been cut off 2 times before.',
    })
    expect(reasons(held({ leaseUntil: now - 12_000, running: false }))[0]).toMatchObject({
      code: 'lease-lapsed',
      text: 'It was abandoned: the lease of host-7 (worker w-1) ended 12 s ago.',
    })
  })

  it('was cancelled while it runs', () => {
    expect(reasons(held({ runAt: now, cancelReason: 'wrong order' }))[0]).toMatchObject({
      code: 'stopping',
      text: 'It was cancelled (wrong order) while it runs on host-7 (worker w-1).',
    })
    expect(reasons(held({ runAt: now, running: false, cancelReason: 'wrong order' }))[0]).toMatchObject({
      code: 'stopping',
      text: 'It was cancelled (wrong order) while host-7 (worker w-1) held it.',
    })
  })
})

describe('an item that is held', () => {
  const gate = (waiting: readonly string[], need = waiting.length) => ({
    gate: { key: 'g', heldId: 'i', need, of: 'success' as const, waiting },
  })
  const behind = view({ hold: { by: 'gate', key: 'g' }, dueAt: Number.POSITIVE_INFINITY })

  it('names what it waits for, and how many of them must end', () => {
    const members = new Map<string, ItemView | undefined>([
      ['w-12', view({ status: 'running', head: { attempt: 2 } })],
      ['w-13', view({ status: 'dead', ending: 'aborted', class: 'poison' })],
      ['w-14', view({ status: 'completed' })],
    ])
    expect(reasons(behind, { ...gate(['w-12', 'w-13', 'w-14'], 1), members })[0].text).toBe(
      'It waits for w-12 (active, attempt 2), w-13 (dead: poison), w-14 (completed): 1 of them must succeed.',
    )
    expect(reasons(behind, { ...gate(['w-14']), members })[0]).toMatchObject({
      text: 'It waits for w-14 (completed): it must succeed.',
      remedy: 'It is freed automatically when that has. Find out why w-14 has not ended.',
    })
  })

  it('says what has to be enqueued, and when it is freed at the latest', () => {
    const until = view({ hold: { by: 'gate', key: 'g' }, dueAt: now + 60_000 })
    const [reason] = reasons(until, gate(['a', 'b', 'c', 'd', 'e', 'f', 'g']))
    expect(reason.text).toContain('e (not enqueued yet) and 2 more: all of them must succeed.')
    expect(reason.text).toContain('At the latest it is freed at 2026-01-01 12:01:00Z.')
    expect(reason.remedy).toMatch(/^Enqueue a, b, c, d, e, or cancel it\./)
  })

  it('names a missing gate, a pause and a limit', () => {
    expect(reasons(behind)[0].text).toContain('no longer exists')
    expect(reasons(view({ hold: { by: 'pause', key: 'queue:a:b' } }))[0]).toMatchObject({
      code: 'paused',
      text: 'The queue "a:b" is paused.',
      remedy: 'Resume the queue "a:b": it returns to its old place.',
    })
    expect(reasons(view({ hold: { by: 'limit', key: 'tenant-3' } }))[0]).toMatchObject({
      code: 'limit',
      text: expect.stringContaining('"tenant-3"'),
    })
  })
})

describe('an item that has ended', () => {
  it.each<[DeadEnding, RegExp]>([
    ['exhausted', /Fix what it depends on/],
    ['aborted', /cannot succeed as it is/],
    ['expired', /deadline is then dropped/],
    ['crashed', /crashed their process/],
    ['unroutable', /Start a worker that has "mail" in its `work` list, then redrive/],
  ])('as %s has the remedy for that', (ending, remedy) => {
    const [reason] = reasons(view({ status: 'dead', ending, class: 'poison', error: 'Error: x', endAt: now - 1_000 }))
    expect(reason).toMatchObject({ code: 'dead', remedy: expect.stringMatching(remedy) })
    expect(reason.text).toContain(`(${ending}, poison)`)
  })

  it('as completed or cancelled says so', () => {
    expect(codes(view({ status: 'completed', endAt: now }))).toEqual(['completed'])
    expect(reasons(view({ status: 'dead', ending: 'cancelled', error: 'cancelled: no', endAt: now }))[0].text).toBe(
      'It was cancelled at 2026-01-01 12:00:00Z, 0 ms ago (no).',
    )
  })
})

describe('who paused it', () => {
  const entry = (at: number, what: string, who = 'ana') => ({ at, who, why: '', what })

  it('is who began the pause that holds, not who repeated it or began an earlier one', () => {
    const log = [
      entry(5, 'pause queue a', 'bob'),
      entry(4, 'pause queue a', 'ana'),
      entry(3, 'resume queue a'),
      entry(2, 'pause queue a', 'eve'),
    ]
    expect(pauseOf(log, 'queue', 'a')).toMatchObject({ at: 4, who: 'ana' })
    expect(pauseOf(log, 'type', 'a')).toBeUndefined()
    expect(pauseOf([], 'queue', 'a')).toBeUndefined()
  })
})
