import type { Ms } from '../../core/time.js'
import type { Attempt } from '../../ports/item.js'
import type { Settlement } from '../../ports/settlement.js'
import { wholeMs } from './durations.js'
import { restOf } from './envelope-columns.js'
import type { Home } from './names.js'
import { encodeRare } from './rare.js'
import { storable } from './refusal.js'
import { type EndingEffect, type Of, type SortedEffects, sortEffects } from './sorted-effects.js'

/** The arguments of `commit_batch`, in its order. Undefined where there is nothing of a kind: the function skips its part. */
export interface EncodedBatch {
  readonly ids: (string | null)[]
  readonly tokens: (string | null)[]
  readonly absent: number
  /** By settlement: the value of the group that closes if its item was alone in it. */
  readonly own: readonly (Folded | undefined)[]
  readonly locks: string[] | undefined
  readonly touched: string[] | undefined
  readonly roots: object[] | undefined
  readonly children: object[] | undefined
  readonly ends: object[] | undefined
  readonly moves: object[] | undefined
  readonly said: object[] | undefined
  readonly expects: boolean
  readonly gates: object[] | undefined
  readonly tells: object[] | undefined
  readonly looks: string[] | undefined
  readonly tags: object[] | undefined
  readonly ready: object[] | undefined
  readonly rare: object | undefined
}

interface Folded {
  readonly value?: string
  readonly final: boolean
  readonly version: number
}

/** Sorts the effects of a batch by kind: one JSON text each, which the server reads as rows. `s` counts from 1. */
export function encodeBatch(
  batch: readonly Settlement[],
  homeOf: (queue: string, type: string) => Home | undefined,
): EncodedBatch {
  const sorted = batch.map(sortEffects)
  const touches = countTouches(sorted)
  const roots: object[] = []
  const children: object[] = []
  const ends: object[] = []
  const moves: object[] = []
  const said: object[] = []
  const gates: object[] = []
  const tells: object[] = []
  const tags: object[] = []
  const locks = new Set<string>()
  const touched = new Set<string>()
  const looks = new Set<string>()
  const ready = new Map<string, Ms>()
  const own: (Folded | undefined)[] = batch.map(() => undefined)
  const ids: (string | null)[] = []
  const tokens: (string | null)[] = []
  let absent = 0
  let expects = false
  let n = 0
  const nudge = (queue: string, delayMs: Ms): void => {
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
    // Groups that live on their root, before and after: nobody else in this batch speaks of them.
    const alone = new Set<string>()
    for (const push of effects.pushes) {
      const { item, queue, delayMs, hold, heldBy } = push
      const { groupId } = item
      // What is said to the group needs a row to stand in.
      const isAlone =
        item.id === groupId &&
        touches.get(groupId) === 1 &&
        effects.moves.get(groupId) === 1 &&
        !effects.contributions.some((contribution) => contribution.groupId === groupId)
      if (isAlone) alone.add(groupId)
      else if (item.waiter !== undefined) {
        moves.push({ s, g: groupId, by: 0, keep: wholeMs(effects.keepMs), watch: item.waiter })
        touched.add(groupId)
      }
      if (hold?.by === 'gate') looks.add(hold.key)
      if (heldBy === undefined) nudge(queue, delayMs)
      const home = homeOf(queue, item.type)
      if (home === undefined) throw new Error(`the number of ${queue} and ${item.type} was not asked for`)
      const row: Record<string, unknown> = {
        s,
        n: n++,
        id: item.id,
        queue: home.queue,
        home: home.home,
        priority: item.priority,
        attempt: item.attempt,
        queue_at: item.queueAt,
        start_at: item.startAt,
        input: item.input,
        delay: delayMs === Infinity ? null : wholeMs(delayMs),
        counted: effects.moves.has(groupId),
        alone: isAlone,
      }
      // What is absent is not sent: most pushes have none of these.
      if (groupId !== item.id) row['group_id'] = groupId
      const rest = restOf(item)
      if (rest !== null) row['rest'] = rest
      if (item.waiter !== undefined) row['waiter'] = item.waiter
      if (item.deadline !== undefined) row['deadline'] = item.deadline
      if (hold !== undefined) {
        row['hold_by'] = hold.by
        row['hold_key'] = hold.key
      }
      if (heldBy !== undefined) {
        row['token'] = heldBy.token
        row['worker'] = heldBy.worker
        row['lease'] = wholeMs(heldBy.leaseMs)
      }
      for (const tag of item.tags ?? []) tags.push({ s, n: row['n'], id: item.id, tag })
      if (guard.by === 'absent' && item.id === guarded) roots.push(row)
      else children.push(row)
    }
    const { ending } = effects
    if (ending !== undefined) {
      const isEnd = ending.do === 'finish' || ending.do === 'park'
      const endsAlone = isEnd && isLastOfItself(ending.id, effects, touches)
      if (endsAlone) alone.add(ending.id)
      const value = endsAlone ? folded(ending.id, effects) : undefined
      own[i] = value
      ends.push({
        s,
        n: n++,
        ...endRow(ending),
        ...attemptsOf(ending.id, effects),
        ...printOf(ending),
        alone: endsAlone,
        ...value,
      })
      locks.add(ending.id)
      for (const more of effects.moreEndings) {
        ends.push({ s, n: n++, ...endRow(more), ...attemptsOf(more.id, effects), ...printOf(more), alone: false })
        locks.add(more.id)
      }
      if (guard.by === 'lease' && ending.do === 'retryAt') nudge(guard.lease.queue, ending.delayMs)
      if (guard.by === 'lease' && ending.do === 'release') nudge(guard.lease.queue, ending.delayMs ?? 0)
    }
    for (const { id, was } of effects.attempts) {
      if (isAboutEnding(id, effects)) continue
      ends.push({ s, n: n++, kind: 'record', id, ...attemptRow(was) })
      locks.add(id)
    }
    for (const [g, by] of effects.moves) {
      if (alone.has(g)) continue
      moves.push({ s, g, by, keep: wholeMs(effects.keepMs) })
      touched.add(g)
    }
    for (const { groupId: g, value, final, expect } of effects.contributions) {
      if (alone.has(g)) continue
      said.push({ s, n: n++, g, value, final, expect })
      touched.add(g)
      if (expect !== undefined) expects = true
    }
    for (const { key, holds, need, of, members } of effects.gates) {
      gates.push({ s, key, holds, need, of, members })
      for (const member of members) locks.add(member)
    }
    for (const { key, member, ok } of effects.tells) tells.push({ s, key, member, ok })
  }
  const rare = encodeRare(batch, sorted, () => n++, locks)
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
    said: some(said),
    expects,
    gates: some(gates),
    tells: some(tells),
    looks: list(looks),
    tags: some(tags),
    ready: ready.size === 0 ? undefined : [...ready].map(([queue, delayMs]) => [queue, delayMs]),
    rare,
  }
}

/** How many settlements of the batch speak of each group. */
function countTouches(sorted: readonly SortedEffects[]): Map<string, number> {
  const touches = new Map<string, number>()
  const count = (groupId: string) => touches.set(groupId, (touches.get(groupId) ?? 0) + 1)
  for (const { moves, contributions } of sorted) {
    for (const groupId of moves.keys()) count(groupId)
    for (const [i, { groupId }] of contributions.entries()) {
      const isFirst = contributions.findIndex((one) => one.groupId === groupId) === i
      if (isFirst && !moves.has(groupId)) count(groupId)
    }
  }
  return touches
}

/** The item ends, and with it a group that has its name and, as far as this batch can tell, no one else in it. */
function isLastOfItself(id: string, effects: SortedEffects, touches: ReadonlyMap<string, number>): boolean {
  if (effects.moves.get(id) !== -1 || touches.get(id) !== 1) return false
  return !effects.contributions.some(({ groupId, expect }) => groupId === id && expect !== undefined)
}

/** What the contributions to one group come to: the first final value, otherwise the last. */
function folded(groupId: string, effects: SortedEffects): Folded {
  let value: string | undefined
  let version = 0
  for (const contribution of effects.contributions) {
    if (contribution.groupId !== groupId) continue
    value = contribution.value
    version += 1
    if (contribution.final) return { value, final: true, version }
  }
  return { ...(value === undefined ? {} : { value }), final: false, version }
}

function endRow(ending: EndingEffect): object {
  switch (ending.do) {
    case 'finish':
      return {
        kind: 'finish',
        id: ending.id,
        ending: ending.ending,
        outcome: ending.result,
        ms: wholeMs(ending.keepMs),
      }
    case 'park':
      return {
        kind: 'park',
        id: ending.id,
        ending: ending.ending,
        class: ending.class,
        outcome: storable(ending.error),
        ms: wholeMs(ending.keepMs),
      }
    case 'retryAt':
      return { kind: 'retryAt', id: ending.id, attempt: ending.attempt, ms: wholeMs(ending.delayMs) }
    case 'release': {
      const { id, delayMs, hold } = ending
      const held = hold === undefined ? {} : { hold_by: hold.by, hold_key: hold.key }
      return { kind: 'release', id, ...(delayMs === undefined ? {} : { ms: wholeMs(delayMs) }), ...held }
    }
  }
}

/** What it died of where no run told; it stands above what its last run told. */
function printOf(ending: EndingEffect): { readonly fp?: string } {
  return ending.do === 'park' && ending.fingerprint !== undefined ? { fp: storable(ending.fingerprint) } : {}
}

const isAboutEnding = (id: string, { ending, moreEndings }: SortedEffects): boolean =>
  ending?.id === id || moreEndings.some((more) => more.id === id)

/** The attempts of the item that ends, folded into its row. */
function attemptsOf(id: string, { attempts }: SortedEffects): object | undefined {
  let row: ReturnType<typeof attemptRow> | undefined
  for (const effect of attempts as readonly Of<'recordAttempt'>[]) {
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
