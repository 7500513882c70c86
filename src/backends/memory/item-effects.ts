import type { At, Ms } from '../../core/time.js'
import { nextTry, redriven } from '../../ports/envelope.js'
import { deadLetterOf } from './adopt.js'
import type { Book } from './book.js'
import { buryRecord } from './bury.js'
import { type Commit, groupOf, itemOf, moveGroup, type Of } from './commit-step.js'
import { tellWatchers } from './elsewhere.js'
import type { ItemRecord } from './item-record.js'
import { type Message, MessageLease } from './message.js'
import { dropStateText, dropTexts } from './plain-texts.js'
import { durationOf } from './time.js'

export function push(book: Book, effect: Of<'push'>, commit: Commit): void {
  const { item, heldBy } = effect
  const { now } = commit
  const isAlone = commit.absent === item.id && commit.opening === item.groupId
  if (commit.absent === item.id) commit.absent = undefined
  else if (book.item(item.id, now) !== undefined) {
    // There already, so it is not pushed: its group must not wait for it, though it was counted with its siblings.
    moveGroup(book, item.groupId, -1, commit)
    return
  }
  const { queues, signals } = book.shelf
  const queue = queues.named(effect.queue)
  const delayMs = durationOf(effect.delayMs)
  const gate = effect.hold?.by === 'gate' ? book.gates.takeDecision(effect.hold.key) : undefined
  // A hold without any time left, or whose gate has decided already, holds nothing.
  const hold = delayMs === 0 || gate !== undefined ? undefined : effect.hold
  const dueAt = gate === undefined ? now + delayMs : now
  const message = queue.draft(item, dueAt, item.priority)
  message.hold = hold
  message.gate = gate
  queue.enter(message, now)
  const record = book.add(item, message, queue)
  if (isAlone) {
    commit.opening = undefined
    book.setAlone(record)
  } else {
    if (item.waiter !== undefined) groupOf(book, item.groupId, commit).watch(item.waiter)
    if (commit.group?.id === item.groupId) record.group = commit.group
  }
  if (heldBy === undefined) {
    signals.ready(queue, dueAt, now)
    return
  }
  queue.lease(message, new MessageLease(heldBy.token, heldBy.worker, heldBy.leaseMs, commit.steady, now))
  record.status = 'running'
  record.fence = 1
  record.runAt = now
  book.stateChanged(record)
}

export function recordAttempt(book: Book, { id, was }: Of<'recordAttempt'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record === undefined) return
  const before = record.fingerprint
  record.recordAttempt(was)
  record.runAt ??= was.startedAt
  if (record.fingerprint !== before) book.traitsChanged(record)
  if (was.error !== undefined) book.weigh(record)
}

export function retryAt(book: Book, { id, attempt, delayMs }: Of<'retryAt'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record?.message === undefined) return
  const { now } = commit
  const dueAt = now + durationOf(delayMs)
  record.envelope = nextTry(record.envelope, attempt, dueAt)
  record.queue.replace(record.message, record.envelope, now, dueAt)
  isPendingAgain(book, record, dueAt, now)
}

export function release(book: Book, { id, delayMs, hold }: Of<'release'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record === undefined) return
  const { now } = commit
  const message = record.message ?? newMessage(book, record, now)
  if (message === undefined) return
  const freed = message.hold
  const dueAt = delayMs === undefined ? undefined : now + durationOf(delayMs)
  record.queue.refile(message, now, dueAt, dueAt !== undefined && dueAt <= now ? undefined : hold)
  // Somebody let it run before its gate had decided: the gate is over.
  if (freed?.by === 'gate' && freed.key !== hold?.key) book.gates.drop(freed.key)
  isPendingAgain(book, record, message.place === 'held' ? Number.POSITIVE_INFINITY : message.dueAt, now)
}

/** For an item that is open and stands in no queue any more, because somebody else took its message: it stands there again. */
function newMessage(book: Book, record: ItemRecord, now: At): Message | undefined {
  if (record.hasEnded || !record.hasInput) return undefined
  const { envelope, queue } = record
  const message = queue.draft(envelope, now, envelope.priority)
  message.fence = record.fence
  queue.enter(message, now)
  book.link(record, message, envelope)
  return message
}

function isPendingAgain(book: Book, record: ItemRecord, dueAt: At, now: At): void {
  record.backToPending()
  dropStateText(book, record.id)
  book.stateChanged(record)
  book.shelf.signals.ready(record.queue, dueAt, now)
}

export function finish(book: Book, effect: Of<'finish'>, commit: Commit): void {
  const record = itemOf(book, effect.id, commit)
  if (record === undefined) return
  record.status = 'success'
  record.ending = effect.ending
  record.result = effect.result
  book.shedInput(record)
  end(book, record, effect.keepMs, commit.now)
}

export function park(book: Book, effect: Of<'park'>, commit: Commit): void {
  const record = itemOf(book, effect.id, commit)
  if (record === undefined) return
  record.status = 'dead'
  record.ending = effect.ending
  record.result = undefined
  const extras = record.withExtras()
  extras.error = effect.error
  extras.class = effect.class
  extras.fingerprint = effect.fingerprint ?? extras.fingerprint
  buryRecord(record)
  book.traitsChanged(record)
  end(book, record, effect.keepMs, commit.now)
}

function end(book: Book, record: ItemRecord, keepMs: Ms, now: At): void {
  takeOffQueue(book, record)
  record.endAt = now
  if (record.extras?.cancelled !== undefined) record.withExtras().cancelled = undefined
  dropTexts(book, record.id)
  book.stateChanged(record)
  book.weigh(record)
  tellWatchers(book, record, now)
  book.shelf.signals.ended(record.id)
  book.gates.ended(record.id, record.status === 'success', now)
  book.keep(record, now + keepMs)
}

/** Its message has done its work; what it counted stays with the record. */
function takeOffQueue(book: Book, record: ItemRecord): void {
  const { message } = record
  if (message === undefined) return
  if (message.lapses > 0) {
    const extras = record.withExtras()
    extras.lapses = message.lapses
    extras.crashes = message.crashes
  }
  record.queue.remove(message)
  book.shelf.queues.markRead(message)
  message.owner = undefined
  record.message = undefined
  if (message.hold?.by === 'gate') book.gates.drop(message.hold.key)
  if (message.gate !== undefined) book.gates.forgetDecision(message.gate.key)
}

export function reopen(book: Book, { id, delayMs }: Of<'reopen'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record === undefined) return
  const { now } = commit
  const dueAt = now + durationOf(delayMs)
  const entry = record.extras?.deadEntry
  // An item that a plain system parked has its input in the dead letters only.
  const letter = entry === undefined ? deadLetterOf(book, id) : undefined
  const envelope = redriven(record.hasInput || letter === undefined ? record.envelope : letter.envelope, now, dueAt)
  if (entry !== undefined) record.queue.dead.remove(entry)
  if (letter !== undefined) letter.queue.dead.remove(letter.entry)
  dropTexts(book, id)
  record.backToPending()
  record.ending = undefined
  record.result = undefined
  record.endAt = undefined
  record.shedExtras()
  const message = record.queue.draft(envelope, dueAt, envelope.priority)
  message.fence = record.fence
  record.queue.enter(message, now)
  book.link(record, message, envelope)
  book.traitsChanged(record)
  book.shelf.signals.ready(record.queue, dueAt, now)
}

export function erase(book: Book, { id }: Of<'erase'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record === undefined) return
  takeOffQueue(book, record)
  const entry = record.extras?.deadEntry
  if (entry !== undefined) record.queue.dead.remove(entry)
  dropTexts(book, id)
  book.remove(record)
  commit.guarded = undefined
}

export function cancel(book: Book, { id, reason }: Of<'cancel'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record?.status !== 'running') return
  record.withExtras().cancelled = reason
  // Its holder looks at once instead of at its next heartbeat.
  if (record.holder !== undefined) book.shelf.signals.tell(record.holder, id)
}
