import type { At } from '../../core/time/time.js'
import { durationText, instantText } from '../../ops/duration-text.js'

/** `3 m ago`, or `in 3 m` for a future instant. */
export function agoText(at: At | undefined, now: At): string {
  if (at === undefined) return ''
  if (at === Infinity) return 'never'
  return at > now ? `in ${durationText(at - now)}` : `${durationText(now - at)} ago`
}

/** Both: `2026-01-01 00:03:05Z (3 m ago)`. */
export function instantAndAgo(at: At | undefined, now: At): string | undefined {
  if (at === undefined) return undefined
  return at === Infinity ? 'never' : `${instantText(Math.round(at))} (${agoText(at, now)})`
}

/** An instant stored as text, in the usual format. Other text is unchanged. */
export function isoText(iso: string | undefined): string {
  if (iso === undefined) return ''
  const at = Date.parse(iso)
  return Number.isNaN(at) ? iso : instantText(at)
}
