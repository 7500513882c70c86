import type { At } from '../../core/time.js'
import type { Effect } from '../../ports/settlement.js'
import type { Book } from './book.js'
import { type GateDecision, type GateRecord, newGate, tell, verdict } from './gate-record.js'
import { plainGatesOf, takePlainGate } from './plain-gate.js'
import { dropStateText } from './plain-texts.js'

/**
 * The gates of a book. Whoever ends is looked up here by the book itself, so that a gate over items that know nothing of it
 * is told too; being told twice counts once.
 */
export class Gates {
  readonly #book: Book
  readonly #byKey = new Map<string, GateRecord>()
  /** Member to the gates that wait for it. */
  readonly #byMember = new Map<string, Set<GateRecord>>()
  /** Of items that have not ended: a system on the plain path that runs one asks for it. */
  readonly #decisions = new Map<string, GateDecision>()

  constructor(book: Book) {
    this.#book = book
  }

  all(): IterableIterator<GateRecord> {
    return this.#byKey.values()
  }

  find(key: string): GateRecord | undefined {
    return this.#byKey.get(key)
  }

  /** A gate that is in the file already. */
  restore(gate: GateRecord): void {
    this.#byKey.set(gate.key, gate)
    for (const member of gate.waiting) {
      const gates = this.#byMember.get(member)
      if (gates === undefined) this.#byMember.set(member, new Set([gate]))
      else gates.add(gate)
    }
  }

  open(effect: Extract<Effect, { readonly do: 'openGate' }>, now: At): void {
    if (this.#byKey.has(effect.key)) return
    const gate = newGate(effect.key, effect.holds, effect.members, effect.need, effect.of)
    for (const member of effect.members) {
      const record = this.#book.item(member, now)
      if (record?.hasEnded === true) tell(gate, member, record.status === 'success')
    }
    this.restore(gate)
    this.#book.shelf.queues.file?.gateOpened(this.#book.prefix, gate)
    this.#decide(gate, now)
  }

  tell(key: string, member: string, ok: boolean, now: At): void {
    const gate = this.#byKey.get(key) ?? this.#fromPlain(key, now)
    if (gate === undefined || !tell(gate, member, ok)) return
    this.#forget(gate, member)
    this.#book.shelf.queues.file?.gateTold(this.#book.prefix, key, member, ok)
    this.#decide(gate, now)
  }

  /** An item ended: every gate that waits for it counts it. */
  ended(member: string, ok: boolean, now: At): void {
    if (this.#byMember.size > 0)
      for (const gate of [...(this.#byMember.get(member) ?? [])]) this.tell(gate.key, member, ok, now)
    if (this.#book.count.texts > 0)
      for (const key of plainGatesOf(this.#book, member, now)) this.tell(key, member, ok, now)
  }

  /** What a gate decided before the item that it holds was there; it is over then. */
  takeDecision(key: string): GateDecision | undefined {
    const gate = this.#byKey.get(key)
    const met = gate === undefined ? undefined : verdict(gate)
    return met === undefined ? undefined : this.#decided(key, met)
  }

  /** What a gate decided about an item that has not ended. */
  decision(key: string): GateDecision | undefined {
    return this.#decisions.get(key)
  }

  forgetDecision(key: string): void {
    this.#decisions.delete(key)
  }

  /** It is over: decided, timed out, or its item is gone. */
  drop(key: string): void {
    const gate = this.#byKey.get(key)
    if (gate === undefined) return
    this.#byKey.delete(key)
    for (const member of gate.waiting) this.#forget(gate, member)
    this.#book.shelf.queues.file?.gateClosed(this.#book.prefix, key)
  }

  /** A gate that a plain system opened becomes ours when a member of it ends here. */
  #fromPlain(key: string, now: At): GateRecord | undefined {
    if (this.#book.count.texts === 0) return undefined
    takePlainGate(this.#book, key, now)
    return this.#byKey.get(key)
  }

  #decide(gate: GateRecord, now: At): void {
    const met = verdict(gate)
    const record = met === undefined ? undefined : this.#book.item(gate.holds, now)
    // Not there yet: a settlement may open the gate first and push its item after; the push asks.
    if (met === undefined || record === undefined) return
    const { message } = record
    if (message?.hold?.by !== 'gate' || message.hold.key !== gate.key || message.lease !== undefined) {
      this.drop(gate.key)
      return
    }
    message.gate = this.#decided(gate.key, met)
    record.queue.refile(message, now, now, undefined)
    dropStateText(this.#book, record.id)
    this.#book.stateChanged(record)
    this.#book.shelf.signals.ready(record.queue, now, now)
  }

  #decided(key: string, met: boolean): GateDecision {
    const decision = { key, met }
    this.drop(key)
    this.#decisions.set(key, decision)
    return decision
  }

  #forget(gate: GateRecord, member: string): void {
    const gates = this.#byMember.get(member)
    if (gates?.delete(gate) === true && gates.size === 0) this.#byMember.delete(member)
  }
}
