/** The column `flags`. */
export const GATED = 1
export const HAS_GATE = 2
export const SINGLE = 4
export const WATCHED = 8
export const HAS_TAGS = 16
export const HAS_ATTEMPTS = 32
