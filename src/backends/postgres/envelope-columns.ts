import type { Envelope } from '../../ports/item.js'

/** What stands in columns of its own; everything else of an envelope is kept as one JSON text. */
export const COLUMNS: ReadonlySet<string> = new Set([
  'id',
  'type',
  'groupId',
  'input',
  'queueAt',
  'startAt',
  'attempt',
  'priority',
])

/** What of the envelope has no column, as JSON. Unknown fields included, so that they survive. */
export function restOf(envelope: Envelope): string | null {
  let rest: Record<string, unknown> | undefined
  for (const name in envelope) {
    if (COLUMNS.has(name)) continue
    rest ??= {}
    rest[name] = envelope[name]
  }
  return rest === undefined ? null : JSON.stringify(rest)
}

export interface EnvelopeColumns {
  readonly id: string
  readonly type: string
  readonly groupId: string
  readonly queueAt: number
  readonly startAt: number
  readonly attempt: number
  readonly priority: number
}

/** The envelope of a row: its columns, and the rest. */
export function fromColumns<C extends EnvelopeColumns>(columns: C, rest: string | null): C {
  return rest === null ? columns : Object.assign(columns, JSON.parse(rest))
}
