import type { At } from '../../../core/time/time.js'
import type { Envelope } from '../../../ports/item.js'
import type { ScheduleRecord } from '../../../ports/ledger.js'
import { KEEP_COMPLETED_MS } from '../../../ports/limits.js'
import { ActionLog } from '../commit/action-log.js'
import { Pauses } from '../commit/pauses.js'
import { Workers } from '../commit/workers.js'
import { GateTable } from '../groups/gate-table.js'
import { GroupRecord } from '../groups/group-table.js'
import type { Notifier } from '../notify.js'
import type { Message } from '../queue/message.js'
import type { MessageQueue } from '../queue/message-queue.js'
import type { Queues } from '../queue/queues.js'
import { NO_SLOT, TimeList } from '../queue/time-list.js'
import { readUnread } from './adopt.js'
import { type Bytes, bytesOfGroup, bytesOfItem } from './bytes.js'
import { EndedList } from './ended-list.js'
import { ItemRecord, stateOfRecord } from './item-record.js'
import { classIndex, fingerprintIndex, StateIndex, tagIndex } from './state-index.js'

/** A longer input is dropped when its item completes: it is kept only to be run again. */
const SMALL_INPUT = 1_024

/** What the ledger and the ports of one backend share. */
export interface MemoryContext {
  readonly queues: Queues
  readonly notifier: Notifier
  /** Ends a step: writes it to the file, then calls listeners. */
  readonly settled: () => void
  readonly bytes: Bytes
  /** How many ended items are kept at most. */
  readonly maxEnded: number
  /** How many bytes of ended items and groups. */
  readonly keepEndedBytes: number
  /** How many bytes are stored at most before an enqueue is refused. */
  readonly maxBytes: number
}

/** All items and groups of a backend, and what is stored beside them. */
export class ItemTable {
  readonly context: MemoryContext
  readonly index: StateIndex
  readonly gates: GateTable
  readonly pauses: Pauses
  readonly schedules = new Map<string, ScheduleRecord>()
  readonly workers = new Workers()
  readonly log = new ActionLog()
  readonly #items = new Map<string, ItemRecord>()
  /** A group with a single member has no record. Unless that is its root, which is found by its own id, the item is here instead. */
  readonly #groups = new Map<string, GroupRecord | ItemRecord>()
  readonly #endedItems = new TimeList<ItemRecord>(expiresBefore, kept)
  readonly #endedGroups = new TimeList<GroupRecord>(expiresBefore, kept)
  /** Both, by when they ended. */
  readonly #ended = new EndedList<ItemRecord | GroupRecord>()
  #removed = 0

  constructor(context: MemoryContext) {
    this.context = context
    this.index = new StateIndex({
      stateChanged: (record) => this.stateChanged(record),
      gateTimedOut: (key) => this.gates.drop(key),
    })
    this.gates = new GateTable(this)
    this.pauses = new Pauses(this)
    const { queues } = context
    const { gates, pauses } = queues.rules()
    for (const gate of gates) this.gates.restore(gate)
    for (const { what, name } of pauses) this.pauses.restore(what, name)
    queues.rules = () => ({ gates: [...this.gates.all()], pauses: [...this.pauses.all()] })
  }

  /** Items that have not ended. */
  get open(): number {
    return this.index.open
  }

  item(id: string, now: At): ItemRecord | undefined {
    const record = this.#items.get(id)
    if (record !== undefined) {
      if (record.keepUntil > now || record.message !== undefined) return record
      this.#expire(record)
    }
    if (this.context.queues.unread.size === 0) return undefined
    readUnread(this)
    return this.#items.get(id)
  }

  /** The record, even if it has expired, without reading messages that came as text. */
  known(id: string): ItemRecord | undefined {
    return this.#items.get(id)
  }

  /** The first ids with that beginning, without those of messages that came as text and were not read. */
  idsStartingWith(prefix: string, limit: number): string[] {
    const found: string[] = []
    for (const id of this.#items.keys()) {
      if (found.length >= limit) break
      if (id.startsWith(prefix)) found.push(id)
    }
    return found
  }

  /** Adds an item and links its message to it. */
  add(envelope: Envelope, message: Message | undefined, queue: MessageQueue): ItemRecord {
    const record = new ItemRecord(envelope, this.index.queueType(queue, envelope.type))
    record.message = message
    if (message !== undefined) message.owner = record
    if (envelope.tags !== undefined && envelope.tags.length > 0)
      record.withExtras().entries = this.index.entries(record, indexesOf(record))
    this.#items.set(record.id, record)
    this.index.enter(record, stateOfRecord(record))
    this.weigh(record)
    return record
  }

  /** Removes an item. A group that it was the only member of goes on without it. */
  remove(record: ItemRecord): void {
    if (record.single !== 'no') this.#expand(record)
    this.#items.delete(record.id)
    this.index.remove(record)
    this.#endedItems.remove(record, record.keepSlot)
    this.#forget(record)
    this.#detach(record)
  }

  stateChanged(record: ItemRecord): void {
    this.index.move(record, stateOfRecord(record))
  }

  /** Its tags, its class or its last fingerprint changed. */
  listsChanged(record: ItemRecord): void {
    this.index.relist(record, indexesOf(record))
  }

  /** It has ended: kept until then, and the oldest make room. */
  keep(record: ItemRecord, keepUntil: At): void {
    this.#endedItems.remove(record, record.keepSlot)
    record.keepUntil = keepUntil
    if (keepUntil !== Number.POSITIVE_INFINITY || record.hasEnded) this.#endedItems.add(record)
    if (record.hasEnded) this.#enterEnded(record)
    while (this.#endedItems.size > this.context.maxEnded) this.#evict(this.#endedItems.peek()!)
  }

  /** It is open again: nothing removes it. */
  unkeep(record: ItemRecord): void {
    this.#endedItems.remove(record, record.keepSlot)
    record.keepUntil = Number.POSITIVE_INFINITY
    this.#leaveEnded(record)
    record.awaitedUntil = 0
  }

  /** Its texts have changed. */
  weigh(one: ItemRecord | GroupRecord): void {
    const { bytes } = this.context
    const weight = one instanceof ItemRecord ? bytesOfItem(one) : bytesOfGroup(one)
    bytes.stored += weight - one.weight
    if (one.endSlot !== NO_SLOT) bytes.ended += weight - one.weight
    one.weight = weight
  }

  /** A waiter was notified of its end: it stays until the waiter has read it. */
  await(one: ItemRecord | GroupRecord, now: At): void {
    this.#ended.await(one, now)
  }

  seen(one: ItemRecord | GroupRecord): void {
    this.#ended.seen(one)
  }

  /** Removes the oldest ended items and groups while they take too many bytes. */
  trim(now: At): void {
    const { bytes, keepEndedBytes } = this.context
    while (bytes.ended > keepEndedBytes) {
      const oldest = this.#ended.oldest(now)
      if (oldest === undefined) return
      if (oldest instanceof GroupRecord) this.#removeGroup(oldest)
      else this.#evict(oldest)
    }
  }

  /** Drops the input of a completed item, if it is worth dropping. */
  shedInput(record: ItemRecord): void {
    if (record.envelope.input.length <= SMALL_INPUT) return
    record.envelope = { ...record.envelope, input: '' }
    record.hasInput = false
  }

  group(id: string, now: At): GroupRecord | undefined {
    const found = this.#groupOrSingle(id)
    if (found === undefined) return undefined
    if (found instanceof ItemRecord) return this.item(found.id, now) === found ? this.#expand(found) : undefined
    if (found.keepUntil > now) return found
    this.#removeGroup(found)
    return undefined
  }

  /** The only member of this group, if the group has no record. */
  singleItem(id: string, now: At): ItemRecord | undefined {
    const found = this.#groupOrSingle(id)
    return found instanceof ItemRecord && this.item(found.id, now) === found ? found : undefined
  }

  hasGroup(id: string, now: At): boolean {
    return this.#groupOrSingle(id) !== undefined && this.group(id, now) !== undefined
  }

  /** The item is the only member of a new group. */
  setSingle(record: ItemRecord): void {
    record.single = 'open'
    const { groupId } = record.envelope
    if (groupId !== record.id) this.#groups.set(groupId, record)
  }

  /** What stands for a group: its record, or its only member. */
  #groupOrSingle(id: string): GroupRecord | ItemRecord | undefined {
    const found = this.#groups.get(id)
    if (found !== undefined) return found
    const root = this.#items.get(id)
    return root !== undefined && root.single !== 'no' && root.envelope.groupId === id ? root : undefined
  }

  /** The group, created if it does not exist. */
  ensureGroup(id: string, now: At): GroupRecord {
    const found = this.group(id, now)
    if (found !== undefined) return found
    const group = new GroupRecord(id)
    this.#groups.set(id, group)
    this.weigh(group)
    return group
  }

  keepGroup(group: GroupRecord, keepUntil: At): void {
    this.#endedGroups.remove(group, group.keepSlot)
    group.keepUntil = keepUntil
    if (keepUntil !== Number.POSITIVE_INFINITY) {
      this.#endedGroups.add(group)
      this.#enterEnded(group)
    } else {
      this.#leaveEnded(group)
      group.awaitedUntil = 0
    }
  }

  /** How many ended items were removed since this was last asked. */
  takeRemoved(): number {
    const removed = this.#removed
    this.#removed = 0
    return removed
  }

  /** Removes what has been kept long enough, in at most this many steps. */
  sweep(now: At, steps: number): void {
    for (let step = 0; step < steps; step += 1) {
      const record = this.#endedItems.peek()
      const group = this.#endedGroups.peek()
      const isItemDue = record !== undefined && record.keepUntil <= now
      const isGroupDue = group !== undefined && group.keepUntil <= now
      if (!isItemDue && !isGroupDue) return
      if (isItemDue) this.#expire(record)
      if (isGroupDue) this.#removeGroup(group)
    }
  }

  /** The message carries this item from now on. */
  link(record: ItemRecord, message: Message, envelope: Envelope): void {
    this.#detach(record)
    record.message = message
    record.envelope = envelope
    record.hasInput = true
    message.fence = Math.max(message.fence, record.fence)
    message.owner = record
    this.unkeep(record)
    this.weigh(record)
    this.stateChanged(record)
  }

  /** It has been kept long enough. Its dead letter, and the group that it was the only member of, go with it. */
  #expire(record: ItemRecord): void {
    const letter = record.extras?.deadEntry
    if (letter !== undefined) record.queue.dead.remove(letter)
    if (record.single === 'closed') {
      record.single = 'no'
      this.#groups.delete(record.envelope.groupId)
    }
    this.remove(record)
    this.#removed += 1
  }

  /** It has to make room before it expires. */
  #evict(record: ItemRecord): void {
    const letter = record.extras?.deadEntry
    if (letter !== undefined) record.queue.dead.evict(letter)
    this.#expire(record)
  }

  /** While its message is in a queue it stays: without it the message would be taken for a new item. */
  #enterEnded(one: ItemRecord | GroupRecord): void {
    if (one.endSlot !== NO_SLOT || (one instanceof ItemRecord && one.message !== undefined)) return
    this.#ended.enter(one)
    this.context.bytes.ended += one.weight
  }

  #leaveEnded(one: ItemRecord | GroupRecord): void {
    if (one.endSlot === NO_SLOT) return
    this.#ended.leave(one)
    this.context.bytes.ended -= one.weight
  }

  #forget(one: ItemRecord | GroupRecord): void {
    this.#leaveEnded(one)
    this.context.bytes.stored -= one.weight
    one.weight = 0
  }

  /** Makes a record of a group that had none, because its root was its only member. */
  #expand(record: ItemRecord): GroupRecord {
    const { envelope, single, singleValue, keepUntil } = record
    const group = new GroupRecord(envelope.groupId)
    group.open = single === 'open' ? 1 : 0
    group.value = singleValue
    group.version = singleValue === undefined ? 0 : 1
    group.keepMs = KEEP_COMPLETED_MS
    this.#groups.set(group.id, group)
    record.single = 'no'
    record.singleValue = undefined
    record.group = group
    this.weigh(record)
    this.weigh(group)
    if (single === 'closed') {
      group.isClosed = true
      this.keepGroup(group, keepUntil)
    } else if (envelope.waiter !== undefined) group.watch(envelope.waiter)
    return group
  }

  #removeGroup(group: GroupRecord): void {
    group.isGone = true
    this.#groups.delete(group.id)
    this.#endedGroups.remove(group, group.keepSlot)
    this.#forget(group)
  }

  #detach(record: ItemRecord): void {
    if (record.message?.owner === record) record.message.owner = undefined
    record.message = undefined
  }
}

function indexesOf(record: ItemRecord): string[] {
  const names = (record.envelope.tags ?? []).map(tagIndex)
  const failure = record.extras?.class
  if (failure !== undefined) names.push(classIndex(failure))
  const { fingerprint } = record
  if (fingerprint !== undefined) names.push(fingerprintIndex(fingerprint))
  return [...new Set(names)]
}

interface Kept {
  keepUntil: At
  keepSlot: number
}

function expiresBefore(a: Kept, b: Kept): boolean {
  return a.keepUntil < b.keepUntil
}

function kept(one: Kept, slot: number): void {
  one.keepSlot = slot
}
