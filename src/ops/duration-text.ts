import type { Ms } from '../core/time/time.js'

const UNITS: readonly (readonly [string, Ms])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
]

/** A duration in at most two units: `3 m`, `2 h 5 m`, `40 ms`. */
export function durationText(ms: Ms): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  let left = ms
  const words: string[] = []
  for (const [name, size] of UNITS) {
    const count = Math.floor(left / size)
    if (count === 0 && words.length === 0) continue
    if (count > 0) words.push(`${count} ${name}`)
    left -= count * size
    if (words.length === 2) break
  }
  return words.join(' ')
}

/** A range of durations in one unit: `0.5–1 s`, `2 s`, `1.5–3 m`. */
export function spanText(minMs: Ms, maxMs: Ms): string {
  const [name, size] = UNITS.find(([, unit]) => maxMs >= unit) ?? ['ms', 1]
  const [min, max] = [shortNumber(minMs / size), shortNumber(maxMs / size)]
  return min === max ? `${max} ${name}` : `${min}–${max} ${name}`
}

/** At most two significant digits below 10. */
function shortNumber(value: number): string {
  return value >= 10 || value === 0 ? String(Math.round(value)) : String(Number(value.toPrecision(2)))
}

/** An instant as readable text, in UTC. */
export function instantText(at: number): string {
  if (at === Infinity) return 'never'
  const date = new Date(at)
  return Number.isNaN(date.getTime())
    ? String(at)
    : date
        .toISOString()
        .replace('T', ' ')
        .replace(/\.000Z$/, 'Z')
}
