import type { Envelope } from '../../ports/item.js'
import { joinEnvelope } from './envelope-columns.js'

/** Most items of a type have the same rest: its retry policy. */
const MOST_KNOWN = 1_000
const LONGEST_KNOWN = 400
/** What every envelope has, the version and a retry policy. */
const USUAL_FIELDS = 10

const policies = new WeakMap<object, string>()
const known = new Map<string, Readonly<Record<string, unknown>>>()

/**
 * The rest of an envelope that has nothing of its own in it: only the version and the retry policy, which its type's items share. That is
 * written once for all of them. A `waiter` is passed over: who keeps that in the rest asks for envelopes without one.
 */
export function usualRest(envelope: Envelope): string | undefined {
  const { v, retry, waiter, queueAt, startAt, attempt, priority } = envelope
  if (v !== 1 || retry === undefined || !Object.isFrozen(retry)) return undefined
  if (queueAt === undefined || startAt === undefined || attempt === undefined || priority === undefined)
    return undefined
  let fields = waiter === undefined ? 0 : -1
  for (const _ in envelope) fields += 1
  if (fields !== USUAL_FIELDS) return undefined
  let rest = policies.get(retry)
  if (rest === undefined) {
    rest = JSON.stringify({ v, retry })
    policies.set(retry, rest)
  }
  return rest
}

/** As `joinEnvelope`, but what many items share is read once, and frozen. */
export function joinSharedRest<T extends object>(named: T, rest: string | null): T {
  if (rest === null) return named
  const fields = rest.length > LONGEST_KNOWN ? undefined : fieldsOf(rest)
  return fields === undefined ? joinEnvelope(named, rest) : Object.assign(named, fields)
}

function fieldsOf(rest: string): Readonly<Record<string, unknown>> | undefined {
  let fields = known.get(rest)
  if (fields !== undefined) return fields
  fields = joinEnvelope({}, rest)
  // An assignment would set the prototype.
  if (Object.hasOwn(fields, '__proto__')) return undefined
  for (const value of Object.values(fields)) freezeAll(value)
  if (known.size >= MOST_KNOWN) known.clear()
  known.set(rest, fields)
  return fields
}

function freezeAll(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const inner of Object.values(value)) freezeAll(inner)
  Object.freeze(value)
}
