import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readTruth } from './truth-log.mjs'

/** Accepted: written after `accepted()`, or after the user's transaction was committed. */
export interface Accepted {
  readonly id: string
  /** When the process knew of it, by its wall clock. */
  readonly at?: number
  readonly kind: 'leaf' | 'poison' | 'fan' | 'mint' | 'coin' | 'gate' | 'crasher'
  readonly result?: number
  readonly n?: number
  readonly parts?: number
  /** What a gate waits for. */
  readonly on?: readonly string[]
}

/** A line that a handler wrote before or after its run, in machine time. */
export interface Ran {
  readonly is: 'start' | 'end'
  readonly id: string
  readonly fence: number
  readonly attempt?: number
  readonly at: number
  /** The process that wrote it. */
  readonly by: string
}

/** What one run made up: it must take effect as a whole or not at all. */
export interface Minted {
  readonly id: string
  readonly fence: number
  readonly token: string
  readonly children: readonly string[]
}

export interface Waits {
  readonly id: string
  readonly what: 'result' | 'group'
}

export interface WaitOutcome extends Waits {
  readonly value?: unknown
  /** It rejected: with this. */
  readonly died?: string
}

/** Rows of items that a user had locked. */
export interface Locked {
  readonly ids: readonly string[]
  readonly from: number
  readonly to: number
}

export interface Vitals {
  readonly by: string
  readonly at: number
  readonly heapBytes: number
  /** How often `onError` was called since the process was born, by code. */
  readonly errors: Readonly<Record<string, number>>
}

/** The event loop stalled. */
export interface Stall {
  readonly by: string
  readonly from: number
  readonly to: number
  /** What the process computed meanwhile: next to nothing, if it was kept waiting. */
  readonly cpuMs: number
}

/** Everything that the processes wrote down, outside of Millrace. */
export interface Truth {
  readonly accepted: readonly Accepted[]
  readonly unsure: readonly string[]
  /** Enqueued in transactions that were rolled back. */
  readonly undone: readonly string[]
  /** Of users who enqueued something in them, whatever became of that. */
  readonly transactions: readonly { readonly from: number; readonly to: number }[]
  readonly ran: readonly Ran[]
  readonly minted: readonly Minted[]
  /** A run that took its process along. */
  readonly crashes: readonly string[]
  readonly waits: readonly Waits[]
  readonly outcomes: readonly WaitOutcome[]
  readonly locked: readonly Locked[]
  readonly vitals: readonly Vitals[]
  readonly stalls: readonly Stall[]
}

type Line = Record<string, unknown> & { readonly by: string }

export function truthIn(dir: string): Truth {
  const files = readdirSync(dir).filter((name) => name.endsWith('.truth'))
  const lines = files.flatMap((name) => {
    const by = name.slice(0, -'.truth'.length)
    return readTruth(join(dir, name)).map((line): Line => ({ ...line, by }))
  })
  return truthOf(lines)
}

export function truthOf(lines: readonly Readonly<Record<string, unknown>>[]): Truth {
  // Each kind is written in one place, whose shape the types above repeat.
  const of = <T>(...kinds: string[]) => lines.filter(({ is }) => kinds.includes(String(is))) as unknown as T[]
  return {
    accepted: of<Accepted>('accepted'),
    unsure: of<{ id: string }>('unsure').map(({ id }) => id),
    undone: of<{ id: string }>('undone').map(({ id }) => id),
    transactions: of<{ from: number; to: number }>('transaction'),
    ran: of<Ran>('start', 'end'),
    minted: of<Minted>('minted'),
    crashes: of<{ id: string }>('crash').map(({ id }) => id),
    waits: of<Waits>('waits'),
    outcomes: of<WaitOutcome>('outcome'),
    locked: of<Locked>('locked'),
    vitals: of<Vitals>('vitals'),
    stalls: of<Stall>('stall'),
  }
}
