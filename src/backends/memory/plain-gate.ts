import type { At } from '../../core/time.js'
import { readWatch } from '../../ports/plain/gates.js'
import { readState } from '../../ports/plain/state.js'
import type { Effect } from '../../ports/settlement.js'
import type { Book } from './book.js'
import type { ItemRecord } from './item-record.js'
import type { Message } from './message.js'

/**
 * An item that a system on the plain path pushed behind a gate comes back now and then to look whether the gate has decided.
 * If it has, the decision goes with it; if not, the gate becomes one of ours and the item waits for it in a hold.
 */
export function isHeldByPlainGate(book: Book, record: ItemRecord, message: Message, now: At): boolean {
  const { keys } = book.shelf
  const { names } = book
  const marks = readState(keys.text(names.state(record.id), now)?.value)?.marks
  if (marks?.gate === undefined || message.gate !== undefined) return false
  const freed = readObject(keys.text(names.gateFreed(marks.gate), now)?.value)
  if (typeof freed?.['met'] === 'boolean') {
    message.gate = { key: marks.gate, met: freed['met'] }
    return false
  }
  const gate = openGateOf(marks.gate, record.id, keys.text(names.gate(marks.gate), now)?.value)
  const until = marks.dueAt ?? Number.POSITIVE_INFINITY
  if (gate === undefined || until <= now) return false
  record.queue.refile(message, now, until, { by: 'gate', key: gate.key })
  book.gates.open(gate, now)
  book.stateChanged(record)
  return message.hold !== undefined
}

/** Makes a gate of a plain system one of ours, with the item that it holds. */
export function takePlainGate(book: Book, key: string, now: At): void {
  const text = book.shelf.keys.text(book.names.gate(key), now)
  const holds = readObject(text?.value)?.['holds']
  const record = typeof holds === 'string' ? book.item(holds, now) : undefined
  if (record?.message !== undefined && record.message.lease === undefined)
    isHeldByPlainGate(book, record, record.message, now)
}

/** The gates of plain systems that want to hear when this item ends. */
export function plainGatesOf(book: Book, member: string, now: At): readonly string[] {
  return readWatch(book.shelf.keys.text(book.names.watch(member), now)?.value)
}

function openGateOf(
  key: string,
  holds: string,
  text: string | undefined,
): Extract<Effect, { readonly do: 'openGate' }> | undefined {
  const { members, need, of } = readObject(text) ?? {}
  if (!Array.isArray(members) || typeof need !== 'number' || (of !== 'done' && of !== 'success')) return undefined
  return { do: 'openGate', key, holds, members: members.filter((one) => typeof one === 'string'), need, of }
}

function readObject(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
