import type { Desk } from './desk.js'
import type { Held } from './held.js'
import type { Parts } from './parts.js'
import { readState, runOf } from './state.js'

export type IsLocked = (groupId: string) => boolean

/** What a settlement sees before it writes anything. */
export interface Seen {
  /** Another delivery has taken over, or has ended the item. */
  readonly isTaken: boolean
  /** A locked group takes no more values. */
  readonly isLocked: IsLocked
}

const MOST_LOOKS = 3

/**
 * One look before anything is written: who runs the item, and whether somebody has ended it. The token of a run expires with
 * its lease, so that a late settlement also looks at who has come after it. A look that took long itself has seen the past:
 * then there is another one.
 */
export async function look(desk: Desk, held: Held, parts: Parts): Promise<Seen> {
  const { clock, leases } = desk
  for (let looks = 1; ; looks += 1) {
    const startedMs = clock.monotonic()
    const seen = await lookOnce(desk, held, parts)
    // This process itself may have got the item anew meanwhile.
    if (seen.isTaken || leases.find(held.lease) !== held) return { ...seen, isTaken: true }
    held.lookedMs = clock.monotonic()
    if (looks === MOST_LOOKS || held.lookedMs - startedMs < held.leaseMs / 3) return seen
  }
}

/**
 * Asked again where there is no way back after it: whether the item is still ours, when the last look was long ago. What has
 * been decided stays decided.
 */
export async function isStillOurs(desk: Desk, held: Held, parts: Parts): Promise<boolean> {
  if (held.decided !== undefined) return true
  if (desk.leases.find(held.lease) !== held) return false
  if (desk.clock.monotonic() - held.lookedMs < held.leaseMs / 3) return true
  return !(await look(desk, held, parts)).isTaken
}

async function lookOnce(desk: Desk, held: Held, { contributions }: Parts): Promise<Seen> {
  const { keys, store } = desk
  const { id, token } = held.lease
  const groups = [...new Set(contributions.map(({ groupId }) => groupId))]
  const [holder, settled, state, ...finals] = await found(store, [
    held.isMarked ? keys.run(id) : undefined,
    keys.settled(id, runOf(held.envelope)),
    isLate(desk, held) ? keys.state(id) : undefined,
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
