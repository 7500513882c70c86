import { AsyncResource } from 'node:async_hooks'
import { integerOption, optionsObject } from '../options.js'
import type { At } from '../time/time.js'
import { type BacklogInfo, type BacklogOptions, backlogAlarm } from './backlog-alarm.js'
import { type ClockOptions, clockOption } from './clock-option.js'
import type { Doer, DoerTaskOptions } from './doer.js'
import { idle } from './idle.js'
import { checkTask, soon, start } from './start.js'
import { wakeups } from './wakeups.js'

/** Options of `priorityDoer`, `ageDoer` and `balancedDoer`. */
export interface BoundedDoerOptions extends BacklogOptions<BacklogInfo>, ClockOptions {
  /** How many tasks run at once. */
  readonly max: number
  /** How many more `available()` asks for, to have them at hand when a place frees. Default: `max`. */
  readonly buffer?: number
}

/** What an engine says of a task, too. */
export interface ScopedTaskOptions extends DoerTaskOptions {
  /** What the task starts in: its `AsyncLocalStorage` values begin as those of this scope. Default: those of the caller. */
  readonly scope?: AsyncResource
}

/** A task in the hands of a bounded doer. */
export interface HeldTask {
  readonly task: () => unknown
  readonly group: string
  readonly priority: number
  readonly createdAt: At
  /** Counts up with every task. */
  readonly order: number
  /** The context of the caller: the task starts when another one ends, and must not inherit from that. */
  readonly scope: AsyncResource | undefined
  /** Others start in this scope, too. */
  readonly isScopeShared: boolean
}

/** The tasks that wait, in the order in which a doer wants them. */
export interface Pending {
  readonly size: number
  push(task: HeldTask): void
  /** The next one, no longer waiting. */
  pop(): HeldTask | undefined
  started?(task: HeldTask): void
  ended?(task: HeldTask): void
}

/** Whether `a` runs before `b`. */
export type RunsBefore = (a: HeldTask, b: HeldTask) => boolean

export const olderFirst: RunsBefore = (a, b) =>
  a.createdAt !== b.createdAt ? a.createdAt < b.createdAt : a.order < b.order

export const higherFirst: RunsBefore = (a, b) =>
  a.priority !== b.priority ? a.priority > b.priority : olderFirst(a, b)

const NAMES = ['max', 'buffer', 'clock', 'now', 'onBacklog', 'backlogAfterMs', 'backlogEveryMs'] as const

/** At most `max` tasks at once; the rest wait in `pending`. `owner` is the function whose options these are. */
export function boundedDoer(owner: string, options: BoundedDoerOptions, pending: Pending): Doer {
  const given = optionsObject(owner, options, NAMES)
  const max = integerOption(`${owner}.max`, given.max, { min: 1 })
  const room = max + integerOption(`${owner}.buffer`, given.buffer, { min: 0, default: max })
  const clock = clockOption(owner, given)
  const whenIdle = idle()
  const whenAvailable = wakeups()
  let running = 0
  let order = 0
  const alarm = backlogAlarm<BacklogInfo>(owner, given, clock, (nonEmptyForMs) => ({
    pending: pending.size,
    running,
    nonEmptyForMs,
  }))

  const available = (): number => Math.max(0, room - (running + pending.size))

  function settled(ended: HeldTask): void {
    const wasFull = available() === 0
    running -= 1
    pending.ended?.(ended)
    const next = pending.pop()
    if (next !== undefined) {
      running += 1
      pending.started?.(next)
      alarm.pending(pending.size)
      run(next)
    } else if (running === 0) whenIdle.reached()
    if (wasFull && available() > 0) whenAvailable.wake()
  }

  function run(held: HeldTask): void {
    const ended = () => settled(held)
    if (held.scope === undefined) start(held.task, ended)
    else held.scope.runInAsyncScope(held.isScopeShared ? startApart : start, undefined, held.task, ended)
  }

  return {
    available,
    do(task, { group = '', priority = 0, createdAt = clock.now(), scope }: ScopedTaskOptions = {}) {
      checkTask(task)
      const mustWait = running === max
      const held: HeldTask = {
        task,
        group,
        priority: Number.isNaN(priority) ? 0 : priority,
        createdAt: Number.isNaN(createdAt) ? clock.now() : createdAt,
        order,
        scope: scope ?? (mustWait ? new AsyncResource('millrace.doer') : undefined),
        isScopeShared: scope !== undefined,
      }
      order += 1
      if (mustWait) {
        pending.push(held)
        alarm.pending(pending.size)
      } else {
        running += 1
        pending.started?.(held)
        soon(() => run(held))
      }
    },
    done: () => (running === 0 ? Promise.resolve() : whenIdle.wait()),
    concurrency: max,
    onAvailable: whenAvailable.subscribe,
  }
}

const OF_ONE_TASK = { requireManualDestroy: true }

/** What a task enters with `enterWith` stays where it runs, before Node 24: in a scope that is shared, the next task would find it. */
function startApart(task: () => unknown, settled: () => void): void {
  new AsyncResource('millrace.task', OF_ONE_TASK).runInAsyncScope(start, undefined, task, settled)
}
