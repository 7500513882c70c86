import type { At } from '../../core/time/time.js'
import type { Attempt, Envelope, Lease } from '../../ports/item.js'
import type { CommitResult, EffectOf, Settlement } from '../../ports/settlement.js'
import type { Profiles } from './columns.js'
import { type CommitContext, isPlain, present } from './item-effects.js'
import { closeLease, listOf } from './places.js'
import { ROWS, type Statements } from './sql.js'

interface Root {
  readonly index: number
  readonly item: Envelope
  readonly queue: string
}

/** What a run left that succeeded at the first attempt and changed nothing else: the effects of its settlement. */
interface PlainEnd {
  readonly was: Attempt
  readonly complete: EffectOf<'complete'>
  readonly value: EffectOf<'setGroupValue'> | undefined
}

interface HeldBy {
  readonly no: number
  readonly at: At
  /** Items that this batch has ended and whose rows in `held` go at the end of it. */
  readonly ended: number[]
}

const NONE: readonly never[] = []
const APPLIED: CommitResult = Object.freeze({ kind: 'applied', closed: Object.freeze([]) })

/**
 * The two settlements that nearly all items have, in as few statements as they need: the enqueue of a root that is due, and the
 * end of a root that no caller watches. What does not fit goes the other way, in its order: `flush` before that.
 */
export class HotPath {
  readonly #context: CommitContext
  readonly #results: CommitResult[]
  readonly #roots: Root[] = []
  readonly #leases = new Map<string, HeldBy | undefined>()
  #hasEnded = false

  constructor(context: CommitContext, results: CommitResult[]) {
    this.#context = context
    this.#results = results
  }

  /** False: it is not that simple. */
  take(settlement: Settlement, index: number): boolean {
    const { guard, effects } = settlement
    if (guard.by === 'absent') return this.#takeRoot(guard.id, effects, index)
    return guard.by === 'lease' && this.#end(guard.lease, effects, index)
  }

  /** Writes what was gathered. Returns the settlements whose ids exist: they are still to be answered. */
  flush(): readonly number[] {
    if (this.#hasEnded) this.#dropHeld()
    return this.#roots.length === 0 ? NONE : this.#insert(this.#roots.splice(0))
  }

  #takeRoot(id: string, effects: Settlement['effects'], index: number): boolean {
    if (effects.length !== 2) return false
    const first = effects[0]
    const join = first?.do === 'joinGroup' ? first : effects[1]
    const enqueue = first?.do === 'joinGroup' ? effects[1] : first
    if (join?.do !== 'joinGroup' || enqueue?.do !== 'enqueue') return false
    const { item, queue, delayMs, hold, leasedTo } = enqueue
    const isRoot = item.id === id && item.groupId === id && join.groupId === id && join.count === 1
    if (!isRoot || !(delayMs <= 0) || hold !== undefined || leasedTo !== undefined) return false
    if (item.gates !== undefined || item.tags !== undefined) return false
    const { groups, gates } = this.#context
    if ((groups.areAny && groups.exists(id)) || gates.awaits(id)) return false
    this.#roots.push({ index, item, queue })
    return true
  }

  #insert(roots: readonly Root[]): readonly number[] {
    const { sql, now, notifications, profiles } = this.#context
    const there: number[] = []
    // An id whose item is over is free, and the new item comes in its turn.
    if (sql.anyGone.get(now)?.[0] === 1) for (const { item } of roots) present(this.#context, item.id)
    const [first] = sql.nextSeq.get()!
    let seq = first
    for (let from = 0; from < roots.length; ) {
      const count = ROWS.find((size) => size <= roots.length - from)!
      const some = roots.slice(from, from + count)
      const isWritten = writeRoots(sql, profiles, some, seq, now)
      for (let i = 0; i < count; i += 1) {
        const { index, queue } = some[i]!
        if (isWritten === undefined || isWritten.has(seq + i)) {
          this.#results[index] = APPLIED
          notifications.wake(queue, now)
        } else there.push(index)
      }
      seq += count
      from += count
    }
    sql.addReadyBetween.run(first, seq)
    return there
  }

  #end(lease: Lease, effects: Settlement['effects'], index: number): boolean {
    const end = plainEnd(lease.id, effects)
    const dot = lease.token.lastIndexOf('.')
    if (end === undefined || dot < 0 || this.#context.groups.has(lease.id)) return false
    const by = this.#leaseOf(lease.token.slice(0, dot + 1))
    const seq = Number(lease.token.slice(dot + 1))
    if (by === undefined || !Number.isSafeInteger(seq)) return false
    const { sql, now } = this.#context
    const { was, complete, value } = end
    const changed = sql.completeRoot.run(
      complete.ending,
      complete.result ?? null,
      now,
      now + complete.keepMs,
      lease.token,
      value?.value ?? null,
      Number(value?.final ?? false),
      value === undefined ? 0 : 1,
      by.at,
      was.attempt,
      was.startedAt,
      was.endedAt,
      was.worker,
      seq,
      lease.id,
      by.no,
    )
    if (changed === 0) return false
    by.ended.push(seq)
    this.#hasEnded = true
    const closed = value === undefined ? { groupId: lease.id } : { groupId: lease.id, value: value.value }
    this.#results[index] = { kind: 'applied', closed: [closed] }
    return true
  }

  #leaseOf(token: string): HeldBy | undefined {
    if (this.#leases.has(token)) return this.#leases.get(token)
    const found = this.#context.sql.leaseOf.get(token)
    const by = found && { no: found[0], at: found[1], ended: [] }
    this.#leases.set(token, by)
    return by
  }

  #dropHeld(): void {
    const { sql } = this.#context
    for (const by of this.#leases.values()) {
      if (by === undefined || by.ended.length === 0) continue
      sql.dropAllHeld.run(listOf(by.ended))
      closeLease(sql, by.no, by.ended.length)
      by.ended.length = 0
    }
    this.#hasEnded = false
  }
}

/** Undefined: all of them were written. Otherwise the numbers of those that were: the ids of the others exist. */
function writeRoots(
  sql: Statements,
  profiles: Profiles,
  roots: readonly Root[],
  first: number,
  now: At,
): ReadonlySet<number> | undefined {
  const insert = roots.length === 64 ? sql.insertRoots64 : roots.length === 8 ? sql.insertRoots8 : sql.insertRoots1
  if (insert.run(...itemsOf(profiles, roots, first, now)) === roots.length) return undefined
  return new Set(sql.seqsBetween.all(first, first + roots.length).map(([seq]) => seq))
}

function itemsOf(profiles: Profiles, roots: readonly Root[], first: number, now: At): (string | number | null)[] {
  const values: (string | number | null)[] = []
  let seq = first
  for (const { item, queue } of roots) {
    const { id, type, priority, attempt, queueAt, startAt, input, waiter, deadline } = item
    const [profile, rest] = profiles.columnsOf(item)
    values.push(seq, id, queue, type, priority, attempt, queueAt, startAt, input, profile, rest, waiter ?? null, now)
    values.push(deadline ?? null)
    seq += 1
  }
  return values
}

function plainEnd(id: string, effects: Settlement['effects']): PlainEnd | undefined {
  let was: Attempt | undefined
  let complete: EffectOf<'complete'> | undefined
  let value: EffectOf<'setGroupValue'> | undefined
  let hasLeft = false
  for (const effect of effects) {
    if (effect.do === 'recordAttempt' && was === undefined && effect.id === id && isPlain(effect.was)) was = effect.was
    else if (effect.do === 'complete' && complete === undefined && effect.id === id) complete = effect
    else if (effect.do === 'leaveGroup' && !hasLeft && effect.groupId === id && effect.count === 1) hasLeft = true
    else if (effect.do === 'setGroupValue' && value === undefined && isFirstValue(effect, id)) value = effect
    else return undefined
  }
  return was === undefined || complete === undefined || !hasLeft ? undefined : { was, complete, value }
}

const isFirstValue = ({ groupId, ifVersion = 0 }: EffectOf<'setGroupValue'>, id: string): boolean =>
  groupId === id && ifVersion === 0
