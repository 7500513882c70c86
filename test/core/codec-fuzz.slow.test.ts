import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defaultCodec } from '../../src/core/codec/codec.js'
import { afterRoundTrip, difference, meaning } from './codec-model.js'

const awkwardKey = fc.oneof(
  { weight: 3, arbitrary: fc.string() },
  fc.constantFrom('$ayepi', 'value', '__proto__', 'constructor', 'prototype', 'toJSON', 'length', '0', '$AYEPI'),
)

const leaf = fc.oneof(
  fc.constantFrom(undefined, null, NaN, -0, 0, Infinity, -Infinity, true, '', '$ayepi'),
  fc.string({ unit: 'binary' }),
  fc.double(),
  fc.bigInt(),
  fc.date(),
  fc.uint8Array(),
  fc.uint8Array().map((bytes) => bytes.buffer),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  fc.int16Array({ maxLength: 3 }),
  fc.webUrl().map((text) => new URL(text)),
  fc.constantFrom(/a+/gi, /\//u, /(?<n>.)/dsy),
  fc.constantFrom(
    () => 1,
    Symbol('s'),
    Object(Symbol('s')),
    Object(1n),
    new Number(-0),
    new String('boxed'),
    new Boolean(false),
  ),
)

/** Own properties, whatever they are called. */
const objectOf = (value: fc.Arbitrary<unknown>) =>
  fc
    .tuple(
      fc.array(fc.tuple(awkwardKey, value), { maxLength: 5 }),
      fc.constantFrom(Object.prototype, null, class Point {}.prototype),
    )
    .map(([pairs, prototype]) => {
      const object = Object.create(prototype)
      for (const [key, v] of pairs) {
        // A toJSON that is a function changes the meaning of the object; that has its own tests.
        const isAsked = key === 'toJSON' && typeof v === 'function'
        Object.defineProperty(object, key, {
          value: isAsked ? 1 : v,
          writable: true,
          enumerable: true,
          configurable: true,
        })
      }
      return object as unknown
    })

/** User data that looks like our own wire format. */
const lookAlike = (value: fc.Arbitrary<unknown>) => {
  const tag = fc.constantFrom('undefined', 'BigInt', 'Date', 'Map', 'Set', 'Error', 'Number', 'Bytes', 'Object', 'X')
  return fc.oneof(
    fc.record({ $ayepi: tag, value }),
    fc.record({ $ayepi: tag }),
    fc.record({ value, $ayepi: value }),
    fc.record({ $ayepi: fc.constantFrom('Set', 'Map', 'Object'), value: fc.array(fc.tuple(awkwardKey, value)) }),
  )
}

/** Errors as people make them: subclasses, causes, their own fields. */
const errorOf = (value: fc.Arbitrary<unknown>) =>
  fc
    .record({
      type: fc.constantFrom(Error, TypeError, RangeError),
      name: fc.option(fc.string(), { nil: undefined }),
      message: fc.string(),
      cause: fc.option(fc.tuple(value), { nil: undefined }),
      errors: fc.option(fc.array(value, { maxLength: 3 }), { nil: undefined }),
      props: fc.array(fc.tuple(awkwardKey, value), { maxLength: 3 }),
    })
    .map(({ type: Type, name, message, cause, errors, props }) => {
      const options = cause === undefined ? undefined : { cause: cause[0] }
      const error = errors === undefined ? new Type(message, options) : new AggregateError(errors, message, options)
      if (name !== undefined) error.name = name
      for (const [key, v] of props) {
        Object.defineProperty(error, key, { value: v, writable: true, enumerable: true, configurable: true })
      }
      return error as unknown
    })

const { anything } = fc.letrec<{ anything: unknown }>((tie) => ({
  anything: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 5, arbitrary: leaf },
    { weight: 2, arbitrary: fc.array(tie('anything'), { maxLength: 5 }) },
    { weight: 1, arbitrary: fc.sparseArray(tie('anything'), { maxNumElements: 3, maxLength: 6 }) },
    { weight: 3, arbitrary: objectOf(tie('anything')) },
    { weight: 2, arbitrary: lookAlike(tie('anything')) },
    { weight: 1, arbitrary: errorOf(tie('anything')) },
    {
      weight: 1,
      arbitrary: fc.array(fc.tuple(tie('anything'), tie('anything')), { maxLength: 4 }).map((p) => new Map(p)),
    },
    { weight: 1, arbitrary: fc.array(tie('anything'), { maxLength: 4 }).map((v) => new Set(v)) },
  ),
}))

// Thousands of cases each, and other suites may have the processors: a slow run is no failure.

describe('any value', () => {
  it('comes back from its text as it was', () => {
    fc.assert(
      fc.property(anything, (value) => {
        const text = defaultCodec.stringify(value)
        expect(typeof text).toBe('string')
        expect(difference(defaultCodec.parse(text), afterRoundTrip(value))).toBeUndefined()
      }),
      { numRuns: 2_000 },
    )
  })

  it('comes back also when fast-check makes it up', () => {
    const everything = fc.anything({
      key: awkwardKey,
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    })
    fc.assert(
      fc.property(everything, (value) => {
        expect(difference(defaultCodec.parse(defaultCodec.stringify(value)), afterRoundTrip(value))).toBeUndefined()
      }),
      { numRuns: 2_000 },
    )
  })

  it('is not changed by being written', () => {
    fc.assert(
      fc.property(anything, (value) => {
        const before = structuredCloneOfData(value)
        defaultCodec.stringify(value)
        expect(difference(structuredCloneOfData(value), before)).toBeUndefined()
      }),
      { numRuns: 1_000 },
    )
  })

  it('that is JSON-native is written exactly as JSON writes it', () => {
    const native = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('-0'))
    fc.assert(
      fc.property(native, (value) => {
        const text = JSON.stringify(value)
        // JSON turns −0 into 0 and says nothing; we do not.
        fc.pre(difference(JSON.parse(text), value) === undefined && !text.includes('$ayepi'))
        expect(defaultCodec.stringify(value)).toBe(text)
      }),
      { numRuns: 2_000 },
    )
  })
})

const jsonKey = fc.oneof(fc.string(), fc.constantFrom('$ayepi', 'value', '__proto__', 'constructor', 'name', 'message'))
const tagText = fc.constantFrom(
  ...['undefined', 'BigInt', 'Date', 'Map', 'Set', 'Error', 'Number', 'Bytes', 'RegExp', 'URL', 'Object'],
  ...['Mystery', '', 'toString', '__proto__', 'constructor', 'hasOwnProperty'],
)
const payloadText = fc.constantFrom(
  ...[
    '123',
    '-7',
    '',
    'abc',
    '0x10',
    '1.5',
    '2026-06-13T10:00:00.000Z',
    '2026-13-45T99:00:00.000Z',
    '2026',
    'NaN',
    '-0',
  ],
  ...['Infinity', '+Infinity', 'AAEC', 'AAE=', 'A', '====', 'http://a.example/', 'not a url', '(', 'toString'],
)

/** JSON in which nearly everything is about to be a wrapper. */
const { json } = fc.letrec<{ json: unknown }>((tie) => {
  const payload = fc.oneof(
    payloadText,
    fc.constantFrom(null, 0, true),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.array(fc.tuple(tie('json'), tie('json')), { maxLength: 3 }),
    fc.array(fc.tuple(jsonKey, tie('json')), { maxLength: 3 }),
    fc.tuple(fc.constantFrom('a+', '(', ''), fc.constantFrom('g', 'gg', 'x', '')),
    fc.record({ name: payloadText, message: payloadText }),
    fc.record(
      { name: payloadText, message: payloadText, stack: fc.oneof(payloadText, tie('json')) },
      { requiredKeys: [] },
    ),
    tie('json'),
  )
  return {
    json: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      { weight: 3, arbitrary: fc.oneof(payloadText, fc.constantFrom<unknown>(null, true, 1.5, 0)) },
      { weight: 4, arbitrary: fc.record({ $ayepi: tagText, value: payload }) },
      { weight: 1, arbitrary: fc.record({ $ayepi: tagText }) },
      { weight: 1, arbitrary: fc.record({ $ayepi: tagText, value: payload, more: tie('json') }) },
      { weight: 1, arbitrary: fc.record({ $ayepi: payload, value: payload }) },
      { weight: 1, arbitrary: fc.array(tie('json'), { maxLength: 4 }) },
      { weight: 1, arbitrary: fc.dictionary(jsonKey, tie('json'), { maxKeys: 4, noNullPrototype: true }) },
    ),
  }
})

describe('any JSON text', () => {
  it('is read without throwing: exact wrappers become values, all else stays', () => {
    fc.assert(
      fc.property(json, (data) => {
        const text = JSON.stringify(data)
        expect(difference(defaultCodec.parse(text), meaning(JSON.parse(text)))).toBeUndefined()
      }),
      { numRuns: 5_000 },
    )
  })

  it('means the same when its characters are escaped', () => {
    const escaped = (text: string) => text.replaceAll('ayepi', '\\u0061\\u0079epi').replaceAll('$', '\\u0024')
    fc.assert(
      fc.property(json, (data) => {
        const text = JSON.stringify(data)
        expect(difference(defaultCodec.parse(escaped(text)), meaning(JSON.parse(text)))).toBeUndefined()
      }),
      { numRuns: 1_000 },
    )
  })

  it('can be written again and then means the same', () => {
    fc.assert(
      fc.property(json, (data) => {
        const value = defaultCodec.parse(JSON.stringify(data))
        expect(difference(defaultCodec.parse(defaultCodec.stringify(value)), value)).toBeUndefined()
      }),
      { numRuns: 2_000 },
    )
  })

  it('that is not JSON is refused as JSON.parse refuses it', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const attempt = (parse: (t: string) => unknown) => {
          try {
            return { value: parse(text) }
          } catch (error) {
            return { error: (error as Error).name }
          }
        }
        expect(attempt(defaultCodec.parse)).toEqual(attempt(JSON.parse))
      }),
      { numRuns: 2_000 },
    )
  })
})

/** A deep copy of the data, functions and symbols shared. */
function structuredCloneOfData(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(structuredCloneOfData)
  if (value instanceof Map)
    return new Map(Array.from(value, ([k, v]) => [structuredCloneOfData(k), structuredCloneOfData(v)]))
  if (value instanceof Set) return new Set(Array.from(value, structuredCloneOfData))
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  const copy = Object.create(prototype)
  for (const key of Object.keys(value)) {
    const child = structuredCloneOfData((value as Record<string, unknown>)[key])
    Object.defineProperty(copy, key, { value: child, writable: true, enumerable: true, configurable: true })
  }
  return copy
}
