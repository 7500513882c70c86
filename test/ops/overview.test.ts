import { describe, expect, it } from 'vitest'
import { namesOf, overviewOf } from '../../src/ops/fleet/overview.js'
import type { SeenWorker } from '../../src/work/worker/worker-registration.js'

const now = 1_000_000

const worker = (id: string, seenAt: number, types: string[], queues = ['default']): SeenWorker => ({
  id,
  host: `host-${id}`,
  version: '1',
  types,
  queues,
  seenAt,
})

describe('an overview', () => {
  const overview = overviewOf({
    now,
    counts: [
      { queue: 'default', type: 'mail', counts: { waiting: 3, dead: 1 } },
      { queue: 'default', type: '@work/dependency', counts: { blocked: 2 } },
      { queue: 'bulk', type: 'mail', counts: { completed: 7 } },
    ],
    flow: [
      { queue: 'default', type: 'mail', completed: 12, failed: 2, oldestDueAt: now - 5_000 },
      { queue: 'default', type: 'gone', completed: 1, failed: 0 },
    ],
    workers: [
      worker('a', now - 1_000, ['mail']),
      worker('b', now - 60_001, ['mail']),
      worker('c', now, ['other'], ['default', 'bulk']),
    ],
    paused: { queues: ['bulk', 'away'], types: [] },
  })
  const row = (queue: string, type: string) => overview.rows.find((one) => one.queue === queue && one.type === type)

  it('has a row for every queue and type with items or throughput', () => {
    expect(overview.rows.map(({ queue, type }) => [queue, type])).toEqual([
      ['bulk', 'mail'],
      ['default', '@work/dependency'],
      ['default', 'gone'],
      ['default', 'mail'],
    ])
  })

  it('counts every state, also those where nothing stands', () => {
    expect(row('default', 'mail')).toEqual({
      queue: 'default',
      type: 'mail',
      counts: { waiting: 3, scheduled: 0, retrying: 0, blocked: 0, active: 0, completed: 0, dead: 1, cancelled: 0 },
      completedPerMinute: 12,
      failedPerMinute: 2,
      oldestWaitMs: 5_000,
      workers: 1,
    })
    expect(row('default', 'gone')).toMatchObject({ completedPerMinute: 1, counts: { waiting: 0 } })
    expect(row('default', 'gone')).not.toHaveProperty('oldestWaitMs')
  })

  it('counts the live workers that run it: of that queue and type, and of any type for a gate', () => {
    expect(row('bulk', 'mail')?.workers).toBe(0)
    expect(row('default', '@work/dependency')?.workers).toBe(2)
    expect(overview.workers.map(({ id, isAlive }) => [id, isAlive])).toEqual([
      ['a', true],
      ['b', false],
      ['c', true],
    ])
  })

  it('names what is paused, also where nothing stands', () => {
    expect(overview.paused).toEqual({ queues: ['away', 'bulk'], types: [] })
  })
})

it('asks about the pauses of every known name', () => {
  const names = namesOf(
    [{ queue: 'q1', type: 't1', counts: {} }],
    [{ queue: 'q2', type: 't2', completed: 1, failed: 0 }],
    [worker('a', now, ['t3', 't1'], ['q3'])],
  )
  expect(names).toEqual({ queues: ['q1', 'q2', 'q3'], types: ['t1', 't2', 't3'] })
})
