import { describe, expect, it } from 'vitest'
import type { WritDoc } from '../../../src/guild/clerk/writs/writ.js'
import { describeRetry } from '../../../src/guild/clockworks-retry/describe.js'
import type { EngineRow, RigRow } from '../../../src/guild/spider/rigs/rig.js'
import type { WritFacts } from '../../../src/ops/guild/writ-facts.js'
import { writReasons } from '../../../src/ops/guild/writ-reasons.js'

const now = Date.parse('2026-01-01T01:00:00.000Z')
const earlier = '2026-01-01T00:00:00.000Z'
const later = '2026-01-01T01:00:30.000Z'

const writ = (more: Partial<WritDoc> = {}): WritDoc => ({
  id: 'w-1',
  type: 'mandate',
  phase: 'open',
  title: 'a writ',
  body: '',
  createdAt: earlier,
  updatedAt: earlier,
  ...more,
})
const engine = (more: Partial<EngineRow> = {}): EngineRow => ({
  id: 'r-1/build',
  rigId: 'r-1',
  engineId: 'build',
  place: 0,
  designId: 'builder',
  status: 'running',
  upstream: [],
  givensSpec: {} as EngineRow['givensSpec'],
  startedAt: earlier,
  ...more,
})
const rig = (engines: readonly EngineRow[], more: Partial<RigRow> = {}) => ({
  row: { id: 'r-1', writId: 'w-1', status: 'running', createdAt: earlier, attempt: 1, step: 1, ...more } as RigRow,
  engines,
})
const facts = (more: Partial<WritFacts> = {}): WritFacts => ({
  writ: writ(),
  now,
  rigs: [],
  dispatch: undefined,
  outbound: [],
  blockerIds: [],
  others: new Map(),
  openChildren: [],
  requests: new Map(),
  running: 1,
  retry: describeRetry(more.writ ?? writ(), more.rigs?.length ?? 0),
  isRetryDead: false,
  observer: { isThere: true, behind: 0, holder: 'p-1' },
  items: new Map(),
  ...more,
})
const ofEngine = (more: Partial<EngineRow>, rest: Partial<WritFacts> = {}) =>
  writReasons(facts({ rigs: [rig([engine(more)])], ...rest }))

describe('an engine that runs', () => {
  it('is named with its process and since when', () => {
    expect(ofEngine({ claim: { owner: 'host-7', token: 't', leaseUntil: later } })).toEqual([
      {
        code: 'engine-running',
        text: `Engine "build" runs since 2026-01-01 00:00:00Z (1 h) in host-7, its claim lasts until ${later}.`,
        remedy: expect.stringContaining('cancel its rig'),
      },
    ])
  })

  it('counts as cut off when its claim has lapsed', () => {
    const [reason] = ofEngine({ claim: { owner: 'host-7', token: 't', leaseUntil: earlier } })
    expect(reason).toMatchObject({
      code: 'engine-lapsed',
      text: 'The run of engine "build" was cut off: the claim of host-7 lapsed 1 h ago.',
    })
  })

  it('is explained by its session, while that runs and when it has ended', () => {
    expect(ofEngine({ sessionId: 's-1' })[0]?.text).toContain('for its session s-1 to end')
    expect(ofEngine({ sessionId: 's-1', isSessionOver: true })[0]?.text).toContain('has ended')
  })

  it('is explained by its work item, if it has one', () => {
    expect(ofEngine({ item: 'due' })[0]).toMatchObject({
      code: 'engine-ready',
      remedy: expect.stringContaining('spider.start'),
    })
    const reason = { code: 'no-worker', text: 'No live worker.', remedy: 'Start one.' } as const
    const items = (code: 'no-worker' | 'unknown' | 'running') =>
      new Map([['build', { id: 'r-1/build/1', reason: { ...reason, code } }]])
    expect(ofEngine({ item: 'pushed' }, { items: items('no-worker') })[0]).toEqual({
      code: 'engine-ready',
      text: 'Engine "build" is work item r-1/build/1 since 2026-01-01 00:00:00Z (1 h). No live worker.',
      remedy: 'Start one.',
    })
    expect(ofEngine({ item: 'pushed' }, { items: items('running') })[0]?.code).toBe('engine-running')
    expect(ofEngine({ item: 'pushed' }, { items: items('unknown') })[0]?.text).toContain('not on this backend')
  })
})

describe('an engine that waits', () => {
  it('says after which failure it is tried again, and when', () => {
    const attempts = [{ startedAt: earlier, endedAt: earlier, status: 'failed', error: 'flaky net' } as const]
    expect(ofEngine({ status: 'pending', holdUntil: later, attemptCount: 1, attempts })[0]).toEqual({
      code: 'engine-held',
      text: 'Engine "build" failed once in this rig (flaky net); it is retried at 2026-01-01 01:00:30Z, in 30 s.',
      remedy: 'Wait, or run it now: spider.resume("r-1", "build").',
    })
  })

  it('is no reason while what is upstream of it has not ended', () => {
    const reasons = writReasons(
      facts({
        rigs: [rig([engine(), engine({ engineId: 'ship', id: 'r-1/ship', status: 'pending', upstream: ['build'] })])],
      }),
    )
    expect(reasons.map(({ code }) => code)).toEqual(['engine-running'])
  })

  it('names what each kind of block waits for', () => {
    const blocked = (type: string, condition: unknown, rest: Partial<WritFacts> = {}) =>
      ofEngine({ status: 'blocked', block: { type, condition, blockedAt: earlier } }, rest)[0]
    const other = writ({ id: 'w-2', phase: 'stuck', title: 'other' })
    expect(
      blocked('writ-phase', { writId: 'w-2', targetPhase: 'completed' }, { others: new Map([['w-2', other]]) })?.text,
    ).toBe(
      'Engine "build" is blocked by writ-phase since 2026-01-01 00:00:00Z (1 h). It waits for w-2 (stuck: other) to be completed.',
    )
    const request = { id: 'q-1', rigId: 'r-1', engineId: 'build', questions: [], status: 'pending' } as const
    expect(blocked('patron-input', { requestId: 'q-1' }, { requests: new Map([['q-1', request]]) })?.remedy).toMatch(
      /^Answer input request q-1: answer\("q-1", answers\) of guildClient\(\)\./,
    )
    expect(blocked('scheduled-time', { resumeAt: earlier })?.text).toContain('which has passed')
    expect(blocked('book-updated', { ownerId: 'shop', book: 'orders', documentId: 'o-1' })?.text).toContain(
      'a change of shop/orders o-1',
    )
    expect(blocked('moon-phase', null)?.remedy).toContain('"moon-phase"')
  })

  it('says that a graft waits for a crawl', () => {
    const done = engine({ status: 'completed' })
    const reasons = writReasons(facts({ rigs: [rig([done], { pendingGrafts: [{ engineId: 'build', engines: [] }] })] }))
    expect(reasons.map(({ code }) => code)).toEqual(['graft'])
  })
})

describe('a writ that is stuck by an engine', () => {
  const status = { spider: { stuckCause: 'engine-failure', retryable: true, detail: 'boom', observedAt: earlier } }
  const stuck = writ({ phase: 'stuck', status })
  const failed = rig([engine({ status: 'failed', error: 'boom' })], { status: 'stuck' })
  const reason = (more: Partial<WritFacts>) => writReasons(facts({ writ: stuck, rigs: [failed], ...more }))[0]

  it('says whether a retry observer is running', () => {
    expect(reason({})).toMatchObject({ code: 'stuck-retried', remedy: expect.stringMatching(/^Wait/) })
    expect(reason({ observer: { isThere: true, behind: 3, holder: null } })).toMatchObject({
      text: expect.stringContaining('opens it again (3 events wait for it), but no process runs it now.'),
      remedy: expect.stringMatching(/^Start a process/),
    })
    expect(reason({ observer: { isThere: false, behind: 0, holder: null } })?.remedy).toContain('clockworks-retry')
    expect(reason({ observer: undefined })?.code).toBe('stuck-retried')
  })

  it('says that the retry observer could not open it', () => {
    const retry = describeRetry(stuck, 1, { dead: { id: 'clockworks-retry/7', error: 'no connection', tries: 20 } })
    expect(reason({ retry, isRetryDead: true })).toMatchObject({
      code: 'stuck-retry-failed',
      text: expect.stringMatching(/no connection; tried 20 times.*redeliver\("clockworks-retry\/7"\)/),
    })
  })

  it('says what its next rig waits for, when it was opened again', () => {
    const beside = rig([engine({ status: 'failed' }), engine({ id: 'r-1/long', engineId: 'long', sessionId: 's-1' })], {
      status: 'stuck',
    })
    expect(writReasons(facts({ rigs: [beside] }))).toEqual([
      {
        code: 'rig-ending',
        text: 'It gets its next rig when "long", which ran beside the engine that failed in rig r-1, has ended.',
        remedy: expect.stringContaining('spider.cancel("r-1")'),
      },
      expect.objectContaining({ code: 'engine-session' }),
    ])
  })

  it('does not take an old observation for the reason, when a rig has come since', () => {
    const since = rig([engine({ status: 'completed' })], { status: 'cancelled', createdAt: '2026-01-01T00:30:00.000Z' })
    expect(reason({ rigs: [failed, since] })?.code).toBe('stuck-by-hand')
  })

  it('nor one that was answered by a requeue already', () => {
    const { retryable: _, ...answered } = status.spider
    expect(reason({ writ: writ({ phase: 'stuck', status: { spider: answered } }) })?.code).toBe('stuck-by-hand')
  })
})

describe('other writs', () => {
  it('in custom phases wait for the plugin or person in charge', () => {
    const [reason] = writReasons(facts({ writ: writ({ phase: 'in-review', type: 'article' }) }))
    expect(reason).toMatchObject({ code: 'phase', text: expect.stringContaining('"in-review"') })
  })

  it('that have ended need no reason', () => {
    expect(writReasons(facts({ writ: writ({ phase: 'published', resolvedAt: earlier }) }))).toEqual([])
  })

  it('name a few of many that they follow', () => {
    const dispatch = { id: 'w-1', type: 'mandate', state: 'held', isOpen: true, at: '' } as const
    const others = new Map(Array.from({ length: 7 }, (_, n) => [`b-${n}`, writ({ id: `b-${n}`, title: `b${n}` })]))
    const [reason] = writReasons(facts({ dispatch, blockerIds: [...others.keys()], others }))
    expect(reason?.text).toContain('b-4 (open: b4) and 2 more, and gets a rig when they have ended.')
  })

  it('whose blockers have ended wait for a crawl to see it', () => {
    const ended = writ({ id: 'w-2', phase: 'completed', resolvedAt: earlier })
    const dispatch = { id: 'w-1', type: 'mandate', state: 'held', isOpen: true, at: '' } as const
    const [reason] = writReasons(facts({ dispatch, blockerIds: ['w-2'], others: new Map([['w-2', ended]]) }))
    expect(reason).toMatchObject({ code: 'held', text: expect.stringContaining('no crawl has seen that yet') })
  })
})
