import type { CommitResult, Settlement } from '../../../src/ports/settlement.js'
import { restOf } from '../columns.js'
import { type SortedEffects, sortEffects, tracedGuard } from '../sorted-effects.js'

/** The arguments of `commit_batch`, in its order. Undefined where there is nothing of a kind: the function skips its part. */
export interface EncodedBatch {
  readonly ids: string[]
  readonly tokens: (string | null)[]
  readonly absent: number
  /** By settlement: the value of the group that closes if its item was alone in it. */
  readonly own: readonly (Folded | undefined)[]
  readonly locks: string[] | undefined
  readonly touched: string[] | undefined
  readonly roots: string | undefined
  readonly children: string | undefined
  readonly ends: string | undefined
  readonly moves: string | undefined
  readonly said: string | undefined
  readonly expects: boolean
  readonly gates: string | undefined
  readonly strangers: string[] | undefined
  readonly tells: string | undefined
  readonly looks: string[] | undefined
}

/** Sorts the effects of a batch by kind: one JSON text each, which the server reads as rows. `s` counts from 1. */
export function encodeBatch(batch: readonly Settlement[]): EncodedBatch {
  const sorted = batch.map(sortEffects)
  const guards = batch.map(tracedGuard)
  const touches = countTouches(sorted)
  const [roots, children, ends, moves, said, gates, tells]: object[][] = [[], [], [], [], [], [], []]
  const locks = new Set<string>()
  const touched = new Set<string>()
  const looks = new Set<string>()
  const strangers = new Set<string>()
  const own: (Folded | undefined)[] = batch.map(() => undefined)
  let expects = false
  let n = 0
  for (const [i, effects] of sorted.entries()) {
    const s = i + 1
    const { id: guarded, token } = guards[i]!
    if (token !== undefined) locks.add(guarded)
    // Groups that live on their root, before and after: nobody else in this batch speaks of them.
    const alone = new Set<string>()
    for (const push of effects.pushes) {
      const { item, queue, delayMs, hold } = push
      const { groupId } = item
      const isAlone = item.id === groupId && touches.get(groupId) === 1 && effects.moves.get(groupId) === 1
      if (isAlone) alone.add(groupId)
      if (hold?.by === 'gate') looks.add(hold.key)
      const row = {
        s,
        n: n++,
        id: item.id,
        queue,
        type: item.type,
        group_id: groupId,
        priority: item.priority,
        attempt: item.attempt,
        queue_at: item.queueAt,
        start_at: item.startAt,
        input: item.input,
        rest: restOf(item),
        delay: delayMs === Infinity ? null : delayMs,
        hold_by: hold?.by,
        hold_key: hold?.key,
        gated: (item.gates?.length ?? 0) > 0,
        counted: effects.moves.has(groupId),
        alone: isAlone,
      }
      if (token === undefined && item.id === guarded) roots!.push(row)
      else children!.push(row)
    }
    const { ending } = effects
    if (ending !== undefined) {
      const endsAlone = ending.do !== 'retryAt' && isLastOfItself(ending.id, effects, touches)
      if (endsAlone) alone.add(ending.id)
      const value = endsAlone ? folded(ending.id, effects) : undefined
      own[i] = value
      ends!.push({ s, ...endRow(ending), alone: endsAlone, ...value })
      locks.add(ending.id)
    }
    for (const [g, by] of effects.moves) {
      if (alone.has(g)) continue
      moves!.push({ s, g, by, keep: effects.keepMs })
      touched.add(g)
    }
    for (const { groupId: g, value, final, expect } of effects.contributions) {
      if (alone.has(g)) continue
      said!.push({ s, n: n++, g, value, final, expect })
      touched.add(g)
      if (expect !== undefined) expects = true
    }
    for (const { key, holds, need, of, members } of effects.gates) {
      gates!.push({ s, key, holds, need, of, members })
      for (const member of members) {
        locks.add(member)
        strangers.add(member)
      }
    }
    for (const { key, member, ok } of effects.tells) tells!.push({ s, key, member, ok })
  }
  for (const groupId of touched) locks.add(groupId)
  for (const { pushes } of sorted) for (const { item } of pushes) strangers.delete(item.id)
  const json = (rows: object[] | undefined) => (rows!.length === 0 ? undefined : JSON.stringify(rows))
  const list = (set: Set<string>) => (set.size === 0 ? undefined : [...set])
  return {
    ids: guards.map(({ id }) => id),
    tokens: guards.map(({ token }) => token ?? null),
    absent: guards.filter(({ token }) => token === undefined).length,
    own,
    locks: list(locks),
    touched: list(touched),
    roots: json(roots),
    children: json(children),
    ends: json(ends),
    moves: json(moves),
    said: json(said),
    expects,
    gates: json(gates),
    strangers: list(strangers),
    tells: json(tells),
    looks: list(looks),
  }
}

/** How many settlements of the batch speak of each group. */
function countTouches(sorted: readonly SortedEffects[]): Map<string, number> {
  const touches = new Map<string, number>()
  for (const { moves, contributions } of sorted)
    for (const groupId of new Set([...moves.keys(), ...contributions.map((c) => c.groupId)]))
      touches.set(groupId, (touches.get(groupId) ?? 0) + 1)
  return touches
}

/** The item ends, and with it a group that has its name and, as far as this batch can tell, no one else in it. */
function isLastOfItself(id: string, effects: SortedEffects, touches: ReadonlyMap<string, number>): boolean {
  const isFolded = effects.contributions.some(({ groupId, expect }) => groupId === id && expect !== undefined)
  return effects.moves.get(id) === -1 && touches.get(id) === 1 && !isFolded
}

interface Folded {
  readonly value?: string
  readonly final: boolean
  readonly version: number
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

function endRow(ending: NonNullable<SortedEffects['ending']>): object {
  switch (ending.do) {
    case 'finish':
      return { kind: 'finish', id: ending.id, ending: ending.ending, outcome: ending.result, ms: ending.keepMs }
    case 'park':
      return {
        kind: 'park',
        id: ending.id,
        ending: ending.ending,
        class: ending.class,
        outcome: storable(ending.error),
        ms: ending.keepMs,
      }
    case 'retryAt':
      return { kind: 'retryAt', id: ending.id, attempt: ending.attempt, ms: ending.delayMs }
  }
}

const UNSTORABLE = /\0|\p{Surrogate}/gu

/** PostgreSQL's text has no U+0000 and no half of a surrogate pair. An error is recorded all the same. */
function storable(error: string): string {
  return error.replaceAll(UNSTORABLE, '\ufffd')
}

/** Why this settlement cannot be stored; such a one must not fail its neighbours. */
export function refusal(settlement: Settlement): CommitResult | undefined {
  // One look at the whole as JSON, which writes such characters as escapes. An escape may also be part of a text that is
  // JSON itself; only then the texts are looked at one by one.
  const { guard, effects } = settlement
  const whole = JSON.stringify(guard.by === 'absent' ? [guard.id, effects] : effects)
  if (!/\\u(?:0000|d[89a-f])/.test(whole)) return undefined
  let isBad = guard.by === 'absent' && isUnstorable(guard.id)
  JSON.stringify(effects, (name, value) => {
    if (name !== 'error' && typeof value === 'string' && isUnstorable(value)) isBad = true
    return value
  })
  if (!isBad) return undefined
  const message =
    'A text holds U+0000 or half of a surrogate pair, which PostgreSQL cannot store. Encode it (base64, JSON).'
  return { kind: 'refused', code: 'BAD_TEXT', message }
}

const isUnstorable = (text: string) => text.search(UNSTORABLE) >= 0
