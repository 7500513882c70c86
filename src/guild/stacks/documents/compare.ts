import type { Json } from './value.js'

/**
 * The order of strings by code point, as databases compare UTF-8. JavaScript compares UTF-16 units, which puts the
 * characters beyond U+FFFF before U+E000.
 */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i += 1) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates stand for characters beyond all single units. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000
}

/**
 * The order that lists are sorted in: null and absent, then numbers, strings by code point, false, true, and then arrays and
 * objects, which are all alike.
 */
export function compareValues(a: Json | undefined, b: Json | undefined): number {
  const [x, y] = [typeRank(a), typeRank(b)]
  if (x !== y) return x - y
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0
  if (typeof a === 'string' && typeof b === 'string') return compareCodePoints(a, b)
  return 0
}

function typeRank(value: Json | undefined): number {
  switch (typeof value) {
    case 'number':
      return 1
    case 'string':
      return 2
    case 'boolean':
      return value ? 4 : 3
    default:
      return value === null || value === undefined ? 0 : 5
  }
}
