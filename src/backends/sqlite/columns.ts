import type { Envelope } from '../../ports/item.js'
import { joinEnvelope, restOfEnvelope } from '../shared/envelope-columns.js'
import type { Statements } from './sql.js'

const COLUMNS = new Set(['id', 'type', 'groupId', 'input', 'queueAt', 'startAt', 'attempt', 'priority', 'waiter'])
/** Most items of a type have the same rest: its retry policy. */
const MOST_KNOWN = 1_000
const LONGEST_KNOWN = 400

const known = new Map<string, Readonly<Record<string, unknown>>>()

/** An envelope always has the columns but `waiter`; most have the version and a retry policy besides. */
const USUAL_FIELDS = COLUMNS.size - 1 + 2

const policies = new WeakMap<object, string>()

export const restOf = (envelope: Envelope): string | null => restOfEnvelope(envelope, COLUMNS)

/**
 * What envelopes of one transaction share is stored once. Nothing is remembered beyond the transaction, because a number that was given
 * in one which fails is given again.
 */
export class Profiles {
  readonly #sql: Statements
  readonly #numbers = new Map<string, number | null>()
  readonly #rests = new Map<number, string>()

  constructor(sql: Statements) {
    this.#sql = sql
  }

  /** The columns `profile` and `envelope_rest`. */
  columnsOf(envelope: Envelope): readonly [profile: number | null, rest: string | null] {
    const rest = usualRest(envelope)
    if (rest === undefined) return [null, restOf(envelope)]
    let no = this.#numbers.get(rest)
    if (no === undefined) {
      no = (this.#sql.profileOf.get(rest) ?? this.#sql.addProfile.get(rest))?.[0] ?? null
      this.#numbers.set(rest, no)
    }
    return no === null ? [null, rest] : [no, null]
  }

  /** The rest that these columns stand for. */
  restOf(profile: number | null, rest: string | null): string | null {
    if (profile === null) return rest
    let found = this.#rests.get(profile)
    if (found === undefined) {
      found = this.#sql.profile.get(profile)![0]
      this.#rests.set(profile, found)
    }
    return found
  }
}

/** The rest of an envelope that has nothing of its own in it: only the version and the retry policy, which its type's items share. */
function usualRest(envelope: Envelope): string | undefined {
  const { v, retry, waiter, queueAt, startAt, attempt, priority } = envelope
  if (v !== 1 || retry === undefined || !Object.isFrozen(retry)) return undefined
  if (queueAt === undefined || startAt === undefined || attempt === undefined || priority === undefined)
    return undefined
  if (Object.keys(envelope).length !== USUAL_FIELDS + (waiter === undefined ? 0 : 1)) return undefined
  let rest = policies.get(retry)
  if (rest === undefined) {
    rest = JSON.stringify({ v, retry })
    policies.set(retry, rest)
  }
  return rest
}

export function withRest<T extends object>(named: T, waiter: string | null, rest: string | null): T {
  if (waiter !== null) Object.assign(named, { waiter })
  if (rest === null) return named
  const fields = rest.length > LONGEST_KNOWN ? undefined : fieldsOf(rest)
  return fields === undefined ? joinEnvelope(named, rest) : Object.assign(named, fields)
}

/** Read once, and shared by all items that have them: nothing may change them. */
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
