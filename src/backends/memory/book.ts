import type { At } from '../../core/time.js'
import type { Envelope } from '../../ports/item.js'
import { type Keys, keysOf } from '../../ports/plain/keys.js'
import { itemFromText, readUnread } from './adopt.js'
import { AuditLog } from './audit-log.js'
import { type Bytes, bytesOfGroup, bytesOfItem } from './bytes.js'
import { EndedList } from './ended-list.js'
import { Gates } from './gates.js'
import { FLAG, GroupRecord } from './group-record.js'
import { adoptGroup } from './group-text.js'
import { ItemRecord, stateOfRecord } from './item-record.js'
import { DAY } from './kept-for.js'
import type { KeySpace, TextCount } from './key-space.js'
import { Lane, NO_SLOT } from './lane.js'
import type { Message } from './message.js'
import type { MessageQueue } from './message-queue.js'
import { Pauses } from './pauses.js'
import type { Queues } from './queues.js'
import type { Signals } from './signals.js'
import { classTrait, fingerprintTrait, StateIndex, tagTrait } from './state-index.js'
import { Workers } from './workers.js'

/** An input longer than this is dropped when its item has succeeded: it is kept only to be run again. */
const SMALL_INPUT = 1_024

/** What the books of one backend share. */
export interface Shelf {
  readonly keys: KeySpace
  readonly queues: Queues
  readonly signals: Signals
  /** A step is over: writes it down, then tells of it. */
  readonly settled: () => void
  readonly bytes: Bytes
  /** How many ended items are kept at most. */
  readonly maxEnded: number
  /** How many bytes of ended items and groups. */
  readonly keepEndedBytes: number
  /** How many bytes are stored at most before an enqueue is refused. */
  readonly maxBytes: number
}

/**
 * All records under one prefix. A slot of the key space is either a text or a view of one of these; whoever reads a record
 * looks for texts only while there are any, which on a system that is native throughout is never.
 */
export class Book {
  readonly prefix: string
  readonly names: Keys
  readonly shelf: Shelf
  readonly index: StateIndex
  readonly gates: Gates
  readonly pauses: Pauses
  readonly workers = new Workers()
  readonly log = new AuditLog()
  /** Texts under keys that belong to records. */
  readonly count: TextCount = { texts: 0 }
  readonly #items = new Map<string, ItemRecord>()
  /** An item stands for its group while it is alone in it. */
  readonly #groups = new Map<string, GroupRecord | ItemRecord>()
  readonly #endedItems = new Lane<ItemRecord>(expiresBefore, kept)
  readonly #endedGroups = new Lane<GroupRecord>(expiresBefore, kept)
  /** Both, by when they ended. */
  readonly #ended = new EndedList<ItemRecord | GroupRecord>()
  #removed = 0

  constructor(prefix: string, shelf: Shelf) {
    this.prefix = prefix
    this.names = keysOf(prefix)
    this.shelf = shelf
    this.index = new StateIndex({
      stateChanged: (record) => this.stateChanged(record),
      gateTimedOut: (key) => this.gates.drop(key),
      acked: (record, now) => this.#acked(record, now),
    })
    this.gates = new Gates(this)
    this.pauses = new Pauses(this)
  }

  /** Items that have not ended. */
  get open(): number {
    return this.index.open
  }

  /** The record of an item, wherever it is known from. */
  item(id: string, now: At): ItemRecord | undefined {
    const record = this.#items.get(id)
    if (record !== undefined) {
      if (record.keepUntil > now || record.message !== undefined) return record
      this.#expire(record)
    }
    if (this.shelf.queues.unread.size > 0) {
      readUnread(this, now)
      const found = this.#items.get(id)
      if (found !== undefined) return found
    }
    return this.count.texts > 0 ? itemFromText(this, id, now) : undefined
  }

  /** The record as it stands in the book, with no look elsewhere. */
  known(id: string): ItemRecord | undefined {
    return this.#items.get(id)
  }

  /** Writes down a new item. Its message is told whose it is. */
  add(envelope: Envelope, message: Message | undefined, queue: MessageQueue): ItemRecord {
    const record = new ItemRecord(envelope, this.index.home(queue, envelope.type))
    record.message = message
    if (message !== undefined) message.owner = record
    if (envelope.tags !== undefined && envelope.tags.length > 0)
      record.withExtras().facets = this.index.facets(record, traitsOf(record))
    this.#items.set(record.id, record)
    this.index.enter(record, stateOfRecord(record))
    this.weigh(record)
    return record
  }

  /** Takes it out. A group that it stood for goes on without it. */
  remove(record: ItemRecord): void {
    if (record.lone !== 'no') this.#expand(record)
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
  traitsChanged(record: ItemRecord): void {
    this.index.relist(record, traitsOf(record))
  }

  /** It has ended: kept until then, and the oldest make room. */
  keep(record: ItemRecord, keepUntil: At): void {
    this.#endedItems.remove(record, record.keepSlot)
    record.keepUntil = keepUntil
    if (keepUntil !== Number.POSITIVE_INFINITY || record.hasEnded) this.#endedItems.add(record)
    if (record.hasEnded) this.#enterEnded(record)
    while (this.#endedItems.size > this.shelf.maxEnded) this.#evict(this.#endedItems.peek()!)
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
    const { bytes } = this.shelf
    const weight = one instanceof ItemRecord ? bytesOfItem(one) : bytesOfGroup(one)
    bytes.stored += weight - one.weight
    if (one.endSlot !== NO_SLOT) bytes.ended += weight - one.weight
    one.weight = weight
  }

  /** Somebody who waits for it was told that it has ended: it stays until he has read it. */
  await(one: ItemRecord | GroupRecord, now: At): void {
    this.#ended.await(one, now)
  }

  /** Somebody has read it. */
  seen(one: ItemRecord | GroupRecord): void {
    this.#ended.seen(one)
  }

  /** Of what has ended the oldest leaves while all of it weighs too much. */
  trim(now: At): void {
    const { bytes, keepEndedBytes } = this.shelf
    while (bytes.ended > keepEndedBytes) {
      const oldest = this.#ended.oldest(now)
      if (oldest === undefined) return
      if (oldest instanceof GroupRecord) this.#removeGroup(oldest)
      else this.#evict(oldest)
    }
  }

  /** Drops the input of an item that succeeded, if it is worth dropping. */
  shedInput(record: ItemRecord): void {
    if (record.envelope.input.length <= SMALL_INPUT) return
    record.envelope = { ...record.envelope, input: '' }
    record.hasInput = false
  }

  group(id: string, now: At): GroupRecord | undefined {
    const known = this.knownGroup(id, now)
    if (known !== undefined) return known
    return this.count.texts > 0 ? this.#groupFromText(id, now) : undefined
  }

  /** The group as it stands in the book, with no look elsewhere. */
  knownGroup(id: string, now: At): GroupRecord | undefined {
    const found = this.#groups.get(id)
    if (found === undefined) return undefined
    if (found instanceof ItemRecord) return this.item(found.id, now) === found ? this.#expand(found) : undefined
    if (found.keepUntil > now) return found
    this.#removeGroup(found)
    return undefined
  }

  /** The item that is this group all alone. */
  loneItem(id: string, now: At): ItemRecord | undefined {
    const found = this.#groups.get(id)
    return found instanceof ItemRecord && this.item(found.id, now) === found ? found : undefined
  }

  hasGroup(id: string, now: At): boolean {
    return (this.#groups.has(id) || this.count.texts > 0) && this.group(id, now) !== undefined
  }

  /** The item is alone in a group that nobody has heard of. */
  setAlone(record: ItemRecord): void {
    record.lone = 'open'
    this.#groups.set(record.envelope.groupId, record)
  }

  /** The group, made if it is not there. */
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
      if (isItemDue) {
        this.#expire(record)
      }
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

  /** Its message was taken out of the queue by a plain `ack`. */
  #acked(record: ItemRecord, now: At): void {
    record.message = undefined
    if (record.hasEnded) {
      if (record.keepUntil === Number.POSITIVE_INFINITY) this.keep(record, now + DAY)
      this.#enterEnded(record)
    } else if (record.isFound) this.remove(record)
    else this.keep(record, now + DAY)
    if (this.#items.get(record.id) === record) this.stateChanged(record)
  }

  #groupFromText(id: string, now: At): GroupRecord | undefined {
    const group = adoptGroup(id, this.names, this.shelf.keys, now)
    if (group === undefined) return undefined
    this.#groups.set(id, group)
    this.weigh(group)
    if (group.keepUntil !== Number.POSITIVE_INFINITY) this.keepGroup(group, group.keepUntil)
    return group
  }

  /** It has been kept long enough: the group that it stood for goes with it, and the dead letter that shows it. */
  #expire(record: ItemRecord): void {
    const letter = record.extras?.deadEntry
    if (letter !== undefined) record.queue.dead.remove(letter)
    if (record.lone === 'closed') {
      record.lone = 'no'
      this.#groups.delete(record.envelope.groupId)
    }
    this.remove(record)
    this.#removed += 1
  }

  /** It has to make room before its time. */
  #evict(record: ItemRecord): void {
    const letter = record.extras?.deadEntry
    if (letter !== undefined) record.queue.dead.evict(letter)
    this.#expire(record)
  }

  /** While its message stands in a queue it stays: without it the message would be taken for a new item. */
  #enterEnded(one: ItemRecord | GroupRecord): void {
    if (one.endSlot !== NO_SLOT || (one instanceof ItemRecord && one.message !== undefined)) return
    this.#ended.enter(one)
    this.shelf.bytes.ended += one.weight
  }

  #leaveEnded(one: ItemRecord | GroupRecord): void {
    if (one.endSlot === NO_SLOT) return
    this.#ended.leave(one)
    this.shelf.bytes.ended -= one.weight
  }

  /** It weighs nothing any more. */
  #forget(one: ItemRecord | GroupRecord): void {
    this.#leaveEnded(one)
    this.shelf.bytes.stored -= one.weight
    one.weight = 0
  }

  /** Makes a record of the group that an item stood for. */
  #expand(record: ItemRecord): GroupRecord {
    const { envelope, lone, loneValue, keepUntil } = record
    const group = new GroupRecord(envelope.groupId)
    group.open = lone === 'open' ? 1 : 0
    group.isCounted = true
    group.value = loneValue
    group.version = loneValue === undefined ? 0 : 1
    group.keepMs = DAY
    this.#groups.set(group.id, group)
    record.lone = 'no'
    record.loneValue = undefined
    record.group = group
    this.weigh(record)
    this.weigh(group)
    if (lone === 'closed') {
      group.done = FLAG
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

function traitsOf(record: ItemRecord): string[] {
  const traits = (record.envelope.tags ?? []).map(tagTrait)
  const failure = record.extras?.class
  if (failure !== undefined) traits.push(classTrait(failure))
  const { fingerprint } = record
  if (fingerprint !== undefined) traits.push(fingerprintTrait(fingerprint))
  return [...new Set(traits)]
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
