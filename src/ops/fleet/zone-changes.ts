import type { At, Ms } from '../../core/time/time.js'
import { changeBetween, type Zone } from '../../work/schedule/zone.js'

/** No zone changes its clocks twice within a week and returns to the same offset. */
const STEP_MS: Ms = 7 * 86_400_000

/** When the clocks of a zone change in `(from, to]`, and by how much: forward is positive. */
export function zoneChanges(zone: Zone, from: At, to: At): { readonly at: At; readonly byMs: Ms }[] {
  const changes: { readonly at: At; readonly byMs: Ms }[] = []
  for (let at = from; at < to; at += STEP_MS) {
    const until = Math.min(at + STEP_MS, to)
    const [before, after] = [zone(at), zone(until)]
    if (before !== after) changes.push({ at: changeBetween(zone, at, until), byMs: after - before })
  }
  return changes
}
