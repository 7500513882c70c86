import type { ClosedGroup, EffectOf, GroupValue } from '../../ports/settlement.js'
import type { PlainContext } from './context.js'
import { countOf } from './counters.js'
import { readObject } from './plain-ports.js'

/**
 * The texts of `group:<gid>:result` and `group:<gid>:final`.
 *
 * A value that was simply written is its own text, as in `@ayepi/work`. One that `append` folded also names the items it was
 * folded from, in the same record, so that an item which crashed after its fold does not fold again. A final value has a
 * separate key that only the first can claim: readers check it first, so writers need not check before writing.
 */
const FOLD = '{"$millrace":"fold",'
const FINAL = '{"$millrace":"final",'

interface Folded {
  readonly value: string | undefined
  /** The items that have been folded into it: `<id>:<run>`. */
  readonly applied: readonly string[]
}

export function writeValue(value: string): string {
  // The escape: a value that begins like a record of ours would be read as one.
  return value.startsWith(FOLD) ? writeFold({ value, applied: [] }) : value
}

export function writeFold({ value, applied }: Folded): string {
  return `${FOLD}${JSON.stringify({ value, applied }).slice(1)}`
}

export function readValue(text: string | undefined): Folded {
  const read = text?.startsWith(FOLD) ? readObject<Folded>(text) : undefined
  if (read === undefined) return { value: text, applied: [] }
  return { value: read.value, applied: Array.isArray(read.applied) ? read.applied : [] }
}

export function writeFinal(value: string, token: string): string {
  return `${FINAL}${JSON.stringify({ value, token }).slice(1)}`
}

/** The locked value. Undefined where the key is only a flag: the value is then where other values are. */
export function readFinal(text: string): string | undefined {
  const value = text.startsWith(FINAL) ? readObject<{ value: unknown }>(text)?.value : undefined
  return typeof value === 'string' ? value : undefined
}

export function groupValueOf(valueText: string | undefined, finalText: string | undefined): GroupValue {
  const locked = finalText === undefined ? undefined : readFinal(finalText)
  const value = locked ?? readValue(valueText).value
  return { ...(value === undefined ? {} : { value }), final: finalText !== undefined, version: versionOf(valueText) }
}

/**
 * The version of a value is a hash of its record; 0 where there is none. Versions are only ever compared, and a fold that
 * meets the very text it was made from is right whatever happened in between.
 */
export function versionOf(text: string | undefined): number {
  if (text === undefined) return 0
  let high = 0x811c9dc5
  let low = 0x9747b28c
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i)
    high = Math.imul(high ^ unit, 0x01000193)
    low = Math.imul(low ^ unit, 0x5bd1e995) ^ (low >>> 15)
  }
  return (high >>> 0) * 0x10_0000 + (low >>> 12) + 1
}

/** Undefined: no such group, or its records have expired. */
export async function readGroup(
  { keys, store }: PlainContext,
  groupId: string,
): Promise<(GroupValue & { readonly open: number }) | undefined> {
  const names = [keys.open(groupId), keys.done(groupId), keys.value(groupId), keys.final(groupId)]
  const [open, done, value, final] = await store.getAll(names)
  const count = countOf(open)
  if (count === undefined && done === undefined) return undefined
  // A group without open items is closed also in the moment before its closing is claimed.
  return { ...groupValueOf(value, final), open: Math.max(0, count ?? 0) }
}

/** Locks the group with this value, unless another one did so first. */
export async function lockValue(context: PlainContext, groupId: string, value: string, token: string): Promise<void> {
  const { keys, store } = context
  const own = writeFinal(value, token)
  const first = await store.claim(keys.final(groupId), own, context.keptFor())
  // Readers prefer the lock; the plain value follows it for tools that know only that key.
  if (first === own) await store.set(keys.value(groupId), writeValue(value), context.keptFor())
}

const PRUNE_OVER = 64

/**
 * Writes a folded value if the group's value is still the one it was folded from, and in the same step notes whose fold it
 * was. An item that finds itself noted has folded already, in a run that died before it could say so. Returns the group's
 * value on a conflict.
 */
export async function foldValue(
  context: PlainContext,
  { groupId, value, final, ifVersion }: EffectOf<'setGroupValue'>,
  { id, run, token }: { readonly id: string; readonly run: number; readonly token: string },
): Promise<GroupValue | undefined> {
  const { keys, store, records } = context
  const name = `${id}:${run}`
  if ((await store.get(keys.final(groupId))) !== undefined) return undefined
  let conflict: GroupValue | undefined
  let folded = value
  await records.update(keys.value(groupId), context.keptFor(), async (current) => {
    conflict = undefined
    const { value: before, applied } = readValue(current)
    if (applied.includes(name)) {
      folded = before ?? value
      return undefined
    }
    if (versionOf(current) !== ifVersion) {
      conflict = groupValueOf(current, undefined)
      return undefined
    }
    return writeFold({ value, applied: [...(await stillOpen(context, applied)), name] })
  })
  if (conflict === undefined && final) await lockValue(context, groupId, folded, token)
  return conflict
}

/** Names are needed until their items have settled: a long list is shortened to those that have not. */
async function stillOpen({ keys, store }: PlainContext, applied: readonly string[]): Promise<readonly string[]> {
  if (applied.length < PRUNE_OVER) return applied
  const settled = await store.getAll(
    applied.map((name) => {
      const cut = name.lastIndexOf(':')
      return keys.settled(name.slice(0, cut), Number(name.slice(cut + 1)))
    }),
  )
  return applied.filter((_, i) => settled[i] === undefined)
}

/** Closes the group if nothing of it is open. Only the settlement that claims the closing reports it. */
export async function closeIfEmpty(
  context: PlainContext,
  groupId: string,
  open: number | undefined,
  token: string,
): Promise<readonly ClosedGroup[]> {
  if (open === undefined || open > 0) return []
  const { keys, store } = context
  if ((await store.claim(keys.done(groupId), token, context.keptFor())) !== token) return []
  const [value, final, wait] = await store.getAll([keys.value(groupId), keys.final(groupId), keys.wait(groupId)])
  const last = groupValueOf(value, final).value
  return [{ groupId, ...(last === undefined ? {} : { value: last }), ...(wait === undefined ? {} : { watched: true }) }]
}
