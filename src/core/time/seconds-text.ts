import type { Ms } from './time.js'

/** A duration for a line of text: `40 ms`, `1.5 s`, `3600 s`. */
export function secondsText(ms: Ms): string {
  return ms < 1_000 ? `${Math.max(0, Math.round(ms))} ms` : `${Number((ms / 1_000).toFixed(1))} s`
}
