import type { At, Ms } from '../../core/time/time.js'
import { durationText, instantText } from '../../ops/duration-text.js'

/** For tables, in one unit: `3 m ago`, or `in 3 m` for a future instant. A second unit would take the room of other columns. */
export function agoText(at: At | undefined, now: At): string {
  if (at === undefined) return ''
  return fromNow(at, now, (ms) => durationText(ms).split(' ').slice(0, 2).join(' '))
}

function fromNow(at: At, now: At, text: (ms: Ms) => string): string {
  if (at === Infinity) return 'never'
  return at > now ? `in ${text(at - now)}` : `${text(now - at)} ago`
}

/** Both: `2026-01-01 00:03:05Z (3 m ago)`. */
export function instantAndAgo(at: At | undefined, now: At): string | undefined {
  if (at === undefined) return undefined
  return at === Infinity ? 'never' : `${instantText(Math.round(at))} (${fromNow(at, now, durationText)})`
}

/** An instant stored as text, in the usual format. Other text is unchanged. */
export function isoText(iso: string | undefined): string {
  if (iso === undefined) return ''
  const at = Date.parse(iso)
  return Number.isNaN(at) ? iso : instantText(at)
}
