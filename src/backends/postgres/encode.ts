import type { Ms } from '../../core/time/time.js'
import type { Attempt } from '../../ports/item.js'
import type { EffectOf, Settlement } from '../../ports/settlement.js'
import { type SortedEffects, sortEffects } from '../shared/sort-effects.js'
import { encodeActions } from './encode-actions.js'
import type { QueueType } from './names.js'
import { restOf, storable, wholeMs } from './storable.js'

/** What becomes of an item, except what only people do. */
type Outcome = EffectOf<'complete' | 'deadLetter' | 'retry' | 'release'>

/** The arguments of `commit_batch`, in its order. Undefined where there is nothing of a kind: the function skips its part. */
export interface EncodedBatch {
  readonly ids: (string | null)[]
  readonly tokens: (string | null)[]
  readonly absent: number
  /** By settlement: the value of the group that closes if its item was the only one in it. */
  readonly own: readonly (Folded | undefined)[]
  readonly locks: string[] | undefined
  readonly touched: string[] | undefined
  readonly roots: object[] | undefined
  readonly children: object[] | undefined
  readonly ends: object[] | undefined
  readonly moves: object[] | undefined
  readonly values: object[] | undefined
  readonly expects: boolean
  readonly gates: object[] | undefined
  readonly gateNotices: object[] | undefined
  readonly holdingGates: string[] | undefined
  readonly tags: object[] | undefined
  readonly ready: object[] | undefined
  readonly actions: object | undefined
}

interface Folded {
  readonly value?: string
  readonly final: boolean
  readonly version: number
}

/** The effects of a batch by kind: one JSON text each, which the server reads as rows. `s` counts from 1. */
export function encodeBatch(
  batch: readonly Settlement[],
  numbersOf: (queue: string, type: string) => QueueType | undefined,
): EncodedBatch {
  const sorted = batch.map(({ effects }) => sortEffects(effects))
  const touches = countTouches(sorted)
  const roots: object[] = []
  const children: object[] = []
  const ends: object[] = []
  const moves: object[] = []
  const values: object[] = []
  const gates: object[] = []
  const gateNotices: object[] = []
  const tags: object[] = []
  const locks = new Set<string>()
  const touched = new Set<string>()
  const holdingGates = new Set<string>()
  const ready = new Map<string, Ms>()
  const own: (Folded | undefined)[] = batch.map(() => undefined)
  const ids: (string | null)[] = []
  const tokens: (string | null)[] = []
  let absent = 0
  let expects = false
  let n = 0
  const notifyReady = (queue: string, delayMs: Ms): void => {
    const known = ready.get(queue)
    if (delayMs !== Infinity && (known === undefined || delayMs < known)) ready.set(queue, wholeMs(delayMs))
  }
  for (const [i, effects] of sorted.entries()) {
    const s = i + 1
    const { guard } = batch[i]!
    const token = guard.by === 'lease' ? guard.lease.token : null
    const guarded = guard.by === 'lease' ? guard.lease.id : guard.by === 'absent' ? guard.id : null
    ids.push(guarded)
    tokens.push(token)
    if (guard.by === 'absent') absent += 1
    if (guard.by === 'lease') locks.add(guard.lease.id)
    if (guard.by === 'status') locks.add(guard.id)
    // Groups that consist of their root, before and after: no other settlement of this batch mentions them.
    const single = new Set<string>()
    for (const enqueue of effects.enqueues) {
      const { item, queue, delayMs, hold, leasedTo } = enqueue
      const { groupId } = item
      // A group value needs a row of the group.
      const isSingle =
        item.id === groupId &&
        touches.get(groupId) === 1 &&
        netChange(groupId, effects) === 1 &&
        !effects.groupValues.some((contribution) => contribution.groupId === groupId)
      if (isSingle) single.add(groupId)
      else if (item.waiter !== undefined) {
        moves.push({ s, g: groupId, by: 0, keep: wholeMs(effects.keepMs), watch: item.waiter })
        touched.add(groupId)
      }
      if (hold?.by === 'gate') holdingGates.add(hold.key)
      if (leasedTo === undefined) notifyReady(queue, delayMs)
      const numbers = numbersOf(queue, item.type)
      if (numbers === undefined) throw new Error(`the number of ${queue} and ${item.type} was not requested`)
      const row: Record<string, unknown> = {
        s,
        n: n++,
        id: item.id,
        queue: numbers.queue,
        queue_type: numbers.queueType,
        priority: item.priority,
        attempt: item.attempt,
        queue_at: item.queueAt,
        start_at: item.startAt,
        input: item.input,
        delay: delayMs === Infinity ? null : wholeMs(delayMs),
        counted: effects.groupChanges.has(groupId),
        single: isSingle,
      }
      // Absent fields are not sent: most items have none of these.
      if (groupId !== item.id) row['group_id'] = groupId
      const rest = restOf(item)
      if (rest !== null) row['envelope_rest'] = rest
      if (item.waiter !== undefined) row['waiter'] = item.waiter
      if (item.deadline !== undefined) row['deadline'] = item.deadline
      if (hold !== undefined) {
        row['hold_by'] = hold.by
        row['hold_key'] = hold.key
      }
      if (leasedTo !== undefined) {
        row['token'] = leasedTo.token
        row['worker'] = leasedTo.worker
        row['lease'] = wholeMs(leasedTo.leaseMs)
      }
      for (const tag of item.tags ?? []) tags.push({ s, n: row['n'], id: item.id, tag })
      if (guard.by === 'absent' && item.id === guarded) roots.push(row)
      else children.push(row)
    }
    const [ending, ...others] = outcomesOf(effects)
    if (ending !== undefined) {
      const isEnd = ending.do === 'complete' || ending.do === 'deadLetter'
      const endsSingle = isEnd && endsOwnGroup(ending.id, effects, touches)
      if (endsSingle) single.add(ending.id)
      const value = endsSingle ? folded(ending.id, effects) : undefined
      own[i] = value
      ends.push({
        s,
        n: n++,
        ...endRow(ending),
        ...attemptsOf(ending.id, effects),
        ...fingerprintOf(ending),
        single: endsSingle,
        ...value,
      })
      locks.add(ending.id)
      for (const more of others) {
        ends.push({
          s,
          n: n++,
          ...endRow(more),
          ...attemptsOf(more.id, effects),
          ...fingerprintOf(more),
          single: false,
        })
        locks.add(more.id)
      }
      if (guard.by === 'lease' && ending.do === 'retry') notifyReady(guard.lease.queue, ending.delayMs)
      if (guard.by === 'lease' && ending.do === 'release') notifyReady(guard.lease.queue, ending.delayMs ?? 0)
    }
    for (const { id, was } of effects.attempts) {
      if (hasOutcome(id, effects)) continue
      ends.push({ s, n: n++, kind: 'record', id, ...attemptRow(was) })
      locks.add(id)
    }
    for (const [g, { joined, left }] of effects.groupChanges) {
      if (single.has(g)) continue
      moves.push({ s, g, by: joined - left, keep: wholeMs(effects.keepMs) })
      touched.add(g)
    }
    for (const { groupId: g, value, final, ifVersion } of effects.groupValues) {
      if (single.has(g)) continue
      values.push({ s, n: n++, g, value, final, expect: ifVersion })
      touched.add(g)
      if (ifVersion !== undefined) expects = true
    }
    for (const { key, heldId, need, of, members } of effects.gates) {
      gates.push({ s, key, held_id: heldId, need, condition: of, members })
      for (const member of members) locks.add(member)
    }
    for (const { key, member, completed } of effects.gateNotices) gateNotices.push({ s, key, member, ok: completed })
  }
  const actions = encodeActions(batch, sorted, () => n++, locks)
  for (const groupId of touched) locks.add(groupId)
  const some = (rows: object[]) => (rows.length === 0 ? undefined : rows)
  const list = (set: Set<string>) => (set.size === 0 ? undefined : [...set])
  return {
    ids,
    tokens,
    absent,
    own,
    locks: list(locks),
    touched: list(touched),
    roots: some(roots),
    children: some(children),
    ends: some(ends),
    moves: some(moves),
    values: some(values),
    expects,
    gates: some(gates),
    gateNotices: some(gateNotices),
    holdingGates: list(holdingGates),
    tags: some(tags),
    ready: ready.size === 0 ? undefined : [...ready].map(([queue, delayMs]) => [queue, delayMs]),
    actions,
  }
}

/** What becomes of items here; `encodeActions` has what people do. */
const outcomesOf = ({ outcomes }: SortedEffects): Outcome[] =>
  outcomes.filter((outcome): outcome is Outcome => outcome.do !== 'redrive' && outcome.do !== 'delete')

/** What a settlement adds to the open count of a group; undefined: it does not mention the group. */
function netChange(groupId: string, { groupChanges }: SortedEffects): number | undefined {
  const change = groupChanges.get(groupId)
  return change === undefined ? undefined : change.joined - change.left
}

/** How many settlements of the batch mention each group. */
function countTouches(sorted: readonly SortedEffects[]): Map<string, number> {
  const touches = new Map<string, number>()
  const count = (groupId: string) => touches.set(groupId, (touches.get(groupId) ?? 0) + 1)
  for (const { groupChanges, groupValues } of sorted)
    for (const groupId of new Set([...groupChanges.keys(), ...groupValues.map((one) => one.groupId)])) count(groupId)
  return touches
}

/** The item ends, and with it a group of the same id that, as far as this batch shows, has no other item. */
function endsOwnGroup(id: string, effects: SortedEffects, touches: ReadonlyMap<string, number>): boolean {
  if (netChange(id, effects) !== -1 || touches.get(id) !== 1) return false
  return !effects.groupValues.some(({ groupId, ifVersion }) => groupId === id && ifVersion !== undefined)
}

/** The value that one group gets: the first final one, otherwise the last. */
function folded(groupId: string, effects: SortedEffects): Folded {
  let value: string | undefined
  let version = 0
  for (const contribution of effects.groupValues) {
    if (contribution.groupId !== groupId) continue
    value = contribution.value
    version += 1
    if (contribution.final) return { value, final: true, version }
  }
  return { ...(value === undefined ? {} : { value }), final: false, version }
}

function endRow(ending: Outcome): object {
  switch (ending.do) {
    case 'complete':
      return {
        kind: 'complete',
        id: ending.id,
        ending: ending.ending,
        outcome: ending.result,
        ms: wholeMs(ending.keepMs),
      }
    case 'deadLetter':
      return {
        kind: 'deadLetter',
        id: ending.id,
        ending: ending.ending,
        class: ending.class,
        outcome: storable(ending.error),
        ms: wholeMs(ending.keepMs),
      }
    case 'retry':
      return { kind: 'retry', id: ending.id, attempt: ending.attempt, ms: wholeMs(ending.delayMs) }
    case 'release': {
      const { id, delayMs, hold } = ending
      const held = hold === undefined ? {} : { hold_by: hold.by, hold_key: hold.key }
      return { kind: 'release', id, ...(delayMs === undefined ? {} : { ms: wholeMs(delayMs) }), ...held }
    }
  }
}

/** Why it died, where no run reported it; this replaces what its last run reported. */
function fingerprintOf(ending: Outcome): { readonly fp?: string } {
  return ending.do === 'deadLetter' && ending.fingerprint !== undefined ? { fp: storable(ending.fingerprint) } : {}
}

const hasOutcome = (id: string, effects: SortedEffects): boolean => outcomesOf(effects).some((one) => one.id === id)

/** The attempts of the item that ends, folded into its row. */
function attemptsOf(id: string, { attempts }: SortedEffects): object | undefined {
  let row: ReturnType<typeof attemptRow> | undefined
  for (const effect of attempts) {
    if (effect.id !== id) continue
    const next = attemptRow(effect.was)
    row = row === undefined ? next : { ...next, was: `${row.was},${next.was}` }
  }
  return row
}

function attemptRow(was: Attempt): { readonly was: string; readonly fp?: string; readonly started: number } {
  const { fingerprint: fp } = was
  return {
    was: JSON.stringify(was),
    started: Math.round(was.startedAt),
    ...(fp === undefined ? {} : { fp: storable(fp) }),
  }
}
