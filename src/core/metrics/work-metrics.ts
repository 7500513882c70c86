import type { StatMeta } from './stat.js'

/**
 * The names of the metrics that a work system keeps. Every series has the label `type`, except `queueDepth`, which has
 * `queue`, and `removed`, which has none.
 */
export const WORK_METRICS = Object.freeze({
  queued: 'work.queued',
  started: 'work.started',
  succeeded: 'work.succeeded',
  failed: 'work.failed',
  retried: 'work.retried',
  deferred: 'work.deferred',
  rescheduled: 'work.rescheduled',
  expired: 'work.expired',
  cancelled: 'work.cancelled',
  crashed: 'work.crashed',
  removed: 'work.removed',
  commitErrors: 'work.commit_errors',
  leaseLost: 'work.lease_lost',
  active: 'work.active',
  pending: 'work.pending',
  running: 'work.running',
  peak: 'work.peak_active',
  lastQueued: 'work.last_queued_at',
  lastStarted: 'work.last_started_at',
  lastSucceeded: 'work.last_succeeded_at',
  lastFailed: 'work.last_failed_at',
  queueDepth: 'work.queue_depth',
  waitTime: 'work.wait_time',
  totalTime: 'work.total_time',
  successTime: 'work.success_time',
  errorTime: 'work.error_time',
  delayTime: 'work.delay_time',
  rescheduleTime: 'work.reschedule_time',
  attempts: 'work.attempts',
} as const)

/** A key of {@link WORK_METRICS}. */
export type WorkMetric = keyof typeof WORK_METRICS

type Described = Required<Pick<StatMeta, 'kind' | 'description' | 'unit'>>

const counter = (description: string): Described => Object.freeze({ kind: 'counter', description, unit: 'count' })
const gauge = (description: string): Described => Object.freeze({ kind: 'gauge', description, unit: 'count' })
const instant = (description: string): Described => Object.freeze({ kind: 'gauge', description, unit: 'epoch ms' })
const duration = (description: string): Described => Object.freeze({ kind: 'summary', description, unit: 'ms' })

/** The kind, description and unit of each of them: what the engine creates its series with, and what `# HELP` says. */
export const WORK_METRIC_DETAILS: Readonly<Record<WorkMetric, Described>> = Object.freeze({
  queued: counter('Items handed to a queue by this process.'),
  started: counter('Runs begun.'),
  succeeded: counter('Items that ended in success.'),
  failed: counter('Items that ended dead.'),
  retried: counter('Failed runs that were queued for another attempt.'),
  deferred: counter('Runs that asked to run again later, without spending an attempt.'),
  rescheduled: counter('Deliveries that arrived too early and were put off until they are due.'),
  expired: counter('Items whose deadline passed before they could run.'),
  cancelled: counter('Items that ended because they were cancelled.'),
  crashed: counter('Runs that were found cut off: their process died, or lost its lease.'),
  removed: counter('Ended items that were removed, since they had been kept long enough.'),
  commitErrors: counter('Settlements whose first write failed.'),
  leaseLost: counter('Runs whose lease was taken over while they ran.'),
  active: gauge('Items held by this process, waiting or running.'),
  pending: gauge('Items held by this process that have not begun to run.'),
  running: gauge('Items running in this process.'),
  peak: gauge('The most items this process has held at the same time.'),
  lastQueued: instant('When an item was last queued.'),
  lastStarted: instant('When a run last began.'),
  lastSucceeded: instant('When an item last succeeded.'),
  lastFailed: instant('When an item last ended dead.'),
  queueDepth: gauge('Items in the queue, as its backend counts them.'),
  waitTime: duration('How long an item waited to run after it was due.'),
  totalTime: duration('How long an item took from being queued to its end.'),
  successTime: duration('How long a successful run took.'),
  errorTime: duration('How long a failed run took.'),
  delayTime: duration('How long deferred runs asked to wait.'),
  rescheduleTime: duration('How much too early deliveries arrived.'),
  attempts: Object.freeze({ kind: 'summary', description: 'Attempts that an item took to its end.', unit: 'count' }),
})
