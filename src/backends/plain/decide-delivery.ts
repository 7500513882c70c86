import type { At, Ms } from '../../core/time/time.js'
import { isExpired } from '../../ports/envelope.js'
import type { Envelope } from '../../ports/item.js'
import { hasEnded } from '../../ports/words.js'
import type { PlainContext } from './context.js'
import { readState, runOf, type StoredState } from './item-state.js'
import { readPlan, type SettlePlan } from './settle.js'

/** What the store says about a delivery. */
export interface DeliveryFacts {
  readonly envelope: Envelope
  readonly state: StoredState | undefined
  readonly plan: SettlePlan | undefined
  /** `settled:<id>:<run>` is there. */
  readonly isSettled: boolean
  /** `result:<id>` is there; only read for a completed item that has not settled. */
  readonly hasResult: boolean
  /** The last heartbeat of the stored run said that its handler no longer ran; only read while the state says `running`. */
  readonly isIdle: boolean
  /** A delivery that is alive, here or elsewhere, holds the item. */
  readonly isHeldElsewhere: boolean
  readonly cancelled: string | undefined
  readonly isPaused: boolean
  readonly now: At
}

/** Reads what the store says about a delivery. Those of one claim are read together where the store can. */
export async function readFacts(
  context: PlainContext,
  envelope: Envelope,
  isTypePaused: Promise<boolean>,
): Promise<DeliveryFacts> {
  const { keys, store, clock, leases } = context
  const { id } = envelope
  const names = [keys.state(id), keys.plan(id), keys.settled(id, runOf(envelope)), keys.run(id), keys.cancel(id)]
  const [texts, isPaused] = await Promise.all([store.getAll(names), isTypePaused])
  const [stateText, planText, settled, holder, cancelled] = texts
  const state = readState(stateText)
  const isUnsure = settled === undefined && state?.status === 'completed'
  const isRunning = state?.status === 'running'
  return {
    envelope,
    state,
    plan: readPlan(planText),
    isSettled: settled !== undefined,
    isIdle: isRunning && (await store.get(keys.idle(id))) === String(state.marks?.fence),
    hasResult: isUnsure && (await store.get(keys.result(id))) !== undefined,
    isHeldElsewhere:
      leases.isHeld(id, clock.monotonic()) ||
      // The token of a run outlives it by up to a lease, so it counts only while the state says `running`, and a token of
      // this process only while its lease is known here.
      (holder !== undefined && !holder.startsWith(`${context.name}.`) && (state === undefined || isRunning)),
    cancelled,
    isPaused,
    now: clock.now(),
  }
}

/** What to do with a delivery. */
export type DeliveryDecision =
  /** It has ended: complete what is missing and ack. */
  | { readonly kind: 'complete' }
  /** Its run had decided: carry that out, do not run it again. */
  | { readonly kind: 'resume'; readonly plan: SettlePlan }
  /** A newer try of the item is stored, which may not have reached the queue. */
  | { readonly kind: 'superseded'; readonly by: StoredState }
  | { readonly kind: 'busy' }
  | { readonly kind: 'cancel'; readonly reason: string }
  | { readonly kind: 'paused' }
  | { readonly kind: 'early'; readonly byMs: Ms }
  /** `hasCrashed`: an earlier run of this try was alive at its last heartbeat, and never ended. */
  | { readonly kind: 'run'; readonly hasCrashed: boolean; readonly gate?: string }

/** An arrival less than this before its time is on time: clocks differ. */
const TOLERANCE_MS = 1000

/** The one place that decides what becomes of a delivery. Pure: everything it needs has been read. */
export function decideDelivery(facts: DeliveryFacts): DeliveryDecision {
  const { envelope, state, plan, now } = facts
  const run = runOf(envelope)
  if (facts.isSettled) return { kind: 'complete' }
  const storedRun = runOf(state?.envelope)
  if (state !== undefined && storedRun > run) return { kind: 'superseded', by: state }
  const current = storedRun === run ? state : undefined
  if (current !== undefined && isOver(current, facts.hasResult)) return { kind: 'complete' }
  if (plan !== undefined && plan.run === run) return { kind: 'resume', plan }
  if (current !== undefined && isNewer(current, envelope)) return { kind: 'superseded', by: current }
  if (facts.isHeldElsewhere) return { kind: 'busy' }
  if (facts.cancelled !== undefined) return { kind: 'cancel', reason: facts.cancelled }
  if (facts.isPaused) return { kind: 'paused' }
  const gate = current?.marks?.gate
  const byMs = envelope.startAt - now
  // A held item comes when its gate says so, and one whose deadline has passed expires now, whatever its time.
  if (gate === undefined && !isExpired(envelope, now) && byMs > TOLERANCE_MS) return { kind: 'early', byMs }
  const hasCrashed = current?.status === 'running' && current.attempt === envelope.attempt && !facts.isIdle
  return { kind: 'run', hasCrashed, ...(gate === undefined ? {} : { gate }) }
}

/** The outcome is durable. That of a completed item without its result is not: the result is the last thing written. */
function isOver(state: StoredState, hasResult: boolean): boolean {
  if (!hasEnded(state.status)) return false
  return state.status === 'dead' || hasResult || state.marks?.isResultless === true
}

function isNewer(state: StoredState, envelope: Envelope): boolean {
  if (state.attempt !== envelope.attempt) return state.attempt > envelope.attempt
  return state.startAt > envelope.startAt
}
