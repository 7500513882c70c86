import { types } from 'node:util'
import { MillraceError } from '../error.js'
import { setOwn, TAG, type Tag } from './codec-tags.js'

/**
 * The deepest nesting that is encoded, counted on the wire (a Map costs three levels). `JSON.stringify` itself gives up,
 * with a stack overflow, at a depth that depends on its caller; a fixed limit fails the same way every time.
 */
const MAX_DEPTH = 1_000

/** Above this depth there is no search for cycles: a cycle gets here soon enough, and everything else is spared the cost. */
const CYCLE_DEPTH = 50

/** Stands for what JSON leaves out: it drops a symbol from an object, and writes `null` for it in an array. */
const LEFT_OUT = Symbol('left out')

/** Where a value stands: under which key, how deep, and (once it is deep enough to care) inside which containers. */
type Key = string | number
type Around = Set<object> | undefined

/**
 * The value in JSON-native form: tagged types wrapped, and the value itself, not a copy, wherever there is nothing to
 * wrap. Functions and symbols stay, for `JSON.stringify` to leave out.
 */
export function encode(value: unknown): unknown {
  return encodeAny(value, '', 0, undefined)
}

function encodeAny(value: unknown, key: Key, depth: number, around: Around): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'symbol':
      return value
    case 'number':
      return isNative(value) ? value : wrap('Number', Object.is(value, -0) ? '-0' : String(value))
    case 'undefined':
      return { [TAG]: 'undefined' satisfies Tag }
    case 'bigint':
      return wrap('BigInt', String(value))
    case 'function':
      return hasToJson(value) ? encodeToJson(value, key, depth, around) : value
    case 'object':
      return value === null ? null : encodeObject(value, key, depth, around)
  }
}

function encodeObject(value: object, key: Key, outerDepth: number, outerAround: Around): unknown {
  const depth = outerDepth + 1
  let around = outerAround
  if (depth > CYCLE_DEPTH) {
    if (depth > MAX_DEPTH) throw tooDeep()
    around ??= new Set()
    if (around.has(value)) throw cycle(key)
    around.add(value)
  }
  let encoded: unknown
  const prototype = Object.getPrototypeOf(value)
  if (hasToJson(value) && !isTagged(value)) encoded = encodeToJson(value, key, depth, around)
  else if (prototype === Object.prototype || prototype === null) encoded = encodePlain(value, depth, around)
  else if (Array.isArray(value)) encoded = encodeArray(value, depth, around)
  else encoded = encodeTagged(value, depth, around) ?? encodeInstance(value, key, depth, around)
  around?.delete(value)
  return encoded
}

/** An object of the platform's own prototype, or of none: the way that nearly every input takes. */
function encodePlain(value: object, depth: number, around: Around): unknown {
  let copy: object | undefined
  for (const key in value) {
    if (key === TAG && Object.hasOwn(value, TAG)) return encodeEscaped(value, depth, around)
    const child = (value as Record<string, unknown>)[key]
    if (isScalar(child)) continue
    const encoded = encodeAny(child, key, depth, around)
    // `for…in` also walks what was added to Object.prototype; JSON has no place for it.
    if (encoded === child || !Object.hasOwn(value, key)) continue
    // A spread defines properties, so that an own `__proto__` stays one.
    copy ??= { ...value }
    setOwn(copy, key, encoded)
  }
  return copy ?? value
}

function encodeArray(value: readonly unknown[], depth: number, around: Around): unknown {
  let copy: unknown[] | undefined
  for (let i = 0; i < value.length; i += 1) {
    const child = value[i]
    if (isScalar(child)) continue
    const encoded = encodeAny(child, i, depth, around)
    if (encoded === child) continue
    copy ??= Array.from(value)
    copy[i] = encoded
  }
  return copy ?? value
}

/** An object of some class that means nothing to us: its own enumerable properties, as JSON has it. */
function encodeInstance(value: object, key: Key, depth: number, around: Around): unknown {
  if (types.isPromise(value)) throw promised(key)
  if (types.isBoxedPrimitive(value)) {
    return types.isSymbolObject(value) ? {} : encodeAny(value.valueOf(), key, depth, around)
  }
  return encodePlain({ ...value }, depth, around)
}

/** User data that has our key: written as pairs, so it can never be mistaken for a wrapper. */
function encodeEscaped(value: object, depth: number, around: Around): unknown {
  const pairs: [string, unknown][] = []
  for (const [key, child] of Object.entries(value)) {
    const encoded = encodeAny(child, key, depth + 2, around)
    if (typeof encoded !== 'function' && typeof encoded !== 'symbol') pairs.push([key, encoded])
  }
  return wrap('Object', pairs)
}

// Internal slots tell what an object is, whichever realm made it and whatever its prototype or its toStringTag pretends.
function encodeTagged(value: object, depth: number, around: Around): object | undefined {
  if (types.isDate(value)) {
    const isValid = !Number.isNaN(Date.prototype.getTime.call(value))
    return wrap('Date', isValid ? Date.prototype.toISOString.call(value) : null)
  }
  if (types.isMap(value)) {
    const inside = depth + 2
    return wrap(
      'Map',
      Array.from(Map.prototype.entries.call(value), ([k, v]) => [
        encodeAny(k, 0, inside, around),
        encodeAny(v, 1, inside, around),
      ]),
    )
  }
  if (types.isSet(value)) {
    return wrap(
      'Set',
      Array.from(Set.prototype.values.call(value), (v, i) => encodeAny(v, i, depth + 1, around)),
    )
  }
  if (types.isUint8Array(value)) {
    return wrap('Bytes', Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'))
  }
  if (types.isAnyArrayBuffer(value)) return wrap('Bytes', Buffer.from(value).toString('base64'))
  if (types.isRegExp(value)) return wrap('RegExp', [value.source, value.flags])
  if (isError(value)) return wrap('Error', encodeError(value, depth + 1, around))
  const href = hrefOf(value)
  return href === undefined ? undefined : wrap('URL', href)
}

function isTagged(value: object): boolean {
  return (
    types.isDate(value) ||
    types.isMap(value) ||
    types.isSet(value) ||
    types.isUint8Array(value) ||
    types.isAnyArrayBuffer(value) ||
    types.isRegExp(value) ||
    isError(value) ||
    hrefOf(value) !== undefined
  )
}

function isError(value: object): value is Error {
  // A DOMException (what an abort throws) is an Error by its prototype only.
  return types.isNativeError(value) || value instanceof Error
}

/** The address, if it is a URL of this realm, or of another or a library that keeps to the standard. */
function hrefOf(value: object): string | undefined {
  if (value instanceof URL) return value.href
  if (Object.prototype.toString.call(value) !== '[object URL]') return undefined
  const { href } = value as Partial<URL>
  return typeof href === 'string' && URL.canParse(href) && new URL(href).href === href ? href : undefined
}

function encodeError(error: Error, depth: number, around: Around): object {
  const { name, message, stack } = error
  const { errors } = error as Partial<AggregateError>
  const isAggregate = Array.isArray(errors) && Object.hasOwn(error, 'errors')
  const fields: Record<string, unknown> = {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? message : '',
  }
  if (typeof stack === 'string') fields['stack'] = stack
  if (Object.hasOwn(error, 'cause')) fields['cause'] = encodeAny(error.cause, 'cause', depth, around)
  if (isAggregate) fields['errors'] = encodeArray(Array.from(errors), depth + 1, around)
  const props: Record<string, unknown> = {}
  for (const [key, prop] of Object.entries(error)) {
    const isField = Object.hasOwn(fields, key) || key === 'name' || key === 'message' || key === 'stack'
    if (!isField && typeof prop !== 'function' && typeof prop !== 'symbol') setOwn(props, key, prop)
  }
  if (Object.keys(props).length > 0) fields['props'] = encodePlain(props, depth + 1, around)
  return fields
}

interface WithToJson {
  toJSON(key: string): unknown
}

function hasToJson(value: object): value is WithToJson {
  return typeof (value as Partial<WithToJson>).toJSON === 'function'
}

/** As in JSON, the answer is final: it may be the object itself, and is not asked again. */
function encodeToJson(value: WithToJson, key: Key, depth: number, around: Around): unknown {
  const answer = value.toJSON(String(key))
  if (typeof answer === 'function') return LEFT_OUT
  if (typeof answer !== 'object' || answer === null || !hasToJson(answer)) return encodeAny(answer, key, depth, around)
  const tagged = encodeTagged(answer, depth, around)
  if (tagged !== undefined) return tagged
  // A copy without its toJSON, since `JSON.stringify` would ask that again.
  if (Array.isArray(answer)) return encodeArray(Array.from(answer), depth, around)
  return encodePlain({ ...answer, toJSON: LEFT_OUT }, depth, around)
}

function isScalar(value: unknown): boolean {
  return (
    typeof value === 'string' ||
    (typeof value === 'number' ? isNative(value) : typeof value === 'boolean' || value === null)
  )
}

function isNative(n: number): boolean {
  return Number.isFinite(n) && (n !== 0 || 1 / n > 0)
}

function wrap(tag: Tag, value: unknown): object {
  return { [TAG]: tag, value }
}

function cycle(key: Key): TypeError {
  return new TypeError(
    `A value that contains itself (found again at "${key}") cannot be encoded. Pass an id or a copy instead of the object.`,
  )
}

/** It has no properties: what it stands for would be lost without a word. */
function promised(key: Key): TypeError {
  return new TypeError(`A promise${key === '' ? '' : ` (at "${key}")`} cannot be encoded. Await it first.`)
}

function tooDeep(): MillraceError {
  return new MillraceError(
    'NESTED_TOO_DEEP',
    `The value is nested more than ${MAX_DEPTH} levels deep and cannot be encoded. Flatten it, for example into a list of parts.`,
    { facts: { maxDepth: MAX_DEPTH } },
  )
}
