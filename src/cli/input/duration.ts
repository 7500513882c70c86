import type { Ms } from '../../core/time/time.js'

const UNITS: Readonly<Record<string, Ms>> = Object.freeze({
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
})

/** `5m`, `1h30m`, `250ms`, `2.5s`; a bare number is milliseconds. Undefined: not a duration. */
export function parseDuration(text: string): Ms | undefined {
  if (/^\d{1,15}(\.\d{1,6})?$/.test(text)) return Number(text)
  if (!/^(\d{1,15}(\.\d{1,6})?(ms|[smhdw]))+$/.test(text)) return undefined
  let total = 0
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g)) total += Number(number) * UNITS[unit!]!
  return Number.isSafeInteger(Math.round(total)) ? total : undefined
}
