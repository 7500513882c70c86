import { closestHint } from '../../core/text/did-you-mean.js'
import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import { parseDuration } from './duration.js'
import { parseInstant } from './instant.js'

interface AnyFlag {
  /** One line for the help. */
  readonly about: string
  /** Its one-letter form. */
  readonly short?: string
}

/** A flag and the kind of its value. `value` is its name in the help. */
export type Flag =
  | (AnyFlag & { readonly kind: 'switch' })
  | (AnyFlag & { readonly kind: 'text'; readonly value: string })
  | (AnyFlag & { readonly kind: 'number'; readonly value: string; readonly min: number; readonly isWhole?: boolean })
  | (AnyFlag & { readonly kind: 'duration'; readonly value: string; readonly min: number })
  | (AnyFlag & { readonly kind: 'instant'; readonly value: string })
  | (AnyFlag & { readonly kind: 'word'; readonly value: string; readonly words: readonly string[] })

export type Flags = Readonly<Record<string, Flag>>

type Read<F extends Flag> = F extends { readonly kind: 'text' }
  ? string
  : F extends { readonly kind: 'word'; readonly words: readonly (infer W)[] }
    ? W
    : number

/** A flag that takes a whole number of at least 1. */
export function countFlag(about: string, short?: string) {
  return {
    kind: 'number',
    value: '<n>',
    min: 1,
    isWhole: true,
    about,
    ...(short === undefined ? {} : { short }),
  } as const
}

/** What was given, by name. A switch that was not given is false. */
export type Values<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends { readonly kind: 'switch' } ? boolean : Read<F[K]> | undefined
}

/** The value of a flag, or the problem as the end of a sentence. */
export type ReadFlag = { readonly value: string | number } | { readonly problem: string }

/** Reads the text that was given for a flag. */
export function readFlag(flag: Exclude<Flag, { kind: 'switch' }>, text: string, now: At): ReadFlag {
  switch (flag.kind) {
    case 'text':
      return text === '' ? { problem: 'must not be empty' } : { value: text }
    case 'number': {
      const number = /^\d{1,15}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN
      const fits = number >= flag.min && (flag.isWhole !== true || Number.isInteger(number))
      const kind = flag.isWhole === true ? 'a whole number' : 'a number'
      return fits ? { value: number } : { problem: `must be ${kind} of at least ${flag.min}, not "${text}"` }
    }
    case 'duration': {
      const ms = parseDuration(text)
      if (ms === undefined) return { problem: `must be a duration such as 500ms, 5m or 1h30m, not "${text}"` }
      return ms >= flag.min ? { value: ms } : { problem: `must be at least ${flag.min}ms, not "${text}"` }
    }
    case 'instant': {
      const at = parseInstant(text, now)
      return at === undefined
        ? { problem: `must be a time such as 2026-01-31T14:05:00Z or 14:05, or 2h for two hours ago, not "${text}"` }
        : { value: at }
    }
    case 'word':
      return flag.words.includes(text)
        ? { value: text }
        : { problem: `must be one of ${flag.words.join(', ')}, not "${text}".${closestHint(text, flag.words)}` }
    default:
      return unreachable(flag)
  }
}
