import type { Ms } from '../../core/time.js'

/** How long a record is kept that nobody gave a time: one whose message somebody else took away, a group closed by a person. */
export const DAY: Ms = 86_400_000
