import type { Envelope } from '../item.js'
import type { Desk } from './desk.js'
import type { Facts } from './judge.js'
import { readPlan } from './plan.js'
import { readState, runOf, type StoredState } from './state.js'

/** Reads what the store says about a delivery. Those of one claim are read together where the store can. */
export async function readFacts(desk: Desk, envelope: Envelope, isTypePaused: Promise<boolean>): Promise<Facts> {
  const { keys, store, clock } = desk
  const { id } = envelope
  const [texts, isPaused] = await Promise.all([
    store.getAll([keys.state(id), keys.plan(id), keys.settled(id, runOf(envelope)), keys.run(id), keys.cancel(id)]),
    isTypePaused,
  ])
  const [stateText, planText, settled, holder, cancelled] = texts
  const state = readState(stateText)
  const isUnsure = settled === undefined && state?.status === 'success'
  return {
    envelope,
    state,
    plan: readPlan(planText),
    isSettled: settled !== undefined,
    isIdle: state?.status === 'running' && (await store.get(keys.idle(id))) === String(state.marks?.fence),
    hasResult: isUnsure && (await store.get(keys.result(id))) !== undefined,
    isHeldElsewhere: isHeld(desk, id, state, holder),
    cancelled,
    isPaused,
    now: clock.now(),
  }
}

/**
 * Somebody runs it: this process, or the one whose token stands in `run:<id>`. That token outlives its run by up to a lease,
 * so it counts only while the state says `running`, and a token of our own only while we know of it.
 */
function isHeld(desk: Desk, id: string, state: StoredState | undefined, holder: string | undefined): boolean {
  if (desk.leases.holderOf(id, desk.clock.monotonic()) !== undefined) return true
  if (holder === undefined || isOwnToken(desk, holder)) return false
  return state === undefined || state.status === 'running'
}

/** Lease tokens carry the name of their adapter, and an unguessable rest. */
export const newLeaseToken = (desk: Desk): string => `${desk.name}.${desk.options.newToken()}`

const isOwnToken = (desk: Desk, token: string): boolean => token.startsWith(`${desk.name}.`)
