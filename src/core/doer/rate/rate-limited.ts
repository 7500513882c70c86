import { AsyncResource } from 'node:async_hooks'
import { doublingDelay } from '../../retry/backoff.js'
import type { Clock } from '../../time/clock.js'
import type { At, Ms } from '../../time/time.js'
import { backlogAlarm } from '../backlog-alarm.js'
import { idle } from '../idle.js'
import { checkTask, soon } from '../start.js'
import { wakeups } from '../wakeups.js'
import {
  type RateLimitedBacklogInfo,
  type RateLimitedDoer,
  type RateLimitedDoerOptions,
  type RateTaskOptions,
  resolveRateOptions,
} from './rate-options.js'
import { type RateQueue, RateQueues, type WaitingTask } from './rate-queues.js'
import { admitRound } from './rate-round.js'

/** The longest pause between two attempts to reach a store that fails. */
const MAX_ERROR_PAUSE: Ms = 5000

/**
 * Lets at most `limit` tasks start per `window`, oldest first, and hands them to another doer, which decides how many run
 * at once. With a `store` the limit is that of the whole fleet. With `groupLimit` each group has its own limit as
 * well: tasks of a group that has used it up wait, and those of other groups pass them by.
 *
 * @example
 * ```ts
 * // at most 100 calls a minute over all processes, at most 4 at once in this one
 * const doer = rateLimitedDoer({ limit: 100, window: 60_000, store: backend.store, doer: priorityDoer({ max: 4 }) })
 * ```
 */
export function rateLimitedDoer(options: RateLimitedDoerOptions): RateLimitedDoer {
  const { limit, hasOneBucket, bucketsOf, inner, clock, retryFloor, report } = resolveRateOptions(options)
  const queues = new RateQueues()
  const whenIdle = idle()
  const whenAvailable = wakeups()
  const alarm = backlogAlarm<RateLimitedBacklogInfo>('rateLimitedDoer', options, clock, (nonEmptyForMs) => ({
    pending: queues.size,
    nonEmptyForMs,
  }))
  let order = 0
  let running = 0
  let failures = 0
  let isFull = false
  let round: 'none' | 'soon' | 'going' | 'again' = 'none'
  /** Nothing at all passes before then: the one bucket is empty, the store failed, or a silent inner doer is full. */
  let closedUntil: Ms | undefined
  let timer: { readonly at: Ms; readonly cancel: () => void } | undefined

  const available = (): number => Math.min(Math.max(0, limit - queues.size), inner.available())

  /** Wakes those who wait for room, if there was none when we last looked. */
  function announce(): void {
    const wasFull = isFull
    isFull = available() <= 0
    if (wasFull && !isFull) whenAvailable.wake()
  }

  function admit(queue: RateQueue): void {
    const waiting = queues.shift(queue)
    alarm.pending(queues.size)
    running += 1
    const task = async (): Promise<void> => {
      try {
        await waiting.task()
      } finally {
        running -= 1
        if (running === 0 && queues.size === 0) whenIdle.reached()
      }
    }
    try {
      waiting.scope.runInAsyncScope(() => inner.do(task, waiting.hints))
    } catch (error) {
      running -= 1
      queues.push(queue.buckets, waiting)
      alarm.pending(queues.size)
      throw error
    }
  }

  const until = (ms: Ms): Ms => clock.monotonic() + Math.ceil(Math.max(retryFloor, ms))

  async function rounds(): Promise<void> {
    do {
      round = 'going'
      try {
        closedUntil = await admitRound({ queues, inner, hasOneBucket, admit, until, report })
        failures = 0
      } catch (error) {
        closedUntil = until(doublingDelay(failures, { baseMs: retryFloor, maxMs: MAX_ERROR_PAUSE }))
        failures += 1
        report(error)
      }
    } while (isAskedAgain() && closedUntil === undefined)
    round = 'none'
    rearm()
    announce()
  }

  // A function, because the compiler believes that `round` has not changed since it was set above.
  const isAskedAgain = (): boolean => round === 'again'

  function startRound(): void {
    if (round === 'going') round = 'again'
    if (round !== 'none' || closedUntil !== undefined || queues.size === 0) return
    round = 'soon'
    // Later, so that tasks given together are let through oldest first, whatever the order they were given in.
    soon(() => rounds().catch(report))
  }

  /** One timer for whatever comes first; none where nothing waits. */
  function rearm(): void {
    const at = queues.size === 0 ? Infinity : Math.min(closedUntil ?? Infinity, queues.nextUnblock() ?? Infinity)
    if (timer?.at === at) return
    timer?.cancel()
    timer =
      at === Infinity ? undefined : { at, cancel: clock.after(Math.max(0, at - clock.monotonic()), () => ring(at)) }
  }

  function ring(at: Ms): void {
    timer = undefined
    // The timer is right even where `now` is an injected one that has not moved.
    const now = Math.max(at, clock.monotonic())
    if (closedUntil !== undefined && closedUntil <= now) closedUntil = undefined
    queues.unblock(now)
    startRound()
    if (round === 'none') rearm()
  }

  const doer: RateLimitedDoer = {
    available,
    do(task, given = {}) {
      checkTask(task)
      queues.push(bucketsOf(given), {
        task,
        hints: hintsOf(given, clock),
        order,
        scope: new AsyncResource('millrace.doer'),
      })
      order += 1
      alarm.pending(queues.size)
      if (available() <= 0) isFull = true
      startRound()
    },
    done: () => (running === 0 && queues.size === 0 ? Promise.resolve() : whenIdle.wait()),
  }
  if (inner.onAvailable === undefined) return doer
  inner.onAvailable(() => {
    isFull = true
    startRound()
    announce()
  })
  return { ...doer, onAvailable: whenAvailable.subscribe }
}

/** What the inner doer is given: its own inner limits, if it has any, are not those of this one. */
function hintsOf({ group, priority, createdAt }: RateTaskOptions, clock: Clock): WaitingTask['hints'] {
  const hints: { group?: string; priority?: number; createdAt: At } = {
    createdAt: createdAt === undefined || Number.isNaN(createdAt) ? clock.now() : createdAt,
  }
  if (group !== undefined) hints.group = group
  if (priority !== undefined) hints.priority = priority
  return hints
}
