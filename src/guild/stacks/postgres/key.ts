import type { Value } from '../query/filter.js'

/**
 * How much of a text an index holds. An entry of an index has to fit into a third of a page, whatever documents hold; what
 * is longer is compared in full beside it.
 */
export const KEY_CHARACTERS = 64

/** Whether the key decides by itself: a text of at least `KEY_CHARACTERS` shares it with all texts that begin the same. */
export function isExact(value: Value): boolean {
  // Cheap first: a character has at most two units.
  return typeof value !== 'string' || value.length < KEY_CHARACTERS || [...value].length < KEY_CHARACTERS
}

/** The key that `stacks_key` of the schema makes of the same value. Sorted as bytes, keys are in our order of values. */
export function keyOfValue(value: Value): string {
  switch (typeof value) {
    case 'string':
      return `s${value.length < KEY_CHARACTERS ? value : [...value].slice(0, KEY_CHARACTERS).join('')}`
    case 'boolean':
      return value ? 'u' : 't'
    case 'number':
      return `n${orderedHex(value)}`
  }
}

/** The bits of a number as text, so that texts sort as the numbers do. */
function orderedHex(value: number): string {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleBE(value)
  const bits = bytes.readBigUInt64BE()
  const ordered = value < 0 ? ~bits & 0xffff_ffff_ffff_ffffn : bits | 0x8000_0000_0000_0000n
  return ordered.toString(16).padStart(16, '0')
}
