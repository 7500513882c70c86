import type { At } from '../../core/time.js'
import type { CommitResult, Guard } from '../settlement.js'
import { doAsides, readSchedule, readScheduleOf, writeSchedule } from './asides.js'
import type { Desk } from './desk.js'
import type { Aside, Parts } from './parts.js'
import { submit } from './submit.js'

const FIRE_MS = 90_000

type Schedule = Extract<Aside, { do: 'schedule' }>

/**
 * A schedule fires once per fleet: its record still says `at`, and nobody else has claimed that instant. Whoever has claimed
 * it enqueues, then moves the record on; should it die in between, the claim runs out and another fires instead. What is
 * enqueued has the same id whoever does it, so that it is there once.
 */
export function fire(desk: Desk, guard: Extract<Guard, { by: 'fire' }>, parts: Parts): Promise<CommitResult> {
  const { keys, store } = desk
  const { name, at } = guard
  return desk.turns.inTurn(`fire ${name}`, async () => {
    if ((await readScheduleOf(desk, name))?.nextAt !== at) return { kind: 'stale' }
    // One name for the whole adapter: when the settlement is repeated, the claim is still its own.
    if ((await store.claim(keys.fire(name, at ?? 0), desk.name, FIRE_MS)) !== desk.name) return { kind: 'stale' }
    await submit(desk, parts.pushes[0]?.item.id, { ...parts, asides: [] }, true)
    const isOwn = (aside: Aside): aside is Schedule => aside.do === 'schedule' && aside.name === name
    await doAsides(
      desk,
      parts.asides.filter((aside) => !isOwn(aside)),
    )
    // The record last: until it moves, the instant has not been dealt with.
    const own = parts.asides.find(isOwn)
    const isMoved = own === undefined || (await moveOn(desk, own, at))
    return isMoved ? { kind: 'applied', closed: [] } : { kind: 'stale' }
  })
}

/**
 * Moves the record from `at` to the next instant. Only from there: whoever took longer than its claim lasted may find that
 * another has fired this instant and the next, and must not turn the schedule back. A store that cannot compare leaves the
 * moment between look and write, and the claim on the instant.
 */
async function moveOn(desk: Desk, { name, spec, nextAt }: Schedule, at: At | undefined): Promise<boolean> {
  const { store, records, keys } = desk
  const key = keys.schedule(name)
  const next = writeSchedule(spec, nextAt)
  let isMoved = false
  const change = (current: string | undefined) => {
    // After a lost reply it may be there already.
    isMoved = current === next || readSchedule(current)?.nextAt === at
    return isMoved ? next : undefined
  }
  if (store.canCompare) await records.update(key, Infinity, change)
  else if (change(await store.get(key)) !== undefined) await store.set(key, next)
  return isMoved
}
