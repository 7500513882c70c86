import type { PlaceKind } from '../contenders/contender.js'

export const KINDS = ['memory', 'sqlite', 'redis', 'postgres'] as const satisfies readonly PlaceKind[]

export const OURS = 'millrace'

/** What ours is compared with on each ground. */
export const PEERS: Readonly<Record<PlaceKind, readonly string[]>> = {
  memory: ['plain queue'],
  sqlite: ['plainjob'],
  redis: ['bullmq'],
  postgres: ['graphile-worker', 'pg-boss'],
}

/** Who enqueues and who works can only be two processes where the store is not in one. */
export const hasLatency = (kind: PlaceKind) => kind !== 'memory'

/** How much is measured. */
export interface Plan {
  /** Beside one that only warms up. */
  readonly rounds: number
  readonly items: Readonly<Record<PlaceKind, number>>
  /** Items that a hundred callers add. */
  readonly added: Readonly<Record<PlaceKind, number>>
  readonly latencyRounds: number
  readonly idleSamples: number
  readonly pacedSamples: number
}

export const CALLERS = 100
export const BYTES = 110
export const PACE_PER_SECOND = 500
/** Longer than any of them takes to start an item, and to rest again. */
export const IDLE_EVERY_MS = 25

export const FULL: Plan = {
  rounds: 7,
  items: { memory: 100_000, sqlite: 50_000, redis: 50_000, postgres: 50_000 },
  added: { memory: 50_000, sqlite: 20_000, redis: 20_000, postgres: 10_000 },
  latencyRounds: 5,
  idleSamples: 100,
  pacedSamples: 5_000,
}

export const QUICK: Plan = {
  rounds: 3,
  items: { memory: 50_000, sqlite: 10_000, redis: 10_000, postgres: 10_000 },
  added: { memory: 10_000, sqlite: 4_000, redis: 4_000, postgres: 2_000 },
  latencyRounds: 2,
  idleSamples: 40,
  pacedSamples: 750,
}
