import type { At } from '../time/time.js'

/** What a doer may know of a task when it decides which one runs next. */
export interface DoerTaskOptions {
  /** Tasks of one group share what a balanced doer hands out. Default: `''`. */
  readonly group?: string
  /** Higher runs first. Default: 0. */
  readonly priority?: number
  /** Older runs first. Default: the time of the call. */
  readonly createdAt?: At
}

/**
 * Decides how many tasks may be held and which one runs next.
 *
 * A doer of your own needs the first three methods; `onAvailable` saves an engine from asking again and again, and with
 * `concurrency` a handler that waits for other work lends its place meanwhile.
 */
export interface Doer {
  /** How many more tasks it would like to have. Asked before work is pulled for it. */
  available(): number
  /**
   * Takes a task, also beyond `available()`, and returns before the task starts. Fire and forget: what the task throws is
   * swallowed, so a task that matters reports for itself; `doWith` does that.
   */
  do(task: () => Promise<void>, options?: DoerTaskOptions): void
  /** Resolves when nothing is running or waiting. */
  done(): Promise<void>
  /** How many tasks run at once at most. `Infinity`: there is no limit. Absent: not known, and places are not lent. */
  readonly concurrency?: number
  /** Calls `listener` whenever `available()` rises from 0. Returns an unsubscribe. */
  onAvailable?(listener: () => void): () => void
}
