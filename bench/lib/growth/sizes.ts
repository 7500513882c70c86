export type Scale = 'small' | 'medium' | 'full'

/** What grows, and how far on each scale. */
export interface Sizes {
  readonly pending: readonly number[]
  readonly types: readonly number[]
  readonly groups: readonly number[]
  readonly ended: readonly number[]
  readonly processes: readonly number[]
  readonly payload: readonly number[]
}

export interface Amounts {
  /** Items that are measured at each size. */
  readonly sample: number
  /** Items for each figure of room. */
  readonly stored: number
  readonly idleMs: number
}

export const SIZES: Readonly<Record<Scale, Sizes & Amounts>> = {
  // Seconds: shows that everything works, no more.
  small: {
    pending: [1_000, 10_000],
    types: [1, 10],
    groups: [1, 100],
    ended: [0, 10_000],
    processes: [1, 2],
    payload: [100, 10_000],
    sample: 1_000,
    stored: 2_000,
    idleMs: 2_000,
  },
  // Minutes for each backend.
  medium: {
    pending: [10_000, 100_000, 500_000],
    types: [1, 10, 100, 1_000],
    groups: [1, 100, 10_000],
    ended: [0, 100_000, 300_000],
    processes: [1, 2, 4, 8],
    payload: [100, 1_000, 10_000, 100_000],
    sample: 20_000,
    stored: 50_000,
    idleMs: 15_000,
  },
  // An hour for each backend, and gigabytes.
  full: {
    pending: [100_000, 500_000, 1_000_000, 5_000_000],
    types: [1, 10, 100, 1_000],
    groups: [1, 100, 10_000, 100_000],
    ended: [0, 100_000, 1_000_000, 5_000_000],
    processes: [1, 2, 4, 8],
    payload: [100, 1_000, 10_000, 100_000],
    sample: 50_000,
    stored: 200_000,
    idleMs: 60_000,
  },
}
