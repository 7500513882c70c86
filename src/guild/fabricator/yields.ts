import type { CollectedGraft } from './engine-design.js'

/**
 * Whether a value survives JSON: writing and reading it loses nothing. Returns where it does not, and why; `undefined` when
 * it does. An engine whose yields do not survive has failed, and trying again would not help.
 */
export function lostInJson(value: unknown, path = 'yields', above: readonly object[] = []): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      if (!Number.isFinite(value)) return `${path} is ${value}`
      return Object.is(value, -0) ? `${path} is -0` : undefined
    case 'object':
      return value === null ? undefined : lostInObject(value, path, above)
    case 'undefined':
      return `${path} is undefined`
    case 'bigint':
    case 'function':
    case 'symbol':
      return `${path} is a ${typeof value}`
  }
}

/** Deeper than any document store goes. */
const MAX_DEPTH = 400

function lostInObject(value: object, path: string, above: readonly object[]): string | undefined {
  if (above.includes(value)) return `${path} contains itself`
  if (above.length >= MAX_DEPTH) return `${path} is more than ${MAX_DEPTH} levels deep`
  const within = [...above, value]
  if (Array.isArray(value)) {
    if (Object.keys(value).length !== value.length) return `${path} is an array with gaps or names`
    return firstOf(value.map((member, i) => () => lostInJson(member, `${path}[${i}]`, within)))
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  // A Date, a Map or an instance comes back as something else.
  if (prototype !== Object.prototype && prototype !== null) return `${path} is not a plain object`
  if (Object.getOwnPropertySymbols(value).length > 0) return `${path} has a symbol as a key`
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return `${path} has its own toJSON`
  return firstOf(
    Object.entries(value).map(
      ([key, member]) =>
        () =>
          lostInJson(member, `${path}.${key}`, within),
    ),
  )
}

function firstOf(checks: readonly (() => string | undefined)[]): string | undefined {
  for (const check of checks) {
    const found = check()
    if (found !== undefined) return found
  }
  return undefined
}

/** What `collect` returned: plain yields, or yields with engines to graft. */
export function collected(value: unknown): { readonly yields: unknown } | CollectedGraft {
  const isGraft = typeof value === 'object' && value !== null && Array.isArray((value as { graft?: unknown }).graft)
  return isGraft ? (value as CollectedGraft) : { yields: value }
}
