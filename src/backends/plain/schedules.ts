import type { ScheduleRecord } from '../../ports/ledger.js'
import { SCHEDULE_CLAIM_MS } from '../../ports/limits.js'
import type { CommitResult, EffectOf, Guard } from '../../ports/settlement.js'
import { checkGuard, STALE } from '../shared/check-guard.js'
import type { SortedEffects } from '../shared/sort-effects.js'
import type { PlainContext } from './context.js'
import { applySideEffects, type SideEffect, sideEffectsOf, writeSchedule } from './control.js'
import { enqueue } from './enqueue.js'
import { readObject } from './plain-ports.js'

type ScheduleGuard = Extract<Guard, { by: 'schedule' }>

/**
 * A schedule fires once per fleet: its record still says `at`, and no other process has claimed that instant. The process
 * that has claimed it enqueues, then moves the record on; should it die in between, the claim runs out and another fires
 * instead. What is enqueued has the same id whichever process does it, so it is there once.
 */
export function fireSchedule(
  context: PlainContext,
  guard: ScheduleGuard,
  sorted: SortedEffects,
): Promise<CommitResult> {
  const { name, at } = guard
  return context.mutex.run(`schedule ${name}`, async () => {
    const refused = checkGuard(guard, undefined, (await readSchedule(context, name))?.nextAt)
    if (refused !== undefined) return refused
    // One name for the whole adapter: when the settlement is repeated, the claim is still its own.
    const holder = await context.store.claim(context.keys.fire(name, at ?? 0), context.name, SCHEDULE_CLAIM_MS)
    if (holder !== context.name) return STALE
    await enqueue(context, sorted.enqueues[0]?.item.id, { ...sorted, controls: [], cancels: [] }, true)
    const effects = sideEffectsOf(sorted)
    const isOwn = (effect: SideEffect) => effect.do === 'schedule' && effect.name === name
    await applySideEffects(
      context,
      effects.filter((effect) => !isOwn(effect)),
    )
    // The record last: until it moves, this occurrence has not fired.
    const own = effects.find(isOwn)
    const isMoved = own?.do !== 'schedule' || (await moveOn(context, own, guard))
    return isMoved ? { kind: 'applied', closed: [] } : STALE
  })
}

/**
 * Moves the record from `at` to the next instant. Only from there: a process that took longer than its claim lasted may find
 * that another has fired this instant and the next, and must not turn the schedule back. A store that cannot compare leaves
 * the moment between read and write, and the claim on the instant.
 */
async function moveOn(context: PlainContext, own: EffectOf<'schedule'>, guard: ScheduleGuard): Promise<boolean> {
  const { store, records, keys } = context
  const key = keys.schedule(own.name)
  const next = writeSchedule(own)
  let isMoved = false
  const change = (current: string | undefined) => {
    // After a lost reply it may be there already.
    isMoved = current === next || scheduleIn(current)?.nextAt === guard.at
    return isMoved ? next : undefined
  }
  if (store.canCompare) await records.update(key, Infinity, change)
  else if (change(await store.get(key)) !== undefined) await store.set(key, next)
  return isMoved
}

export async function readSchedule({ store, keys }: PlainContext, name: string): Promise<ScheduleRecord | undefined> {
  return scheduleIn(await store.get(keys.schedule(name)))
}

function scheduleIn(text: string | undefined): ScheduleRecord | undefined {
  const { spec, nextAt } = readObject<ScheduleRecord>(text) ?? {}
  return typeof nextAt === 'number' && typeof spec === 'string' ? { spec, nextAt } : undefined
}
