import type { Desk } from './desk.js'
import type { Held } from './held.js'
import type { Parts } from './parts.js'
import { readState, runOf } from './state.js'

export type IsLocked = (groupId: string) => boolean

/**
 * One look before anything is written: another delivery may have taken over, and a locked group takes no more values. While
 * the lease runs, the token of the run tells; that token expires with its lease, so that a late settlement also looks at
 * who has come after it.
 */
export async function look(
  desk: Desk,
  held: Held,
  { contributions }: Parts,
): Promise<{ isTaken: boolean; isLocked: IsLocked }> {
  const { keys, store } = desk
  const { id, token } = held.lease
  const groups = [...new Set(contributions.map(({ groupId }) => groupId))]
  const [holder, settled, state, ...finals] = await found(store, [
    held.isMarked ? keys.run(id) : undefined,
    ...(isLate(desk, held) ? [keys.settled(id, runOf(held.envelope)), keys.state(id)] : [undefined, undefined]),
    ...groups.map((groupId) => keys.final(groupId)),
  ])
  const newest = readState(state)?.marks?.fence ?? 0
  const isEnded = settled !== undefined && held.decided === undefined
  const locked = new Set(groups.filter((_, i) => finals[i] !== undefined))
  return {
    isTaken: isEnded || newest > held.lease.fence || (holder !== undefined && holder !== token),
    isLocked: (groupId) => locked.has(groupId),
  }
}

/** The values of those keys that there are to ask for. */
async function found(store: Desk['store'], keys: readonly (string | undefined)[]): Promise<(string | undefined)[]> {
  const values = await store.getAll(keys.filter((key) => key !== undefined))
  return keys.map((key) => (key === undefined ? undefined : values.shift()))
}

/** The queue has not confirmed the lease for all its length: somebody else may have had the item since. */
function isLate({ clock }: Desk, { pulled, heardMs, leaseMs }: Held): boolean {
  return pulled !== undefined && clock.monotonic() - heardMs >= leaseMs
}
