import type { At, Ms } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import { nextTry, redriven } from '../../ports/envelope.js'
import type { Effect } from '../../ports/settlement.js'
import type { Book } from './book.js'
import { buryRecord } from './bury.js'
import { tellWatchers } from './elsewhere.js'
import { FLAG, type GroupRecord } from './group-record.js'
import type { ItemRecord } from './item-record.js'
import { MessageLease } from './message.js'
import { setSchedule } from './schedules.js'
import { durationOf } from './time.js'

type Of<Word extends Effect['do']> = Extract<Effect, { readonly do: Word }>

/** The commit under way: one time for all of it, and which groups it has moved. */
export interface Commit {
  readonly now: At
  readonly steady: Ms
  /** Which settlement of the batch this is. */
  index: number
  /** How long the items that this settlement ends are kept. */
  keepMs: Ms
  /** The item that its guard found. Most effects are about it: it is not looked up again for each. */
  guarded: ItemRecord | undefined
  /** The id that its guard found to be free. */
  absent: string | undefined
  /** The group it touched last. */
  group: GroupRecord | undefined
  /** Groups whose counts are compared with 0 when the whole batch has moved them. */
  readonly moved: GroupRecord[]
}

/** Applies one effect. Whatever could keep it from happening has been looked for before. */
export function applyEffect(book: Book, effect: Effect, commit: Commit): void {
  switch (effect.do) {
    case 'push':
      push(book, effect, commit)
      return
    case 'recordAttempt':
      recordAttempt(book, effect, commit)
      return
    case 'retryAt':
      retryAt(book, effect, commit)
      return
    case 'release':
      release(book, effect, commit)
      return
    case 'finish':
      finish(book, effect, commit)
      return
    case 'park':
      park(book, effect, commit)
      return
    case 'reopen':
      reopen(book, effect, commit)
      return
    case 'erase':
      erase(book, effect, commit)
      return
    case 'openGroup':
      moveGroup(book, effect.groupId, effect.by, commit)
      return
    case 'closeGroup':
      moveGroup(book, effect.groupId, -effect.by, commit)
      return
    case 'contribute':
      contribute(book, effect, commit)
      return
    case 'openGate':
      book.gates.open(effect, commit.now)
      return
    case 'tellGate':
      book.gates.tell(effect.key, effect.member, effect.ok, commit.now)
      return
    case 'notify':
      for (const id of effect.ids) {
        book.shelf.signals.tell(effect.to, id)
        book.shelf.signals.ended(id)
      }
      return
    case 'schedule':
      setSchedule(book, effect.name, { spec: effect.spec, nextAt: effect.nextAt })
      return
    case 'cancel':
      cancel(book, effect, commit)
      return
    case 'pause':
      book.pauses.pause(effect.what, effect.name)
      return
    case 'resume':
      book.pauses.resume(effect.what, effect.name, commit.now)
      return
    case 'log':
      book.log.add({ at: commit.now, who: effect.who, why: effect.why, what: effect.what })
      return
    default:
      unreachable(effect)
  }
}

function itemOf(book: Book, id: string, commit: Commit): ItemRecord | undefined {
  const { guarded } = commit
  return guarded !== undefined && guarded.id === id ? guarded : book.item(id, commit.now)
}

function groupOf(book: Book, id: string, commit: Commit): GroupRecord {
  const last = commit.group ?? commit.guarded?.group
  const isSame = last !== undefined && last.id === id && !last.isGone && last.keepUntil > commit.now
  const group = isSame ? last : book.ensureGroup(id, commit.now)
  commit.group = group
  return group
}

function push(book: Book, effect: Of<'push'>, commit: Commit): void {
  const { item, heldBy } = effect
  const { now } = commit
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
  if (commit.group?.id === item.groupId) record.group = commit.group
  if (item.waiter !== undefined) groupOf(book, item.groupId, commit).watch(item.waiter)
  if (heldBy === undefined) {
    signals.ready(queue, dueAt, now)
    return
  }
  queue.lease(message, new MessageLease(heldBy.token, heldBy.worker, true, heldBy.leaseMs, commit.steady, now))
  record.status = 'running'
  record.fence = 1
  record.runAt = now
  book.stateChanged(record)
}

function recordAttempt(book: Book, { id, was }: Of<'recordAttempt'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record === undefined) return
  const before = record.lastAttempt?.fingerprint
  record.recordAttempt(was)
  record.runAt ??= was.startedAt
  if (was.fingerprint !== before) book.traitsChanged(record)
}

function retryAt(book: Book, { id, attempt, delayMs }: Of<'retryAt'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record?.message === undefined) return
  const { now } = commit
  const dueAt = now + durationOf(delayMs)
  record.envelope = nextTry(record.envelope, attempt, dueAt)
  record.queue.replace(record.message, record.envelope, now, dueAt)
  isPendingAgain(book, record, dueAt, now)
}

function release(book: Book, { id, delayMs, hold }: Of<'release'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record?.message === undefined) return
  const { now } = commit
  const { message } = record
  const freed = message.hold
  const dueAt = delayMs === undefined ? undefined : now + durationOf(delayMs)
  record.queue.refile(message, now, dueAt, dueAt !== undefined && dueAt <= now ? undefined : hold)
  // Somebody let it run before its gate had decided: the gate is over.
  if (freed?.by === 'gate' && freed.key !== hold?.key) book.gates.drop(freed.key)
  isPendingAgain(book, record, message.place === 'held' ? Number.POSITIVE_INFINITY : message.dueAt, now)
}

function isPendingAgain(book: Book, record: ItemRecord, dueAt: At, now: At): void {
  record.backToPending()
  book.dropStateText(record.id)
  book.stateChanged(record)
  book.shelf.signals.ready(record.queue, dueAt, now)
}

function finish(book: Book, effect: Of<'finish'>, commit: Commit): void {
  const record = itemOf(book, effect.id, commit)
  if (record === undefined) return
  record.status = 'success'
  record.ending = effect.ending
  record.result = effect.result
  book.shedInput(record)
  end(book, record, effect.keepMs, commit.now)
}

function park(book: Book, effect: Of<'park'>, commit: Commit): void {
  const record = itemOf(book, effect.id, commit)
  if (record === undefined) return
  record.status = 'dead'
  record.ending = effect.ending
  record.result = undefined
  const extras = record.withExtras()
  extras.error = effect.error
  extras.class = effect.class
  buryRecord(record)
  book.traitsChanged(record)
  end(book, record, effect.keepMs, commit.now)
}

function end(book: Book, record: ItemRecord, keepMs: Ms, now: At): void {
  takeOffQueue(book, record)
  record.endAt = now
  if (record.extras?.cancelled !== undefined) record.withExtras().cancelled = undefined
  book.dropTexts(record.id)
  book.stateChanged(record)
  tellWatchers(book, record)
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

function reopen(book: Book, { id, delayMs }: Of<'reopen'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record === undefined) return
  const { now } = commit
  const dueAt = now + durationOf(delayMs)
  const entry = record.extras?.deadEntry
  // An item that a plain system parked has its input in the dead letters only.
  const letter = entry === undefined ? book.deadLetterOf(id) : undefined
  const envelope = redriven(record.hasInput || letter === undefined ? record.envelope : letter.envelope, now, dueAt)
  if (entry !== undefined) record.queue.dead.remove(entry)
  if (letter !== undefined) letter.queue.dead.remove(letter.entry)
  book.dropTexts(id)
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

function erase(book: Book, { id }: Of<'erase'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record === undefined) return
  takeOffQueue(book, record)
  const entry = record.extras?.deadEntry
  if (entry !== undefined) record.queue.dead.remove(entry)
  book.dropTexts(id)
  book.remove(record)
  commit.guarded = undefined
}

function moveGroup(book: Book, groupId: string, by: number, commit: Commit): void {
  const group = groupOf(book, groupId, commit)
  group.open += by
  group.isCounted = true
  group.keepMs = commit.keepMs
  if (group.movedBy < 0) commit.moved.push(group)
  group.movedBy = commit.index
}

function contribute(book: Book, { groupId, value, final }: Of<'contribute'>, commit: Commit): void {
  const group = groupOf(book, groupId, commit)
  if (group.final !== undefined) return
  group.value = value
  group.valueText = undefined
  group.version += 1
  if (final) group.final = FLAG
}

function cancel(book: Book, { id, reason }: Of<'cancel'>, commit: Commit): void {
  const record = itemOf(book, id, commit)
  if (record?.status !== 'running') return
  record.withExtras().cancelled = reason
  // Its holder looks at once instead of at its next heartbeat.
  if (record.holder !== undefined) book.shelf.signals.tell(record.holder, id)
}
