import type { At, Ms } from '../core/time.js'
import type { Worker } from '../ports/ledger.js'

/** A worker, and when it was last heard of. */
export type SeenWorker = Worker & { readonly seenAt: At }

/** A worker that was not heard of for this long does not count as alive. They tell of themselves every 15 s. */
const ALIVE_MS: Ms = 60_000

export function isAlive({ seenAt }: { readonly seenAt: At }, now: At): boolean {
  return now - seenAt <= ALIVE_MS
}

/** Whether this worker runs items of that type when they stand on that queue. */
export function runs({ queues, types }: Worker, queue: string, type: string): boolean {
  // The gates of dependencies are known to every system and listed by none.
  return queues.includes(queue) && (type.startsWith('@work/') || types.includes(type))
}
