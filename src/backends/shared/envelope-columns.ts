import type { Envelope } from '../../ports/item.js'

/** What has no column, as JSON. Unknown fields are included, so they survive. Null: every field has a column. */
export function restOfEnvelope(envelope: Envelope, columns: ReadonlySet<string>): string | null {
  let rest: Record<string, unknown> | undefined
  for (const name in envelope) {
    if (columns.has(name) || envelope[name] === undefined) continue
    rest ??= {}
    rest[name] = envelope[name]
  }
  return rest === undefined ? null : JSON.stringify(rest)
}

/** Adds the fields that have no column to those that have one. A field `__proto__` is stored like any other. */
export function joinEnvelope<T extends object>(named: T, rest: string | null): T {
  if (rest === null) return named
  const fields = JSON.parse(rest) as Record<string, unknown>
  for (const name of Object.keys(fields))
    if (name === '__proto__')
      Object.defineProperty(named, name, { value: fields[name], enumerable: true, writable: true, configurable: true })
    else (named as Record<string, unknown>)[name] = fields[name]
  return named
}
