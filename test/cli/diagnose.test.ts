import { describe, expect, it } from 'vitest'
import { type DoctorFacts, diagnose, retryHorizonMs } from '../../src/cli/doctor/diagnose.js'
import type { OverviewRow, WorkerReport } from '../../src/ops/api.js'
import type { WorkerSettings } from '../../src/ports/ledger.js'

const AT = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000
const ZERO = { waiting: 0, scheduled: 0, retrying: 0, blocked: 0, active: 0, completed: 0, dead: 0, cancelled: 0 }
const POLICY = { attempts: 3, base: 1_000, factor: 2, max: 30_000, jitter: 0.5 }

const worker = (given: Partial<WorkerReport> = {}): WorkerReport => ({
  id: 'w-1',
  host: 'host-1',
  version: '1.0.0',
  types: ['charge'],
  queues: ['default'],
  seenAt: AT,
  isAlive: true,
  ...given,
})
const clocked = (aheadMs: number, giveOrTakeMs = 1): WorkerSettings => ({
  leaseMs: 30_000,
  keepMs: { completed: 24 * HOUR, dead: 720 * HOUR },
  types: {},
  clock: { aheadMs, giveOrTakeMs },
})
const row = (given: Partial<OverviewRow> = {}): OverviewRow => ({
  queue: 'default',
  type: 'charge',
  counts: { ...ZERO, waiting: 2 },
  completedPerMinute: 0,
  failedPerMinute: 0,
  workers: 1,
  ...given,
})
const facts = (
  given: Partial<Omit<DoctorFacts, 'server'>> & { server?: Partial<DoctorFacts['server']> } = {},
): DoctorFacts => ({
  rows: [row()],
  workers: [worker()],
  paused: { queues: [], types: [] },
  ...given,
  server: {
    server: 'PostgreSQL 15.8',
    at: AT,
    askedAt: AT,
    tookMs: 0,
    storage: [{ part: 'work', version: 2, minReader: 1, latest: 2 }],
    dangers: [],
    ...given.server,
  },
})
const codes = (given: DoctorFacts) => diagnose(given).flatMap(({ findings }) => findings.map(({ code }) => code))

describe('a sound setup', () => {
  it('has no findings, and every check says what it saw', () => {
    const checks = diagnose(facts())
    expect(checks.map(({ name }) => name)).toEqual([
      'server',
      'storage',
      'clocks',
      'workers',
      'handlers',
      'leases',
      'retries',
      'pauses',
    ])
    expect(checks.every(({ seen, findings }) => seen !== '' && findings.length === 0)).toBe(true)
  })
})

describe('each thing that can be wrong', () => {
  const types = (charge: object) => ({
    settings: {
      leaseMs: 30_000,
      keepMs: { completed: 24 * HOUR, dead: 720 * HOUR },
      types: { charge: { retry: POLICY, ...charge } },
    },
  })
  it.each<[string, DoctorFacts]>([
    ['no-tables', facts({ server: { storage: [{ part: 'work', version: 0, minReader: 0, latest: 2 }] } })],
    ['pending-migrations', facts({ server: { storage: [{ part: 'work', version: 1, minReader: 1, latest: 2 }] } })],
    ['pending-migrations', facts({ server: { storage: [{ part: 'guild', version: 1, minReader: 1, latest: 2 }] } })],
    ['tables-too-new', facts({ server: { storage: [{ part: 'work', version: 9, minReader: 8, latest: 2 }] } })],
    ['clock-skew', facts({ server: { at: AT + 5_000 } })],
    ['clock-skew', facts({ server: { at: AT - 5_000, tookMs: 100 } })],
    ['worker-clock-skew', facts({ workers: [worker({ settings: clocked(240_000) })] })],
    ['worker-clock-skew', facts({ workers: [worker({ settings: clocked(-5_000, 500) })] })],
    ['mixed-versions', facts({ workers: [worker(), worker({ id: 'w-2', version: '1.1.0' })] })],
    ['queue-unserved', facts({ rows: [row({ queue: 'bulk' })] })],
    ['queue-unserved', facts({ workers: [worker({ isAlive: false })] })],
    ['type-unhandled', facts({ rows: [row({ type: 'other' })] })],
    ['type-unhandled', facts({ rows: [row({ type: 'other', counts: { ...ZERO, retrying: 1 } })] })],
    ['lease-shorter-than-run', facts({ workers: [worker(types({ runTimeoutMs: 60_000 }))] })],
    [
      'horizon-beyond-retention',
      facts({ workers: [worker(types({ retry: { ...POLICY, attempts: 30, max: 24 * HOUR } }))] }),
    ],
    ['paused-with-work', facts({ paused: { queues: ['default'], types: [] } })],
    ['eviction', facts({ server: { dangers: [{ code: 'eviction', text: 'x', remedy: 'y' }] } })],
  ])('%s', (code, given) => expect(codes(given)).toEqual([code]))

  it('names the machine whose clock is wrong, once, by the worker that knows best', () => {
    const workers = [
      worker({ id: 'w-1', settings: clocked(251_000, 20_000) }),
      worker({ id: 'w-2', settings: clocked(240_000, 5) }),
      worker({ id: 'w-3', host: 'host-2', settings: clocked(300, 5) }),
      worker({ id: 'w-4', host: 'host-3' }),
    ]
    const { findings = [] } = diagnose(facts({ workers })).find(({ name }) => name === 'clocks') ?? {}
    expect(findings.map(({ text }) => text)).toEqual([
      "The clock of host-1 (worker w-2 and 1 more worker) is 4 m ahead of the backend's.",
    ])
  })

  it('says for how long work waits that no live worker handles, which workers are alive, and what to do', () => {
    const rows = [row({ type: 'other', oldestWaitMs: 2 * HOUR })]
    const workers = [worker(), worker({ id: 'w-2', isAlive: false, types: ['other'] })]
    const { findings = [] } = diagnose(facts({ rows, workers })).find(({ name }) => name === 'handlers') ?? {}
    expect(findings).toMatchObject([
      {
        text:
          '2 open items of type "other" on queue "default" (the oldest ready for 2 h), and no live worker there handles that type. ' +
          'Alive there: host-1 (worker w-1, types "charge").',
        remedy:
          'Start a worker that has "other" in its `work` list. Otherwise cancel them, or start a worker with unknownTypeTimeout: ' +
          'it dead-letters items that have waited for that long.',
      },
    ])
  })

  it('comes with its remedy', () => {
    for (const { findings } of diagnose(facts({ workers: [], server: { at: AT + 9_000 } })))
      for (const { text, remedy } of findings) expect([text, remedy]).not.toContain('')
  })
})

describe('what is no trouble', () => {
  it.each<[string, DoctorFacts]>([
    [
      'a guild that is not there',
      facts({ server: { storage: [{ part: 'guild', version: 0, minReader: 0, latest: 1 }] } }),
    ],
    [
      'a clock that a worker could not measure better than that',
      facts({ workers: [worker({ settings: clocked(4_000, 3_500) })] }),
    ],
    [
      'the clock of a worker that is gone',
      facts({ workers: [worker(), worker({ id: 'w-2', host: 'old', isAlive: false, settings: clocked(240_000) })] }),
    ],
    ['a slow answer, which tells little of the clock', facts({ server: { at: AT + 2_000, tookMs: 4_000 } })],
    [
      'ended work of types without a handler',
      facts({ rows: [row({ type: 'old', counts: { ...ZERO, completed: 9, dead: 1 } })] }),
    ],
    ['a gate, which every worker knows', facts({ rows: [row({ type: '@work/dependency' })] })],
    [
      'an engine of a guild, which is handed over until its outcome is written',
      facts({
        workers: [
          worker({
            settings: {
              leaseMs: 30_000,
              keepMs: { completed: 24 * HOUR, dead: 720 * HOUR },
              types: { 'spider.engine': { retry: { ...POLICY, attempts: 1_000_000 } } },
            },
          }),
        ],
        rows: [],
      }),
    ],
    ['a pause of what has no work', facts({ paused: { queues: ['bulk'], types: [] } })],
  ])('%s', (_, given) => expect(codes(given)).toEqual([]))

  it('is reported once, however many workers have it', () => {
    const settings = {
      leaseMs: 1_000,
      keepMs: { completed: HOUR, dead: HOUR },
      types: { charge: { retry: POLICY, runTimeoutMs: 2_000 } },
    }
    expect(codes(facts({ workers: [worker({ settings }), worker({ id: 'w-2', settings })] }))).toEqual([
      'lease-shorter-than-run',
    ])
  })
})

describe('how long retries may go on', () => {
  it('is the latest last attempt', () => {
    expect(retryHorizonMs({ ...POLICY, jitter: 0 })).toBe(3_000)
    expect(retryHorizonMs({ ...POLICY, attempts: 1 })).toBe(0)
  })

  it('is far beyond everything for a policy without an end', () => {
    expect(retryHorizonMs({ ...POLICY, attempts: Number.MAX_SAFE_INTEGER })).toBeGreaterThan(1e15)
  })
})

describe('the durable watchers of a guild', () => {
  const watcher = { name: 'clockworks-retry', ownerId: 'clerk', book: 'writs', behind: 0, holder: null, dead: 0 }

  it('are in order while they handle every event', () => {
    expect(codes(facts({ watchers: [watcher] }))).toEqual([])
  })

  it('are a finding when events are dead, with what to do', () => {
    const [finding] = diagnose(facts({ watchers: [{ ...watcher, dead: 2 }] })).flatMap(({ findings }) => findings)
    expect(finding).toMatchObject({
      code: 'dead-events',
      text: expect.stringContaining('"clockworks-retry" could not handle 2 events'),
      remedy: expect.stringContaining('stacks.redeliver(id)'),
    })
  })
})
