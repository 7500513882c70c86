import type { At } from '../../core/time.js'
import type { Effect } from '../settlement.js'
import { type Desk, keptFor } from './desk.js'
import type { Held } from './held.js'
import { runOf } from './state.js'

/**
 * `plan:<id>`: what a run decided, written before any of it is done. Whoever meets the item later carries it out instead of
 * running the handler again, so that children keep their ids and none is lost or doubled.
 */
export interface Plan {
  readonly token: string
  readonly run: number
  readonly at: At
  readonly effects: readonly Effect[]
}

/**
 * Writes the plan, unless another run of the same life wrote one first: then that one counts, and this run's does not.
 * True: the plan is ours.
 */
export async function claimPlan(desk: Desk, held: Held, effects: readonly Effect[]): Promise<boolean> {
  const { keys, store, clock } = desk
  const run = runOf(held.envelope)
  const planned = effects.filter((effect) => !isApplied(effect) && effect.do !== 'recordAttempt' && effect.do !== 'log')
  const plan: Plan = { token: held.lease.token, run, at: clock.now(), effects: planned }
  const own = JSON.stringify(plan)
  const ttl = keptFor(desk, longestDelay(effects))
  const first = await store.claim(keys.plan(held.lease.id), own, ttl)
  if (first === own) return true
  const other = readPlan(first)
  if (other !== undefined && other.run >= run) return other.token === plan.token
  // The plan of an earlier life, or no plan at all: it binds nobody.
  await store.set(keys.plan(held.lease.id), own, ttl)
  return true
}

/**
 * The plan has been carried out: what it said is dropped, and that there was one stays. A run that comes back late then finds
 * that another one was first.
 */
export async function closePlan(desk: Desk, { lease, envelope }: Held): Promise<void> {
  const closed: Plan = { token: lease.token, run: runOf(envelope), at: desk.clock.now(), effects: [] }
  await desk.store.set(desk.keys.plan(lease.id), JSON.stringify(closed), keptFor(desk))
}

export function readPlan(text: string | undefined): Plan | undefined {
  if (text === undefined) return undefined
  try {
    const read = JSON.parse(text) as Partial<Plan> | null
    if (typeof read?.token !== 'string' || !Array.isArray(read.effects)) return undefined
    return { token: read.token, run: read.run ?? 0, at: read.at ?? 0, effects: read.effects }
  } catch {
    return undefined
  }
}

/** The effects of a plan as they are to be done now: time that has passed since is taken off their delays. */
export function effectsOf(plan: Plan, now: At): readonly Effect[] {
  const passed = Math.max(0, now - plan.at)
  // JSON has no Infinity: a time without end was written as null.
  const ms = (written: number | null) => written ?? Infinity
  return plan.effects.map((effect) => {
    if (effect.do === 'push') return { ...effect, delayMs: Math.max(0, ms(effect.delayMs) - passed) }
    return effect.do === 'finish' || effect.do === 'park' ? { ...effect, keepMs: ms(effect.keepMs) } : effect
  })
}

/** A fold is applied before the plan is written, and noted in the group's own record. */
const isApplied = (effect: Effect): boolean => effect.do === 'contribute' && effect.expect !== undefined

export function longestDelay(effects: readonly Effect[]): number {
  const delays = effects.map((effect) => (effect.do === 'push' && Number.isFinite(effect.delayMs) ? effect.delayMs : 0))
  return delays.reduce((longest, delay) => Math.max(longest, delay), 0)
}
