import { OptionTypeError } from '../core/options.js'
import type { Random } from '../core/time/clock.js'

/**
 * Chance that repeats: the same seed gives the same numbers in `[0, 1)`, on every machine. For tests and simulations; it is
 * predictable by design, so never for secrets. A seed may be any finite number or a string.
 *
 * @example
 * ```ts
 * const random = seededRandom(42)
 * random() // the same number in every run
 * ```
 */
export function seededRandom(seed: number | string): Random {
  if (typeof seed === 'number' ? !Number.isFinite(seed) : typeof seed !== 'string')
    throw new OptionTypeError('seededRandom(seed)', 'a finite number or a string', seed)
  // The sfc32 generator (small, fast, passes the usual statistical suites), its state spread from the seed by a hash.
  const text = String(seed)
  let a = hash(text, 0x9e3779b9)
  let b = hash(text, 0x243f6a88)
  let c = hash(text, 0xb7e15162)
  let counter = 1
  const next = () => {
    const t = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return t >>> 0
  }
  // Neighbouring seeds start from similar states; a few rounds drive them apart.
  for (let i = 0; i < 15; i += 1) next()
  // 53 bits, as Math.random has: code that spreads a number over a wide range sees no steps.
  return () => ((next() >>> 5) * 67_108_864 + (next() >>> 6)) / 9_007_199_254_740_992
}

/** FNV-1a over the text's code units, with a final mix: one changed bit changes about half of the result. */
function hash(text: string, start: number): number {
  let h = start | 0
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}
