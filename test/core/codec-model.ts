import { types } from 'node:util'

const own = (o: object, key: string) => Object.hasOwn(o, key)
const define = (o: object, key: string, value: unknown) =>
  Object.defineProperty(o, key, { value, writable: true, enumerable: true, configurable: true })

/** What a value is after a round trip, spelt out case by case and slowly. */
export function afterRoundTrip(value: unknown): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (types.isBoxedPrimitive(value)) return types.isSymbolObject(value) ? {} : value.valueOf()
  if (types.isDate(value)) return new Date(value.getTime())
  if (types.isMap(value)) return new Map(Array.from(value, ([k, v]) => [inList(k), inList(v)] as const))
  if (types.isSet(value)) return new Set(Array.from(value, inList))
  if (value instanceof Uint8Array) return Uint8Array.from(value)
  if (value instanceof ArrayBuffer) return new Uint8Array(value.slice(0))
  if (value instanceof RegExp || value instanceof URL) return value
  if (value instanceof Error) {
    const error = Array.isArray((value as AggregateError).errors)
      ? new AggregateError((value as AggregateError).errors.map(inList), value.message)
      : new Error(value.message)
    Object.defineProperty(error, 'name', { value: value.name })
    Object.defineProperty(error, 'stack', { value: value.stack })
    if (own(value, 'cause') && isData(value.cause)) {
      Object.defineProperty(error, 'cause', { value: afterRoundTrip(value.cause) })
    }
    for (const [key, prop] of Object.entries(value)) {
      if (!['name', 'cause'].includes(key) && isData(prop)) define(error, key, afterRoundTrip(prop))
    }
    return error
  }
  if (Array.isArray(value)) return Array.from(value, inList)
  const out = {}
  for (const key of Object.keys(value)) {
    const child = (value as Record<string, unknown>)[key]
    if (typeof child !== 'function' && typeof child !== 'symbol') define(out, key, afterRoundTrip(child))
  }
  return out
}

const isData = (value: unknown) => typeof value !== 'function' && typeof value !== 'symbol'

const inList = (value: unknown) =>
  typeof value === 'function' || typeof value === 'symbol' ? null : afterRoundTrip(value)

/** What parsed JSON stands for, by the letter of the table. */
export function meaning(json: unknown): unknown {
  if (typeof json !== 'object' || json === null) return json
  if (Array.isArray(json)) return json.map(meaning)
  const keys = Object.keys(json).sort().join()
  const { $ayepi: tag, value } = json as { $ayepi?: unknown; value?: unknown }
  if (own(json, '$ayepi') && tag === 'undefined' && keys === '$ayepi') return undefined
  if (own(json, '$ayepi') && keys === '$ayepi,value') {
    const isPairs = Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2)
    if (tag === 'BigInt' && typeof value === 'string' && /^-?[0-9]+$/.test(value)) return BigInt(value)
    if (tag === 'Date' && value === null) return new Date(Number.NaN)
    if (tag === 'Date' && typeof value === 'string' && /^\d{4}-.*T.*Z$/.test(value)) {
      const date = new Date(value)
      if (!Number.isNaN(date.getTime())) return date
    }
    if (tag === 'Map' && isPairs) return new Map(value.map(([k, v]): [unknown, unknown] => [meaning(k), meaning(v)]))
    if (tag === 'Set' && Array.isArray(value)) return new Set(value.map(meaning))
    if (tag === 'Number' && typeof value === 'string' && ['NaN', 'Infinity', '-Infinity', '-0'].includes(value)) {
      return Number(value)
    }
    if (tag === 'Bytes' && typeof value === 'string' && value.length % 4 === 0 && /^[a-z0-9+/]*={0,2}$/i.test(value)) {
      return Uint8Array.from(atob(value), (c) => c.charCodeAt(0))
    }
    if (tag === 'RegExp' && Array.isArray(value) && value.length === 2 && value.every((s) => typeof s === 'string')) {
      try {
        return new RegExp(value[0]!, value[1])
      } catch {}
    }
    if (tag === 'URL' && typeof value === 'string' && URL.canParse(value)) return new URL(value)
    if (tag === 'Object' && isPairs && value.every(([k]) => typeof k === 'string')) {
      const out = {}
      for (const [k, v] of value) define(out, k, meaning(v))
      return out
    }
    if (tag === 'Error' && typeof value === 'object' && value !== null && !Array.isArray(value)) {
      const { name, message, stack } = value as Record<string, unknown>
      const isRight =
        typeof name === 'string' && typeof message === 'string' && (stack === undefined || typeof stack === 'string')
      if (isRight) {
        const error = new Error(message)
        Object.defineProperty(error, 'name', { value: name })
        return error
      }
    }
  }
  const out = {}
  for (const key of Object.keys(json)) define(out, key, meaning((json as Record<string, unknown>)[key]))
  return out
}

const factsOf = (error: Error) => ({
  name: error.name,
  message: error.message,
  cause: own(error, 'cause') ? [error.cause] : [],
  errors: own(error, 'errors') ? [(error as AggregateError).errors] : [],
  isAggregate: error instanceof AggregateError,
  props: Object.fromEntries(Object.entries(error)),
})

/** Why two values differ, or `undefined`. Stricter than a test runner's equality: order, `-0`, holes and prototypes count. */
export function difference(a: unknown, b: unknown, at = 'value'): string | undefined {
  if (Object.is(a, b)) return undefined
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null)
    return `${at}: ${String(a)} / ${String(b)}`
  const [brandA, brandB] = [a, b].map((v) => Object.prototype.toString.call(v))
  if (brandA !== brandB) return `${at}: ${brandA} / ${brandB}`
  if (a instanceof Error && b instanceof Error) {
    return difference(factsOf(a), factsOf(b), `${at}<error>`)
  }
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return `${at}: prototypes differ`
  if (a instanceof Date && b instanceof Date) return difference(a.getTime(), b.getTime(), `${at}<date>`)
  if (a instanceof RegExp || a instanceof URL) return difference(String(a), String(b), `${at}<text>`)
  if (a instanceof Map && b instanceof Map) return difference([...a], [...b], `${at}<map>`)
  if (a instanceof Set && b instanceof Set) return difference([...a], [...b], `${at}<set>`)
  const [keysA, keysB] = [Reflect.ownKeys(a), Reflect.ownKeys(b)]
  if (keysA.length !== keysB.length || keysA.some((key, i) => key !== keysB[i])) {
    return `${at}: keys ${keysA.map(String)} / ${keysB.map(String)}`
  }
  for (const key of keysA) {
    const found = difference(
      Reflect.getOwnPropertyDescriptor(a, key)?.value,
      Reflect.getOwnPropertyDescriptor(b, key)?.value,
      `${at}.${String(key)}`,
    )
    if (found !== undefined) return found
  }
  return undefined
}
