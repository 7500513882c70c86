import type { At } from '../../../core/time/time.js'
import { gateVerdict } from '../../../ports/gate.js'
import type { EffectOf } from '../../../ports/settlement.js'
import type { ItemTable } from '../items/item-table.js'

/** A gate holds its item until two counts decide: how many more members must end, and how many have not ended. */
export interface GateRecord {
  readonly key: string
  readonly heldId: string
  readonly of: 'done' | 'success'
  /** How many more members must end (or complete). */
  need: number
  /** The members that have not ended. */
  readonly waiting: Set<string>
}

/** What a gate decided about the item that it held. */
export interface GateDecision {
  readonly met: boolean
}

/** Counts a member's end once: a repetition, and an item that is no member, change nothing. */
export function countMember(gate: GateRecord, member: string, completed: boolean): boolean {
  if (!gate.waiting.delete(member)) return false
  if (completed || gate.of === 'done') gate.need -= 1
  return true
}

/** All gates. An item that ends is looked up here, so a gate over items that know nothing of it counts them too. */
export class GateTable {
  readonly #table: ItemTable
  readonly #byKey = new Map<string, GateRecord>()
  /** Member to the gates that wait for it. */
  readonly #byMember = new Map<string, Set<GateRecord>>()

  constructor(table: ItemTable) {
    this.#table = table
  }

  all(): IterableIterator<GateRecord> {
    return this.#byKey.values()
  }

  find(key: string): GateRecord | undefined {
    return this.#byKey.get(key)
  }

  /** Adds a gate that is in the file already. */
  restore(gate: GateRecord): void {
    this.#byKey.set(gate.key, gate)
    for (const member of gate.waiting) {
      const gates = this.#byMember.get(member)
      if (gates === undefined) this.#byMember.set(member, new Set([gate]))
      else gates.add(gate)
    }
  }

  open({ key, heldId, members, need, of }: EffectOf<'openGate'>, now: At): void {
    if (this.#byKey.has(key)) return
    const gate: GateRecord = { key, heldId, of, need, waiting: new Set(members) }
    for (const member of members) {
      const record = this.#table.item(member, now)
      if (record?.hasEnded === true) countMember(gate, member, record.status === 'completed')
    }
    this.restore(gate)
    this.#table.context.queues.file?.gateOpened(gate)
    this.#decide(gate, now)
  }

  notify(key: string, member: string, completed: boolean, now: At): void {
    const gate = this.#byKey.get(key)
    if (gate === undefined || !countMember(gate, member, completed)) return
    this.#forget(gate, member)
    this.#table.context.queues.file?.gateNotified(key, member, completed)
    this.#decide(gate, now)
  }

  /** An item ended: every gate that waits for it counts it. */
  ended(member: string, completed: boolean, now: At): void {
    if (this.#byMember.size === 0) return
    for (const gate of [...(this.#byMember.get(member) ?? [])]) this.notify(gate.key, member, completed, now)
  }

  /** What a gate decided before the item that it holds was there. The gate ends with it. */
  takeDecision(key: string): GateDecision | undefined {
    const gate = this.#byKey.get(key)
    const met = gate === undefined ? undefined : gateVerdict(gate.need, gate.waiting.size)
    if (met === undefined) return undefined
    this.drop(key)
    return { met }
  }

  /** The gate has decided, its time has run out, or its item is gone. */
  drop(key: string): void {
    const gate = this.#byKey.get(key)
    if (gate === undefined) return
    this.#byKey.delete(key)
    for (const member of gate.waiting) this.#forget(gate, member)
    this.#table.context.queues.file?.gateClosed(key)
  }

  #decide(gate: GateRecord, now: At): void {
    const met = gateVerdict(gate.need, gate.waiting.size)
    const record = met === undefined ? undefined : this.#table.item(gate.heldId, now)
    // A settlement may open the gate first and enqueue its item afterwards; that enqueue takes the decision.
    if (met === undefined || record === undefined) return
    const { message } = record
    this.drop(gate.key)
    if (message?.hold?.by !== 'gate' || message.hold.key !== gate.key || message.lease !== undefined) return
    message.gate = { met }
    record.queue.refile(message, now, now, undefined)
    this.#table.stateChanged(record)
    this.#table.context.notifier.ready(record.queue, now, now)
  }

  #forget(gate: GateRecord, member: string): void {
    const gates = this.#byMember.get(member)
    if (gates?.delete(gate) === true && gates.size === 0) this.#byMember.delete(member)
  }
}
