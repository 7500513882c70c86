import type { Ms } from '../core/time/time.js'

/** How soon a gate is polled where its notification may be lost, unless its hold says otherwise. */
export const GATE_POLL_MS: Ms = 1_000

/** How long a process may take to fire an occurrence of a schedule before another process tries. */
export const SCHEDULE_CLAIM_MS: Ms = 90_000

/** How many attempts of an item a backend keeps: the newest. */
export const ATTEMPTS_KEPT = 100

/** A page of a list reads at most this many items that do not match, where a filter has no index. */
export const MAX_SCANNED = 1_000

/** A worker that has not renewed its record for this long is no longer listed. */
export const WORKER_FORGOTTEN_MS: Ms = 3_600_000

/** How long a completed item, and a group that no ending item closes, is kept unless its settlement says otherwise. */
export const KEEP_COMPLETED_MS: Ms = 86_400_000

/** How long a dead item is kept unless its settlement says otherwise. */
export const KEEP_DEAD_MS: Ms = 30 * KEEP_COMPLETED_MS
