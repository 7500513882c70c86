import type { At, Ms } from '../../core/time.js'
import type { Envelope } from '../item.js'
import type { Plan } from './plan.js'
import { hasEnded, runOf, runOfState, type StoredState } from './state.js'

/** What the store says about a delivery. */
export interface Facts {
  readonly envelope: Envelope
  readonly state: StoredState | undefined
  readonly plan: Plan | undefined
  /** `settled:<id>:<run>` is there. */
  readonly isSettled: boolean
  /** `result:<id>` is there; only looked at for a success that has not settled. */
  readonly hasResult: boolean
  /** The last heartbeat of the run on record said that its handler no longer ran; only looked at while the state says `running`. */
  readonly isIdle: boolean
  /** A delivery that is alive, here or elsewhere, holds the item. */
  readonly isHeldElsewhere: boolean
  readonly cancelled: string | undefined
  readonly isPaused: boolean
  readonly now: At
}

/** What to do with a delivery. */
export type Ruling =
  /** It has ended: complete what is missing and ack. */
  | { readonly kind: 'complete' }
  /** Its run had decided: carry that out, do not run it again. */
  | { readonly kind: 'resume'; readonly plan: Plan }
  /** A newer try of the item is on record, which may not have reached the queue. */
  | { readonly kind: 'superseded'; readonly by: StoredState }
  | { readonly kind: 'busy' }
  | { readonly kind: 'cancel'; readonly reason: string }
  | { readonly kind: 'paused' }
  | { readonly kind: 'early'; readonly byMs: Ms }
  /** `hasCrashed`: an earlier run of this try was under way when it was last heard of, and never ended. */
  | { readonly kind: 'run'; readonly hasCrashed: boolean; readonly gate?: string }

/** An arrival less than this before its time is on time: clocks differ. */
const TOLERANCE_MS = 1000

/** The one place that decides what becomes of a delivery. Pure: everything it needs has been read. */
export function judge(facts: Facts): Ruling {
  const { envelope, state, plan, now } = facts
  const run = runOf(envelope)
  if (facts.isSettled) return { kind: 'complete' }
  if (state !== undefined && runOfState(state) > run) return { kind: 'superseded', by: state }
  const current = state !== undefined && runOfState(state) === run ? state : undefined
  if (current !== undefined && isOver(current, facts.hasResult)) return { kind: 'complete' }
  if (plan !== undefined && plan.run === run) return { kind: 'resume', plan }
  if (current !== undefined && isNewer(current, envelope)) return { kind: 'superseded', by: current }
  if (facts.isHeldElsewhere) return { kind: 'busy' }
  if (facts.cancelled !== undefined) return { kind: 'cancel', reason: facts.cancelled }
  if (facts.isPaused) return { kind: 'paused' }
  const gate = current?.marks?.gate
  const isPast = envelope.deadline !== undefined && now > envelope.deadline
  const byMs = envelope.startAt - now
  // A held item comes when its gate says so, and one whose deadline has passed expires now, whatever its time.
  if (gate === undefined && !isPast && byMs > TOLERANCE_MS) return { kind: 'early', byMs }
  const hasCrashed = current?.status === 'running' && current.attempt === envelope.attempt && !facts.isIdle
  return { kind: 'run', hasCrashed, ...(gate === undefined ? {} : { gate }) }
}

/** The outcome is durable. A success without its result is not: the result is the last thing written. */
function isOver(state: StoredState, hasResult: boolean): boolean {
  if (!hasEnded(state.status)) return false
  return state.status === 'dead' || hasResult || state.marks?.isResultless === true
}

function isNewer(state: StoredState, envelope: Envelope): boolean {
  if (state.attempt !== envelope.attempt) return state.attempt > envelope.attempt
  return state.startAt > envelope.startAt
}
