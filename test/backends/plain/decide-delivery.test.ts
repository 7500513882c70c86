import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type DeliveryFacts, decideDelivery } from '../../../src/backends/plain/decide-delivery.js'
import { type ItemStanding, storedStateOf } from '../../../src/backends/plain/item-state.js'
import type { SettlePlan } from '../../../src/backends/plain/settle.js'
import { item } from './settlements.js'

const NOW = 1_000_000
const plan: SettlePlan = { token: 't', run: 0, at: 0, effects: [] }

/** Facts about a delivery of `a`, with what a case wants different. */
function facts(
  over: Partial<DeliveryFacts> & { readonly is?: ItemStanding; readonly stored?: Parameters<typeof item>[1] } = {},
): DeliveryFacts {
  const { is, stored, ...rest } = over
  const envelope = rest.envelope ?? item('a', { startAt: NOW, attempt: 2 })
  return {
    envelope,
    state: is === undefined ? undefined : storedStateOf({ ...envelope, ...stored }, is),
    plan: undefined,
    isSettled: false,
    isIdle: false,
    hasResult: false,
    isHeldElsewhere: false,
    cancelled: undefined,
    isPaused: false,
    now: NOW,
    ...rest,
  }
}

const pending = { status: 'pending' } as const
const running = { status: 'running' } as const
const success = { status: 'completed' } as const
const dead = { status: 'dead' } as const

describe('what becomes of a delivery', () => {
  const table: readonly (readonly [string, DeliveryFacts, object])[] = [
    ['without any record runs', facts(), { kind: 'run', hasCrashed: false }],
    ['of a pending item runs', facts({ is: pending }), { kind: 'run', hasCrashed: false }],
    ['that has settled is completed', facts({ is: success, isSettled: true }), { kind: 'complete' }],
    [
      'that has settled is completed even when its state says otherwise',
      facts({ is: pending, isSettled: true }),
      { kind: 'complete' },
    ],
    ['of a dead item is completed', facts({ is: dead }), { kind: 'complete' }],
    ['of a success with its result is completed', facts({ is: success, hasResult: true }), { kind: 'complete' }],
    [
      'of a success without its own result is completed',
      facts({ is: { status: 'completed', marks: { isResultless: true } } }),
      { kind: 'complete' },
    ],
    [
      'of a success whose result was not written runs again',
      facts({ is: success }),
      { kind: 'run', hasCrashed: false },
    ],
    ['with a plan carries it out', facts({ is: running, plan }), { kind: 'resume', plan }],
    [
      'with the plan of an earlier life runs',
      facts({ is: running, plan, envelope: item('a', { redrives: 1 }) }),
      { kind: 'run', hasCrashed: true },
    ],
    [
      'of an earlier life than the recorded one is superseded',
      facts({ is: pending, stored: { redrives: 1 } }),
      { kind: 'superseded' },
    ],
    [
      'of a later life than the recorded one runs',
      facts({ is: dead, envelope: item('a', { redrives: 1 }), stored: { redrives: 0 } }),
      { kind: 'run', hasCrashed: false },
    ],
    ['with an older attempt is superseded', facts({ is: pending, stored: { attempt: 3 } }), { kind: 'superseded' }],
    [
      'with the same attempt and an earlier start is superseded',
      facts({ is: pending, stored: { startAt: NOW + 1 } }),
      { kind: 'superseded' },
    ],
    [
      'with a newer attempt than recorded runs',
      facts({ is: running, stored: { attempt: 1 } }),
      { kind: 'run', hasCrashed: false },
    ],
    ['whose run started and never ended has crashed', facts({ is: running }), { kind: 'run', hasCrashed: true }],
    [
      'whose handler had ended at its last heartbeat has not crashed',
      facts({ is: running, isIdle: true }),
      { kind: 'run', hasCrashed: false },
    ],
    ['that another one holds waits', facts({ is: running, isHeldElsewhere: true }), { kind: 'busy' }],
    ['that was cancelled ends', facts({ is: pending, cancelled: 'no' }), { kind: 'cancel', reason: 'no' }],
    ['of a paused type waits', facts({ is: pending, isPaused: true }), { kind: 'paused' }],
    [
      'more than a second early is pushed again',
      facts({ is: pending, now: NOW - 1001 }),
      { kind: 'early', byMs: 1001 },
    ],
    ['a second early is on time', facts({ is: pending, now: NOW - 1000 }), { kind: 'run' }],
    [
      'early, whose deadline has passed, goes to expire',
      facts({ envelope: item('a', { startAt: NOW + 5000, deadline: NOW - 1 }) }),
      { kind: 'run' },
    ],
    [
      'of a held item is asked of its gate, whatever its time',
      facts({ is: { status: 'pending', marks: { gate: 'k' } }, now: 0 }),
      { kind: 'run', gate: 'k' },
    ],
  ]
  it.each(table)('%s', (_, given, expected) => {
    expect(decideDelivery(given)).toMatchObject(expected)
  })

  it('never runs what has settled, has a plan, or is held by another', () => {
    const status = fc.constantFrom('pending', 'running', 'completed', 'dead', undefined)
    fc.assert(
      fc.property(
        fc.record({
          status,
          attempt: fc.integer({ min: 1, max: 3 }),
          stored: fc.integer({ min: 1, max: 3 }),
          life: fc.integer({ min: 0, max: 1 }),
          storedLife: fc.integer({ min: 0, max: 1 }),
          isSettled: fc.boolean(),
          hasResult: fc.boolean(),
          hasPlan: fc.boolean(),
          isHeldElsewhere: fc.boolean(),
        }),
        (given) => {
          const envelope = item('a', { attempt: given.attempt, redrives: given.life })
          const decision = decideDelivery(
            facts({
              envelope,
              ...(given.status === undefined ? {} : { is: { status: given.status } }),
              stored: { attempt: given.stored, redrives: given.storedLife },
              isSettled: given.isSettled,
              hasResult: given.hasResult,
              plan: given.hasPlan ? { ...plan, run: given.life } : undefined,
              isHeldElsewhere: given.isHeldElsewhere,
            }),
          )
          if (decision.kind !== 'run') return
          expect(given).toMatchObject({ isSettled: false, hasPlan: false, isHeldElsewhere: false })
          const isCurrent = given.status !== undefined && given.storedLife === given.life
          if (isCurrent)
            expect(given.status === 'dead' || (given.status === 'completed' && given.hasResult)).toBe(false)
          if (isCurrent) expect(given.stored).toBeLessThanOrEqual(given.attempt)
        },
      ),
      { numRuns: 1000 },
    )
  })
})
