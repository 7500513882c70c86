import type { Envelope } from '../../ports/item.js'
import { restOfEnvelope } from '../shared/envelope-columns.js'
import { joinSharedRest, usualRest } from '../shared/usual-rest.js'
import type { Statements } from './sql.js'

const COLUMNS = new Set(['id', 'type', 'groupId', 'input', 'queueAt', 'startAt', 'attempt', 'priority', 'waiter'])

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

export function withRest<T extends object>(named: T, waiter: string | null, rest: string | null): T {
  if (waiter !== null) Object.assign(named, { waiter })
  return joinSharedRest(named, rest)
}
