import type { ClosedGroup, Effect, GroupValue } from '../settlement.js'
import { countOf } from './counters.js'
import { type Desk, keptFor } from './desk.js'
import { groupValueOf, readValue, versionOf, writeFinal, writeFold, writeValue } from './group-value.js'
import { type Entry, entry } from './plain-store.js'

export type Contribute = Extract<Effect, { do: 'contribute' }>

/** Undefined: no such group, or its records have expired. */
export async function readGroup(
  desk: Desk,
  groupId: string,
): Promise<(GroupValue & { readonly open: number }) | undefined> {
  const { keys, store } = desk
  const [open, done, value, final] = await store.getAll([
    keys.open(groupId),
    keys.done(groupId),
    keys.value(groupId),
    keys.final(groupId),
  ])
  const count = countOf(open)
  if (count === undefined && done === undefined) return undefined
  // A group without open items is closed also in the moment before its closing is claimed.
  return { ...groupValueOf(value, final), open: Math.max(0, count ?? 0) }
}

/** The writes of contributions that overwrite. A locked group takes none. */
export function overwrites(desk: Desk, contributions: readonly Contribute[], isLocked: (groupId: string) => boolean) {
  return contributions
    .filter(({ expect, groupId }) => expect === undefined && !isLocked(groupId))
    .map(({ groupId, value }): Entry => entry(desk.keys.value(groupId), writeValue(value), keptFor(desk)))
}

/** Locks the group with this value, unless another one did so first. */
export async function lockValue(desk: Desk, groupId: string, value: string, token: string): Promise<void> {
  const { keys, store } = desk
  const own = writeFinal(value, token)
  const first = await store.claim(keys.final(groupId), own, keptFor(desk))
  // Readers prefer the lock; the plain value follows it for tools that know only that key.
  if (first === own) await store.set(keys.value(groupId), writeValue(value), keptFor(desk))
}

const PRUNE_OVER = 64

/**
 * Writes a folded value if the group's value is still the one it was folded from, and in the same step notes whose fold it
 * was. An item that finds itself noted has folded already, in a run that died before it could say so.
 */
export async function foldValue(
  desk: Desk,
  { groupId, value, final, expect }: Contribute,
  who: { readonly id: string; readonly run: number; readonly token: string },
): Promise<{ readonly conflict?: GroupValue }> {
  const { keys, store, records } = desk
  const name = `${who.id}:${who.run}`
  const locked = await store.get(keys.final(groupId))
  if (locked !== undefined) return {}
  let conflict: GroupValue | undefined
  let folded = value
  await records.update(keys.value(groupId), keptFor(desk), async (current) => {
    conflict = undefined
    const { value: before, applied } = readValue(current)
    if (applied.includes(name)) {
      folded = before ?? value
      return undefined
    }
    if (versionOf(current) !== expect) {
      conflict = groupValueOf(current, undefined)
      return undefined
    }
    return writeFold({ value, applied: [...(await stillOpen(desk, applied)), name] })
  })
  if (conflict !== undefined) return { conflict }
  if (final) await lockValue(desk, groupId, folded, who.token)
  return {}
}

/** Names are needed until their items have settled: a long list is shortened to those that have not. */
async function stillOpen(desk: Desk, applied: readonly string[]): Promise<readonly string[]> {
  if (applied.length < PRUNE_OVER) return applied
  const { keys, store } = desk
  const settled = await store.getAll(
    applied.map((name) => {
      const cut = name.lastIndexOf(':')
      return keys.settled(name.slice(0, cut), Number(name.slice(cut + 1)))
    }),
  )
  return applied.filter((_, i) => settled[i] === undefined)
}

/** Closes the group if nothing of it is open. Only the one that claims the closing reports it. */
export async function closeIfEmpty(
  desk: Desk,
  groupId: string,
  open: number | undefined,
  token: string,
): Promise<readonly ClosedGroup[]> {
  if (open === undefined || open > 0) return []
  const { keys, store } = desk
  if ((await store.claim(keys.done(groupId), token, keptFor(desk))) !== token) return []
  const [value, final, wait] = await store.getAll([keys.value(groupId), keys.final(groupId), keys.wait(groupId)])
  const last = groupValueOf(value, final).value
  return [{ groupId, ...(last === undefined ? {} : { value: last }), ...(wait === undefined ? {} : { watched: true }) }]
}
