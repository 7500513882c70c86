import { setOwn, TAG, type Tag } from './codec-tags.js'

type Json = Record<string, unknown>

/** One reading of a text: what it still has to read. */
interface Reading {
  /** The value itself, or the one it stands for: complete on the outside, while its inside is read later. */
  look(value: unknown): unknown
  /** Fills what was made, once the stack has been unwound. */
  later(fill: () => void): void
}

/** Makes the value of a payload, or answers `NOT_OURS` when it has not the right shape. */
type Revive = (payload: unknown, reading: Reading) => unknown

const NOT_OURS = Symbol('not ours')

/**
 * Reads parsed JSON, which it may change: every exact wrapper becomes its value, everything else stays what it is.
 * It never throws, and depth costs no stack: `JSON.parse` reads a million levels, and so must this.
 */
export function decode(parsed: unknown): unknown {
  // A value can be put in its place before it is filled, because no value depends on what is inside another one.
  const unread: (object | (() => void))[] = []
  const reading: Reading = {
    look(value) {
      if (typeof value !== 'object' || value === null) return value
      const revived = Array.isArray(value) ? NOT_OURS : revive(value as Json, reading)
      if (revived !== NOT_OURS) return revived
      unread.push(value)
      return value
    },
    later(fill) {
      unread.push(fill)
    },
  }
  const root = reading.look(parsed)
  for (let next = unread.pop(); next !== undefined; next = unread.pop()) {
    if (typeof next === 'function') next()
    else if (Array.isArray(next)) lookInArray(next, reading)
    else lookInObject(next as Json, reading)
  }
  return root
}

function lookInArray(array: unknown[], { look }: Reading): void {
  for (let i = 0; i < array.length; i += 1) {
    const child = array[i]
    if (typeof child === 'object' && child !== null) array[i] = look(child)
  }
}

function lookInObject(object: Json, { look }: Reading): void {
  for (const key of Object.keys(object)) {
    const child = object[key]
    if (typeof child !== 'object' || child === null) continue
    const read = look(child)
    if (read !== child) setOwn(object, key, read)
  }
}

/** A wrapper's own keys are exactly the tag, or the tag and `value`. */
function revive(object: Json, reading: Reading): unknown {
  if (!Object.hasOwn(object, TAG)) return NOT_OURS
  const tag = object[TAG]
  const size = Object.keys(object).length
  if (tag === 'undefined') return size === 1 ? undefined : NOT_OURS
  if (size !== 2 || !Object.hasOwn(object, 'value') || typeof tag !== 'string' || !Object.hasOwn(REVIVERS, tag))
    return NOT_OURS
  return REVIVERS[tag as keyof typeof REVIVERS](object['value'], reading)
}

const REVIVERS: { readonly [T in Exclude<Tag, 'undefined'>]: Revive } = {
  BigInt: (payload) =>
    typeof payload === 'string' && /^-?\d+$/.test(payload) ? made(() => BigInt(payload)) : NOT_OURS,
  Date: (payload) => {
    if (payload === null) return new Date(Number.NaN)
    if (typeof payload !== 'string' || !INSTANT.test(payload)) return NOT_OURS
    const date = new Date(payload)
    return Number.isNaN(date.getTime()) ? NOT_OURS : date
  },
  Map: (payload, { look, later }) => {
    if (!isPairs(payload)) return NOT_OURS
    const map = new Map<unknown, unknown>()
    later(() => {
      for (const [key, value] of payload) map.set(look(key), look(value))
    })
    return map
  },
  Set: (payload, { look, later }) => {
    if (!Array.isArray(payload)) return NOT_OURS
    const set = new Set<unknown>()
    later(() => {
      for (const value of payload) set.add(look(value))
    })
    return set
  },
  Error: (payload, reading) => (isErrorFields(payload) ? reviveError(payload, reading) : NOT_OURS),
  Number: (payload) => (typeof payload === 'string' && Object.hasOwn(NUMBERS, payload) ? NUMBERS[payload] : NOT_OURS),
  Bytes: (payload) =>
    typeof payload === 'string' && payload.length % 4 === 0 && BASE64.test(payload)
      ? // A copy: small Buffers share one pool, and a view must not show its neighbours.
        new Uint8Array(Buffer.from(payload, 'base64'))
      : NOT_OURS,
  RegExp: (payload) => {
    if (!Array.isArray(payload) || payload.length !== 2) return NOT_OURS
    const [source, flags] = payload
    return typeof source === 'string' && typeof flags === 'string' ? made(() => new RegExp(source, flags)) : NOT_OURS
  },
  URL: (payload) => (typeof payload === 'string' ? made(() => new URL(payload)) : NOT_OURS),
  Object: (payload, { look, later }) => {
    if (!isEscaped(payload)) return NOT_OURS
    const object = {}
    later(() => {
      for (const [key, value] of payload) setOwn(object, key, look(value))
    })
    return object
  },
}

/** An instant with its zone. What a `Date` reads differently from machine to machine is none. */
const INSTANT = /^(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const NUMBERS: Readonly<Record<string, number>> = { NaN: Number.NaN, Infinity, '-Infinity': -Infinity, '-0': -0 }

/** For constructors that refuse: what they refuse was not written by us. */
function made<T>(make: () => T): T | typeof NOT_OURS {
  try {
    return make()
  } catch {
    return NOT_OURS
  }
}

function isPairs(payload: unknown): payload is (readonly [unknown, unknown])[] {
  return Array.isArray(payload) && payload.every((pair) => Array.isArray(pair) && pair.length === 2)
}

function isEscaped(payload: unknown): payload is (readonly [string, unknown])[] {
  return isPairs(payload) && payload.every(([key]) => typeof key === 'string')
}

interface ErrorFields {
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly cause?: unknown
  readonly errors?: readonly unknown[]
  readonly props?: object
}

// Fields that it does not know are no reason to refuse: a later version may have written them.
function isErrorFields(payload: unknown): payload is ErrorFields {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return false
  const own = (key: string): unknown => (Object.hasOwn(payload, key) ? (payload as Json)[key] : undefined)
  const { stack, errors, props } = { stack: own('stack'), errors: own('errors'), props: own('props') }
  return (
    typeof own('name') === 'string' &&
    typeof own('message') === 'string' &&
    (stack === undefined || typeof stack === 'string') &&
    (errors === undefined || Array.isArray(errors)) &&
    (props === undefined || isProps(props))
  )
}

/** The user's own fields of an error: a plain object, escaped if it has our key. */
function isProps(props: unknown): boolean {
  if (typeof props !== 'object' || props === null || Array.isArray(props)) return false
  if (!Object.hasOwn(props, TAG)) return true
  const { [TAG]: tag, value, ...rest } = props as Json
  return tag === ('Object' satisfies Tag) && isEscaped(value) && Object.keys(rest).length === 0
}

function pairsOf(props: object): (readonly [string, unknown])[] {
  // `isProps` has checked both forms.
  return Object.hasOwn(props, TAG) ? ((props as Json)['value'] as [string, unknown][]) : Object.entries(props)
}

const ERROR_TYPES: Readonly<Record<string, new (message: string) => Error>> = {
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
}

function reviveError(fields: ErrorFields, { look, later }: Reading): Error {
  const { name, message } = fields
  const Type = Object.hasOwn(ERROR_TYPES, name) ? ERROR_TYPES[name]! : Error
  const error = withoutTrace(() =>
    Object.hasOwn(fields, 'errors') ? new AggregateError([], message) : new Type(message),
  )
  if (error.name !== name) setHidden(error, 'name', name)
  // Without a stack it must not show ours, which would lead the reader to the codec.
  setHidden(error, 'stack', Object.hasOwn(fields, 'stack') ? fields.stack : `${name}: ${message}`)
  later(() => {
    if (Object.hasOwn(fields, 'errors')) setHidden(error, 'errors', look(fields.errors))
    if (Object.hasOwn(fields, 'cause')) setHidden(error, 'cause', look(fields.cause))
    if (Object.hasOwn(fields, 'props'))
      for (const [key, value] of pairsOf(fields.props!)) setOwn(error, key, look(value))
  })
  return error
}

/** Taking a stack trace costs more than all the rest, and this one is thrown away. */
function withoutTrace<T>(make: () => T): T {
  const limit = Error.stackTraceLimit
  // `Reflect.set`, because an assignment throws where the intrinsics are frozen.
  Reflect.set(Error, 'stackTraceLimit', 0)
  try {
    return make()
  } finally {
    Reflect.set(Error, 'stackTraceLimit', limit)
  }
}

/** As the platform has it: the fields of an error do not show up when its properties are listed. */
function setHidden(error: Error, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, enumerable: false, configurable: true })
}
