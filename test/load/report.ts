import type { Costs } from './gauges.js'
import type { Load, LoadBackend, Play, ScenarioName } from './scenarios.js'

/** What a worker process is to play. */
export interface Order {
  readonly backend: LoadBackend
  readonly scenario: ScenarioName
  readonly play: Play
  readonly load: Load
  /** Where the worker finds its backend, perhaps by a slow way; empty in memory. */
  readonly address: string
  /** The same place without the slow way: for what is prepared and checked, and not measured. */
  readonly directAddress: string
  /** How much longer each commit takes. */
  readonly slowCommitsMs: number
}

/** What a worker process saw. */
export interface LoadReport extends Costs {
  /** How many items should have ended. */
  readonly expected: number
  /** Ended as success, by the replies that the engine got. */
  readonly done: number
  /** Ended as success, by the backend's own record afterwards. */
  readonly doneStored: number
  /** Ended dead, by ending. */
  readonly dead: Readonly<Record<string, number>>
  readonly deadStored: number
  /** Runs of an item that had been started before. */
  readonly secondRuns: number
  /** Items that were handed out again because their lease had run out. */
  readonly lapses: number
  /** Outcomes that came too late to be written. */
  readonly stale: number
  /** Calls of `onError`, by phase and code. */
  readonly errors: Readonly<Record<string, number>>
  /** Most items that were claimed and not settled. */
  readonly held: number
  /** Most handlers that ran at the same time. */
  readonly running: number
  readonly ms: number
  readonly perSecond: number
  /** What else the scenario reports. */
  readonly facts: Readonly<Record<string, number | string>>
  /** Promises that the scenario itself saw broken. */
  readonly broken: readonly string[]
}

/** What a worker process says to the one that started it. */
export type Word =
  | { readonly is: 'begun' }
  /** SIGTERM has reached a listener. */
  | { readonly is: 'terminating' }
  | { readonly is: 'report'; readonly report: LoadReport }
