import type { Envelope } from '../../src/ports/item.js'

/** An envelope as a row holds it: what is asked for by name in columns, everything else as one JSON text. */
export interface EnvelopeColumns {
  readonly id: string
  readonly type: string
  readonly groupId: string
  readonly input: string
  readonly queueAt: number
  readonly startAt: number
  readonly attempt: number
  readonly priority: number
  /** Unknown fields included, so that they survive. Null: there are none, which is the common case. */
  readonly rest: string | null
}

const COLUMNS: ReadonlySet<string> = new Set([
  'id',
  'type',
  'groupId',
  'input',
  'queueAt',
  'startAt',
  'attempt',
  'priority',
])

/** What of the envelope has no column, as JSON. */
export function restOf(envelope: Envelope): string | null {
  let rest: Record<string, unknown> | undefined
  for (const name in envelope) {
    if (COLUMNS.has(name)) continue
    rest ??= {}
    rest[name] = envelope[name]
  }
  return rest === undefined ? null : JSON.stringify(rest)
}

export function fromColumns(row: EnvelopeColumns): Envelope {
  const { id, type, groupId, input, queueAt, startAt, attempt, priority, rest } = row
  const named = { id, type, groupId, input, queueAt, startAt, attempt, priority }
  return rest === null ? named : Object.assign(named, JSON.parse(rest))
}
