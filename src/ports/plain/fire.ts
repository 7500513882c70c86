import type { CommitResult, Guard } from '../settlement.js'
import { doAsides, readSchedule } from './asides.js'
import type { Desk } from './desk.js'
import type { Parts } from './parts.js'
import { submit } from './submit.js'

const FIRE_MS = 90_000

/**
 * A schedule fires once per fleet: its record still says `at`, and nobody else has claimed that instant. Whoever has claimed
 * it enqueues, then moves the record on; should it die in between, the claim runs out and another fires instead.
 */
export function fire(desk: Desk, guard: Extract<Guard, { by: 'fire' }>, parts: Parts): Promise<CommitResult> {
  const { keys, store } = desk
  const { name, at } = guard
  return desk.turns.inTurn(`fire ${name}`, async () => {
    const now = readSchedule(await store.get(keys.schedule(name)))
    if (now?.nextAt !== at) return { kind: 'stale' }
    // One name for the whole adapter: when the settlement is repeated, the claim is still its own.
    if ((await store.claim(keys.fire(name, at ?? 0), desk.name, FIRE_MS)) !== desk.name) return { kind: 'stale' }
    await submit(desk, parts.pushes[0]?.item.id, { ...parts, asides: [] })
    // The record last: until it moves, the instant has not been dealt with.
    await doAsides(desk, parts.asides)
    return { kind: 'applied', closed: [] }
  })
}
