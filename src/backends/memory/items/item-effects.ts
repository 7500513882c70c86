import type { At, Ms } from '../../../core/time/time.js'
import { nextTry, redrivenEnvelope, writeEnvelope } from '../../../ports/envelope.js'
import type { EffectOf } from '../../../ports/settlement.js'
import { type CommitContext, groupOf, itemOf, moveGroup } from '../commit/commit-context.js'
import type { DeadLettered } from '../queue/dead-letters.js'
import { type Message, MessageLease } from '../queue/message.js'
import { durationOf } from '../time.js'
import type { ItemRecord } from './item-record.js'
import type { ItemTable } from './item-table.js'

export function enqueue(table: ItemTable, effect: EffectOf<'enqueue'>, commit: CommitContext): void {
  const { item, leasedTo } = effect
  const { now } = commit
  const isSingle = commit.absent === item.id && commit.opening === item.groupId
  if (commit.absent === item.id) commit.absent = undefined
  else if (table.item(item.id, now) !== undefined) {
    // The id exists, so nothing is enqueued: the group must not wait for it, although it was counted with its siblings.
    moveGroup(table, item.groupId, -1, commit)
    return
  }
  const { queues, notifier } = table.context
  const queue = queues.named(effect.queue)
  const delayMs = durationOf(effect.delayMs)
  const gate = effect.hold?.by === 'gate' ? table.gates.takeDecision(effect.hold.key) : undefined
  // A hold without any time left, or whose gate has decided already, holds nothing.
  const hold = delayMs === 0 || gate !== undefined ? undefined : effect.hold
  const dueAt = gate === undefined ? now + delayMs : now
  const message = queue.draft(item, dueAt, item.priority)
  message.hold = hold
  message.gate = gate
  queue.enter(message, now)
  const record = table.add(item, message, queue)
  if (isSingle) {
    commit.opening = undefined
    table.setSingle(record)
  } else {
    if (item.waiter !== undefined) groupOf(table, item.groupId, commit).watch(item.waiter)
    if (commit.group?.id === item.groupId) record.group = commit.group
  }
  if (leasedTo === undefined) {
    notifier.ready(queue, dueAt, now)
    return
  }
  queue.lease(message, new MessageLease(leasedTo.token, leasedTo.worker, leasedTo.leaseMs, commit.steady, now))
  record.status = 'running'
  record.fence = 1
  record.runAt = now
  table.stateChanged(record)
}

export function recordAttempt(table: ItemTable, { id, was }: EffectOf<'recordAttempt'>, commit: CommitContext): void {
  const record = itemOf(table, id, commit)
  if (record === undefined) return
  const before = record.fingerprint
  record.recordAttempt(was)
  record.runAt ??= was.startedAt
  if (record.fingerprint !== before) table.listsChanged(record)
  if (was.error !== undefined) table.weigh(record)
}

export function retry(table: ItemTable, { id, attempt, delayMs }: EffectOf<'retry'>, commit: CommitContext): void {
  const record = itemOf(table, id, commit)
  if (record?.message === undefined) return
  const { now } = commit
  const dueAt = now + durationOf(delayMs)
  record.envelope = nextTry(record.envelope, attempt, dueAt)
  record.queue.replace(record.message, record.envelope, now, dueAt)
  isPendingAgain(table, record, dueAt, now)
}

export function release(table: ItemTable, { id, delayMs, hold }: EffectOf<'release'>, commit: CommitContext): void {
  const record = itemOf(table, id, commit)
  if (record === undefined) return
  const { now } = commit
  const message = record.message ?? newMessage(table, record, now)
  if (message === undefined) return
  const freed = message.hold
  const dueAt = delayMs === undefined ? undefined : now + durationOf(delayMs)
  record.queue.refile(message, now, dueAt, dueAt !== undefined && dueAt <= now ? undefined : hold)
  // It may run before its gate has decided, which ends the gate.
  if (freed?.by === 'gate' && freed.key !== hold?.key) table.gates.drop(freed.key)
  isPendingAgain(table, record, message.place === 'held' ? Number.POSITIVE_INFINITY : message.dueAt, now)
}

/** An open item that is in no queue any more is put back into its queue. */
function newMessage(table: ItemTable, record: ItemRecord, now: At): Message | undefined {
  if (record.hasEnded || !record.hasInput) return undefined
  const { envelope, queue } = record
  const message = queue.draft(envelope, now, envelope.priority)
  message.fence = record.fence
  queue.enter(message, now)
  table.link(record, message, envelope)
  return message
}

function isPendingAgain(table: ItemTable, record: ItemRecord, dueAt: At, now: At): void {
  record.backToPending()
  table.stateChanged(record)
  table.context.notifier.ready(record.queue, dueAt, now)
}

export function complete(table: ItemTable, effect: EffectOf<'complete'>, commit: CommitContext): void {
  const record = itemOf(table, effect.id, commit)
  if (record === undefined) return
  record.status = 'completed'
  record.ending = effect.ending
  record.result = effect.result
  table.shedInput(record)
  end(table, record, effect.keepMs, commit.now)
}

export function deadLetter(table: ItemTable, effect: EffectOf<'deadLetter'>, commit: CommitContext): void {
  const record = itemOf(table, effect.id, commit)
  if (record === undefined) return
  record.status = 'dead'
  record.ending = effect.ending
  record.result = undefined
  const extras = record.withExtras()
  extras.error = effect.error
  extras.class = effect.class
  extras.fingerprint = effect.fingerprint ?? extras.fingerprint
  addDeadLetter(record)
  table.listsChanged(record)
  end(table, record, effect.keepMs, commit.now)
}

function end(table: ItemTable, record: ItemRecord, keepMs: Ms, now: At): void {
  takeOffQueue(table, record)
  record.endAt = now
  if (record.extras?.cancelled !== undefined) record.withExtras().cancelled = undefined
  table.stateChanged(record)
  table.weigh(record)
  notifyWatchers(table, record, now)
  table.gates.ended(record.id, record.status === 'completed', now)
  table.keep(record, now + keepMs)
}

/** Notifies each inbox that waits for the item, once. The item stays until one of them has read it. */
function notifyWatchers(table: ItemTable, record: ItemRecord, now: At): void {
  const { notifier } = table.context
  const { waiter } = record.envelope
  const watchers = record.extras?.watchers
  let isHeard = waiter !== undefined && notifier.item(waiter, record.id)
  if (watchers !== undefined) {
    for (const inbox of watchers) if (inbox !== waiter && notifier.item(inbox, record.id)) isHeard = true
    record.withExtras().watchers = undefined
  }
  if (isHeard) table.await(record, now)
}

/**
 * Shows a dead item in the dead letters of its queue, whose text is made when it is read. A cancelled item is not shown: a
 * redrive from there would run what a person stopped.
 */
function addDeadLetter(record: ItemRecord): void {
  if (record.ending === 'cancelled') return
  const { envelope } = record
  const extras = record.withExtras()
  const entry: DeadLettered = {
    get body() {
      return writeEnvelope(envelope)
    },
    error: extras.error ?? '',
  }
  extras.deadEntry = entry
  record.queue.dead.add(entry, envelope.input)
}

/** Removes its message; what the message counted stays with the record. */
function takeOffQueue(table: ItemTable, record: ItemRecord): void {
  const { message } = record
  if (message === undefined) return
  if (message.lapses > 0) {
    const extras = record.withExtras()
    extras.lapses = message.lapses
    extras.crashes = message.crashes
  }
  record.queue.remove(message)
  table.context.queues.markRead(message)
  message.owner = undefined
  record.message = undefined
  if (message.hold?.by === 'gate') table.gates.drop(message.hold.key)
}

export function redrive(table: ItemTable, { id, delayMs }: EffectOf<'redrive'>, commit: CommitContext): void {
  const record = itemOf(table, id, commit)
  if (record === undefined) return
  const { now } = commit
  const dueAt = now + durationOf(delayMs)
  const entry = record.extras?.deadEntry
  const envelope = redrivenEnvelope(record.envelope, now, dueAt)
  if (entry !== undefined) record.queue.dead.remove(entry)
  record.backToPending()
  record.ending = undefined
  record.result = undefined
  record.endAt = undefined
  record.shedExtras()
  const message = record.queue.draft(envelope, dueAt, envelope.priority)
  message.fence = record.fence
  record.queue.enter(message, now)
  table.link(record, message, envelope)
  table.listsChanged(record)
  table.context.notifier.ready(record.queue, dueAt, now)
}

export function deleteItem(table: ItemTable, { id }: EffectOf<'delete'>, commit: CommitContext): void {
  const record = itemOf(table, id, commit)
  if (record === undefined) return
  takeOffQueue(table, record)
  const entry = record.extras?.deadEntry
  if (entry !== undefined) record.queue.dead.remove(entry)
  table.remove(record)
  commit.guarded = undefined
}

export function requestCancel(
  table: ItemTable,
  { id, reason }: EffectOf<'requestCancel'>,
  commit: CommitContext,
): void {
  const record = itemOf(table, id, commit)
  if (record?.status !== 'running') return
  record.withExtras().cancelled = reason
  // Its worker reads the request now instead of with its next heartbeat.
  if (record.worker !== undefined) table.context.notifier.item(record.worker, id)
}
