import type { Ms } from '../time.js'
import type { Doer } from './doer.js'
import { Purse } from './purse.js'
import type { Lane, RateLanes } from './rate-lanes.js'

/** What one round works on. */
export interface RateRound {
  readonly lanes: RateLanes
  readonly inner: Pick<Doer, 'available' | 'onAvailable'>
  /** Whether all tasks count in one bucket: when that is empty, the round is over. */
  readonly hasOneBucket: boolean
  /** Hands the oldest task of a lane to the inner doer. */
  readonly admit: (lane: Lane) => void
  /** The instant at which something that was refused for `ms` is to be looked at again. */
  readonly until: (ms: Ms) => Ms
  /** Hears of permits that could not be given back. */
  readonly report: (error: unknown) => void
}

/**
 * Lets through what may pass, oldest first, and blocks the lanes that may not. Returns until when the door is closed for
 * all; `undefined` where it is not. Rejects when a store fails; the tasks then still wait.
 */
export async function goRound(round: RateRound): Promise<Ms | undefined> {
  const purse = new Purse()
  try {
    return await admitAll(round, purse)
  } finally {
    await purse.close().catch(round.report)
  }
}

async function admitAll(round: RateRound, purse: Purse): Promise<Ms | undefined> {
  const { lanes, inner, hasOneBucket, until } = round
  for (let lane = lanes.first(); lane !== undefined; lane = lanes.first()) {
    const room = inner.available()
    // A doer that does not say when it has room again has to be asked.
    if (room <= 0) return inner.onAvailable === undefined ? until(0) : undefined
    const { all, group } = lane.gates
    const groupWaitMs = group && (await purse.spend(group, Math.min(room, lane.tasks.size)))
    if (groupWaitMs !== undefined) {
      lanes.block(lane, until(groupWaitMs))
      continue
    }
    const waitMs = await purse.spend(all, Math.min(room, hasOneBucket ? lanes.openSize : lane.tasks.size))
    if (waitMs === undefined) {
      round.admit(lane)
      continue
    }
    // A task that does not start must not cost its group anything.
    if (group !== undefined) purse.unspend(group)
    if (hasOneBucket) return until(waitMs)
    lanes.block(lane, until(waitMs))
  }
  return undefined
}
