import { describe, expect, it } from 'vitest'
import { memoryBackend, PoisonError, RetryAfterError, WorkDelayError } from '../../src/index.js'
import { previewOf } from '../../src/ops/fleet/preview.js'
import { openOps } from '../../src/ops/index.js'
import type { SeenWorker } from '../../src/work/worker/worker-registration.js'

const now = Date.UTC(2026, 0, 1)
const retry = { attempts: 3, base: 1_000, factor: 2, max: 30_000, jitter: 0.5 }

const preview = (error: unknown, given: Partial<typeof retry> = {}) =>
  previewOf({ type: 'charge', error, now, workers: [], given })

const worker = (id: string, seenAt: number, policy: typeof retry): SeenWorker => ({
  id,
  host: `host-${id}`,
  version: '1',
  types: ['charge'],
  queues: ['default'],
  seenAt,
  settings: { leaseMs: 30_000, keepMs: { completed: 1, dead: 1 }, types: { charge: { retry: policy } } },
})

describe('the preview of a failure', () => {
  it('says what is tried when, and what it ends as', () => {
    expect(preview({ name: 'Error', message: 'busy', status: 503 })).toEqual({
      type: 'charge',
      class: 'retryable',
      rule: 'http-503',
      policyFrom: 'options',
      attempts: [
        { attempt: 1, earliestMs: 0, latestMs: 0 },
        { attempt: 2, earliestMs: 500, latestMs: 1_000 },
        { attempt: 3, earliestMs: 1_500, latestMs: 3_000 },
      ],
      text: 'retryable (rule http-503): tried 3 times in all, again after 0.5–1 s, then after 1–2 s, then dead-lettered as exhausted',
    })
  })

  it('reads plain data as a command line gives it: by name, code and cause', () => {
    expect(preview({ message: 'x', cause: { code: 'ECONNRESET' } })).toMatchObject({
      class: 'retryable',
      rule: 'network',
    })
    expect(preview({ name: 'PoisonError', message: 'x' })).toMatchObject({ class: 'poison', rule: 'explicit' })
    expect(preview({ code: 'INVALID_FOR_STATE' }).text).toBe(
      'invalid for state (rule explicit): not retried, dead-lettered as aborted immediately',
    )
    expect(preview('just a text')).toMatchObject({ class: 'retryable', rule: 'default' })
  })

  it('has one attempt where another would be pointless', () => {
    const { attempts, text } = preview(new PoisonError('never'))
    expect(attempts).toEqual([{ attempt: 1, earliestMs: 0, latestMs: 0 }])
    expect(text).toBe('poison (rule explicit): not retried, dead-lettered as aborted immediately')
  })

  it('keeps to what was asked for: Retry-After is a floor, also where the backoff would be shorter', () => {
    const asked = preview(new RetryAfterError(1_500))
    expect(asked.attempts.map(({ earliestMs, latestMs }) => [earliestMs, latestMs])).toEqual([
      [0, 0],
      [1_500, 1_500],
      [3_000, 3_500],
    ])
    const byHeader = preview({ status: 429, headers: { 'Retry-After': 'Thu, 01 Jan 2026 00:00:10 GMT' } })
    expect(byHeader.attempts[1]).toEqual({ attempt: 2, earliestMs: 10_000, latestMs: 10_000 })
  })

  it('says when a deferral runs again, which spends nothing', () => {
    const deferred = preview(new WorkDelayError({ delay: 90_000 }))
    expect(deferred.attempts).toEqual([
      { attempt: 1, earliestMs: 0, latestMs: 0 },
      { attempt: 1, earliestMs: 90_000, latestMs: 90_000 },
    ])
    expect(deferred.text).toBe('deferred (rule deferred): runs again at 2026-01-01 00:01:30Z without using an attempt')
  })

  it('stays a sentence however many attempts there are', () => {
    expect(preview(new Error('x'), { attempts: 1 }).text).toBe(
      'retryable (rule default): tried once, then dead-lettered as exhausted',
    )
    expect(preview(new Error('x'), { attempts: 20, jitter: 0 }).text).toBe(
      'retryable (rule default): tried 20 times in all, again after 1 s, then after 2 s, then after 4 s, then after 8 s, then 15 more, growing up to 30 s, then dead-lettered as exhausted',
    )
    const endless = preview(new Error('x'), { attempts: Number.MAX_SAFE_INTEGER, factor: 1, jitter: 0 })
    expect(endless.attempts).toHaveLength(100)
    expect(endless.text).toMatch(/: tried without limit, .*, then without limit, each after 1 s$/)
  })
})

describe('the policy of a preview', () => {
  const of = (...workers: SeenWorker[]) => previewOf({ type: 'charge', error: new Error('x'), now, workers })

  it('is what live workers say of the type, else the default', () => {
    expect(of(worker('a', now, { ...retry, attempts: 7 }))).toMatchObject({ policyFrom: 'worker' })
    expect(of(worker('a', now, { ...retry, attempts: 7 })).attempts).toHaveLength(7)
    expect(of(worker('dead', now - 60_001, { ...retry, attempts: 7 })).policyFrom).toBe('default')
    expect(of().attempts).toHaveLength(3)
  })

  it('is the latest one if workers differ, and the text says so', () => {
    const { text, attempts } = of(
      worker('old', now - 9_000, { ...retry, attempts: 7 }),
      worker('new', now, { ...retry, attempts: 2 }),
    )
    expect(attempts).toHaveLength(2)
    expect(text).toContain('. Live workers report different policies for "charge"; this is the one of host-new')
  })

  it('is what was asked about, checked as everywhere', async () => {
    const ops = openOps(memoryBackend())
    const given = await ops.preview('charge', new Error('x'), { retry: { attempts: 2 } })
    expect(given).toMatchObject({ policyFrom: 'options' })
    expect(given.attempts).toHaveLength(2)
    await expect(ops.preview('charge', null, { retry: { attempts: 0 } })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(ops.preview('', null)).rejects.toMatchObject({ code: 'BAD_OPTION' })
    // @ts-expect-error: a slip of the keyboard
    await expect(ops.preview('charge', null, { retri: {} })).rejects.toThrow('Did you mean "retry"?')
  })
})
