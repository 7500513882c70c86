import type { GroupValue } from '../settlement.js'

/**
 * The texts of `group:<gid>:result` and `group:<gid>:final`.
 *
 * A value that was simply written is its own text, as in `@ayepi/work`. One that `append` folded also names the items it was
 * folded from, in the same record, so that an item which crashed after its fold does not fold again. A final value stands
 * in a key of its own that only the first can claim: readers look there first, so that nobody has to look before writing.
 */
const FOLD = '{"$millrace":"fold",'
const FINAL = '{"$millrace":"final",'

export interface Folded {
  readonly value: string | undefined
  /** Who has been folded into it: `<id>:<run>`. */
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
  if (text === undefined || !text.startsWith(FOLD)) return { value: text, applied: [] }
  try {
    const { value, applied } = JSON.parse(text) as Partial<Folded>
    return { value, applied: Array.isArray(applied) ? applied : [] }
  } catch {
    return { value: text, applied: [] }
  }
}

export function writeFinal(value: string, token: string): string {
  return `${FINAL}${JSON.stringify({ value, token }).slice(1)}`
}

/** The locked value. Undefined where the key is only a flag: the value then stands where values stand. */
export function readFinal(text: string): string | undefined {
  if (!text.startsWith(FINAL)) return undefined
  try {
    const { value } = JSON.parse(text) as { readonly value?: unknown }
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

export function groupValueOf(valueText: string | undefined, finalText: string | undefined): GroupValue {
  const locked = finalText === undefined ? undefined : readFinal(finalText)
  const value = locked ?? readValue(valueText).value
  return {
    ...(value === undefined ? {} : { value }),
    final: finalText !== undefined,
    version: versionOf(valueText),
  }
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
