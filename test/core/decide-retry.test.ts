import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { FAILURE_CLASSES, type Verdict } from '../../src/core/failure/failure.js'
import { backoff, exponential, MAX_DELAY_MS } from '../../src/core/retry/backoff.js'
import { decideRetry, type FailedAttempt } from '../../src/core/retry/decide-retry.js'

const retryable: Verdict = { class: 'retryable', rule: 'default' }
const poison: Verdict = { class: 'poison', rule: 'explicit' }
const invalid: Verdict = { class: 'invalidForState', rule: 'http-409' }

const decide = (facts: Partial<FailedAttempt>) =>
  decideRetry({ verdict: retryable, attempt: 1, maxAttempts: 3, delayMs: () => 100, now: 1000, ...facts })

describe('a retryable failure', () => {
  it('is tried again after its backoff while attempts are left', () => {
    expect(decide({})).toEqual({ kind: 'retry', delayMs: 100, nextAttempt: 2 })
    expect(decide({ attempt: 2, delayMs: (attempt) => attempt * 10 })).toEqual({
      kind: 'retry',
      delayMs: 20,
      nextAttempt: 3,
    })
  })

  it('is given up as exhausted at the cap, and stays retryable by name', () => {
    for (const attempt of [3, 4, 100]) {
      expect(decide({ attempt })).toEqual({ kind: 'giveUp', ending: 'exhausted', class: 'retryable' })
    }
    expect(decide({ attempt: 1_000_000, maxAttempts: Infinity })).toMatchObject({ kind: 'retry' })
  })

  // S9
  it('of a stream: 100, 200, then term retryable', () => {
    const { delay } = exponential({ baseMs: 100, maxMs: 1000, factor: 2, jitter: false })
    expect([1, 2, 3].map((attempt) => decide({ attempt, delayMs: delay }))).toEqual([
      { kind: 'retry', delayMs: 100, nextAttempt: 2 },
      { kind: 'retry', delayMs: 200, nextAttempt: 3 },
      { kind: 'giveUp', ending: 'exhausted', class: 'retryable' },
    ])
  })

  // S13
  it('with one attempt is given up immediately', () => {
    expect(decide({ maxAttempts: 1 })).toMatchObject({ kind: 'giveUp', ending: 'exhausted' })
  })

  // S19 W16
  it('that was not classified ends the same way', () => {
    const verdict: Verdict = { class: 'unclassified', rule: 'result' }
    expect(decide({ verdict, attempt: 5, maxAttempts: 5 })).toEqual({
      kind: 'giveUp',
      ending: 'exhausted',
      class: 'retryable',
    })
    expect(decide({ verdict, attempt: 4, maxAttempts: 5 })).toMatchObject({ kind: 'retry' })
  })

  // S18 W15
  it('waits at least as long as was asked for', () => {
    expect(decide({ floorMs: 60_000, maxAttempts: 5 })).toEqual({ kind: 'retry', delayMs: 60_000, nextAttempt: 2 })
    expect(decide({ verdict: { ...retryable, floorMs: 500 } })).toMatchObject({ delayMs: 500 })
    expect(decide({ verdict: { ...retryable, floorMs: 500 }, floorMs: 700 })).toMatchObject({ delayMs: 700 })
    expect(decide({ verdict: { ...retryable, floorMs: 5 } })).toMatchObject({ delayMs: 100 })
    expect(decide({ floorMs: 60_000, honourFloor: false })).toMatchObject({ delayMs: 100 })
  })

  it('expires when the next try would come after the deadline', () => {
    expect(decide({ deadline: 1100 })).toMatchObject({ kind: 'retry' })
    expect(decide({ deadline: 1099 })).toEqual({ kind: 'expire' })
    expect(decide({ deadline: 5000, floorMs: 4001 })).toEqual({ kind: 'expire' })
    expect(decide({ deadline: 0, attempt: 3 })).toMatchObject({ kind: 'giveUp', ending: 'exhausted' })
  })

  it('asks for the delay only when there is one', () => {
    const delayMs = vi.fn(() => 1)
    decide({ attempt: 3, delayMs })
    decide({ verdict: poison, delayMs })
    decide({ verdict: { class: 'unclassified', rule: 'deferred', deferTo: 5 }, delayMs })
    expect(delayMs).not.toHaveBeenCalled()
    decide({ attempt: 2, delayMs })
    expect(delayMs).toHaveBeenCalledExactlyOnceWith(2)
  })
})

describe('a failure that can never succeed', () => {
  it.each([poison, invalid])('is given up immediately: %o', (verdict) => {
    expect(decide({ verdict })).toEqual({ kind: 'giveUp', ending: 'aborted', class: verdict.class })
  })

  it('is tried again when the classifier asks for it, and is then retryable', () => {
    expect(decide({ verdict: poison, said: 'retry' })).toEqual({ kind: 'retry', delayMs: 100, nextAttempt: 2 })
    expect(decide({ verdict: poison, said: 'retry', attempt: 3 })).toEqual({
      kind: 'giveUp',
      ending: 'exhausted',
      class: 'retryable',
    })
  })
})

describe('a failure that the classifier aborts', () => {
  it('is given up with the class of the failure if that is a lasting one, else poison', () => {
    expect(decide({ said: 'abort' })).toEqual({ kind: 'giveUp', ending: 'aborted', class: 'poison' })
    expect(decide({ said: 'abort', verdict: invalid })).toEqual({
      kind: 'giveUp',
      ending: 'aborted',
      class: 'invalidForState',
    })
  })
})

describe('a deferral', () => {
  const deferred = (deferTo: number): Verdict => ({ class: 'unclassified', rule: 'deferred', deferTo })

  it('runs again at that time, spends no attempt, and has no cap', () => {
    // Without a next attempt: the same one runs again.
    expect(decide({ verdict: deferred(5000), attempt: 99 })).toEqual({ kind: 'defer', to: 5000, delayMs: 4000 })
  })

  it('is never in the past, and never beyond the deadline', () => {
    expect(decide({ verdict: deferred(5) })).toEqual({ kind: 'defer', to: 1000, delayMs: 0 })
    expect(decide({ verdict: deferred(5000), deadline: 5000 })).toMatchObject({ kind: 'defer' })
    expect(decide({ verdict: deferred(5001), deadline: 5000 })).toEqual({ kind: 'expire' })
  })
})

describe('any failure at all', () => {
  it('comes to one decision that can be carried out', () => {
    const facts = fc.record({
      verdict: fc.record(
        {
          class: fc.constantFrom(...FAILURE_CLASSES),
          rule: fc.constant('x'),
          floorMs: fc.integer({ min: 0, max: 1e12 }),
          deferTo: fc.integer({ min: 0, max: 1e13 }),
        },
        { requiredKeys: ['class', 'rule'] },
      ),
      said: fc.constantFrom(undefined, 'retry' as const, 'abort' as const),
      attempt: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.constant(Number.NaN)),
      maxAttempts: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.constantFrom(Infinity, Number.NaN)),
      now: fc.integer({ min: 0, max: 1e13 }),
      deadline: fc.option(fc.integer({ min: 0, max: 1e13 }), { nil: undefined }),
      floorMs: fc.option(fc.double({ min: 0, max: 1e12, noNaN: true }), { nil: undefined }),
      wait: fc.oneof(fc.double(), fc.integer()),
    })
    fc.assert(
      fc.property(facts, ({ wait, ...failed }) => {
        const decision = decideRetry({ ...failed, delayMs: () => wait })
        expect(decideRetry({ ...failed, delayMs: () => wait })).toEqual(decision)
        switch (decision.kind) {
          case 'retry':
            expect(Number.isInteger(decision.delayMs)).toBe(true)
            expect(decision.delayMs).toBeGreaterThanOrEqual(0)
            expect(decision.delayMs).toBeLessThanOrEqual(MAX_DELAY_MS)
            expect(failed.attempt).toBeLessThan(failed.maxAttempts)
            expect(decision.nextAttempt).toBe(failed.attempt + 1)
            if (failed.deadline !== undefined)
              expect(failed.now + decision.delayMs).toBeLessThanOrEqual(failed.deadline)
            break
          case 'defer':
            expect(decision.to).toBe(failed.now + decision.delayMs)
            if (failed.deadline !== undefined) expect(decision.to).toBeLessThanOrEqual(failed.deadline)
            break
          case 'giveUp':
            expect(['retryable', 'poison', 'invalidForState']).toContain(decision.class)
            expect(decision.ending === 'exhausted').toBe(decision.class === 'retryable')
            break
          case 'expire':
            expect(failed.deadline).toBeDefined()
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('serves work with its own backoff', () => {
    const policy = { base: 1000, factor: 2, max: 30_000, jitter: 0.5 }
    expect(decide({ attempt: 2, delayMs: (attempt) => backoff(attempt, policy, () => 0) })).toMatchObject({
      delayMs: 2000,
    })
  })
})
