import type { Envelope } from '../../ports/item.js'

/** An envelope as a row holds it: what is asked for by name in columns, everything else as one JSON text. */
const COLUMNS: ReadonlySet<string> = new Set([
  'id',
  'type',
  'groupId',
  'input',
  'queueAt',
  'startAt',
  'attempt',
  'priority',
  'waiter',
])

/** What of the envelope has no column, as JSON: unknown fields included, so that they survive. Null: there is none of it. */
export function restOf(envelope: Envelope): string | null {
  let rest: Record<string, unknown> | undefined
  for (const name in envelope) {
    if (COLUMNS.has(name) || envelope[name] === undefined) continue
    rest ??= {}
    rest[name] = envelope[name]
  }
  return rest === undefined ? null : JSON.stringify(rest)
}

/** Puts the fields that have no column of their own back. `__proto__` is a field like any other. */
export function withRest<T extends object>(named: T, waiter: string | null, rest: string | null): T {
  const whole = waiter === null ? named : Object.assign(named, { waiter })
  if (rest === null) return whole
  const fields = JSON.parse(rest) as Record<string, unknown>
  for (const name of Object.keys(fields))
    if (name === '__proto__')
      Object.defineProperty(whole, name, { value: fields[name], enumerable: true, writable: true })
    else (whole as Record<string, unknown>)[name] = fields[name]
  return whole
}
