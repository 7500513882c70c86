import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { defaultCodec } from '../../src/core/codec/codec.js'

const { stringify, parse } = defaultCodec
const again = <T>(value: T): T => parse(stringify(value)) as T
const tag = (name: string, value: unknown) => ({ $ayepi: name, value })

describe('what JSON loses', () => {
  // S20
  it('comes back: dates, big integers, maps, sets, undefined', () => {
    const value = {
      date: new Date('2026-06-13T10:00:00.000Z'),
      big: 9007199254740993n,
      map: new Map([['k', 1]]),
      set: new Set([1, 2, 2]),
      un: undefined,
    }
    const out = again(value)
    expect(out).toStrictEqual(value)
    expect(out.un).toBeUndefined()
    expect([...out.set]).toEqual([1, 2])
    expect(out.date).toBeInstanceOf(Date)
  })

  // S21
  it('has a text by itself, undefined included', () => {
    expect(stringify(undefined)).toBe('{"$ayepi":"undefined"}')
    expect(again(undefined)).toBeUndefined()
    for (const value of [() => 1, Symbol('s'), class {}]) expect(stringify(value)).toBe('{"$ayepi":"undefined"}')
  })

  // S24 W21
  it('keeps undefined as an element and as a property', () => {
    const list = again([undefined, 1])
    expect(list).toHaveLength(2)
    expect(0 in list).toBe(true)
    expect('a' in again({ a: undefined })).toBe(true)
    // biome-ignore lint/suspicious/noSparseArray: a hole reads as undefined, and comes back as that
    expect(Object.keys(again([, 1]))).toEqual(['0', '1'])
  })

  // S25 W21
  it('keeps the numbers that JSON has no word for, and an invalid date', () => {
    const numbers = [Number.NaN, -0, Infinity, -Infinity, 0]
    expect(again(numbers).map((n, i) => Object.is(n, numbers[i]))).toEqual([true, true, true, true, true])
    const date = again(new Date(Number.NaN))
    expect(date).toBeInstanceOf(Date)
    expect(date.getTime()).toBeNaN()
  })

  it('keeps dates far from now, bytes, patterns and addresses', () => {
    const value = [new Date(8.64e15), new Date(-8.64e15), /a\/b/giu, new URL('https://a.example/x?y=1#z')]
    expect(again(value)).toStrictEqual(value)
    expect(again(new Uint8Array([0, 255, 128]))).toStrictEqual(new Uint8Array([0, 255, 128]))
    expect(again(Buffer.from('hello'))).toStrictEqual(new Uint8Array(Buffer.from('hello')))
    expect(again(new Uint8Array([1, 2, 3]).buffer)).toStrictEqual(new Uint8Array([1, 2, 3]))
    expect(again(new Uint8Array([1, 2, 3, 4]).subarray(1, 3))).toStrictEqual(new Uint8Array([2, 3]))
  })

  it('revives bytes that share memory with nothing else', () => {
    expect(again(new Uint8Array([1, 2])).buffer.byteLength).toBe(2)
  })

  it('is kept inside maps and sets, keys included', () => {
    const value = new Map<unknown, unknown>([
      [new Date(5), new Set([1n, undefined])],
      [{ id: 1 }, new Map([[Number.NaN, [undefined]]])],
    ])
    expect(again(value)).toStrictEqual(value)
  })
})

describe('the wire form', () => {
  it.each([
    [undefined, { $ayepi: 'undefined' }],
    [123n, tag('BigInt', '123')],
    [new Date(0), tag('Date', '1970-01-01T00:00:00.000Z')],
    [new Date(Number.NaN), tag('Date', null)],
    [new Map([[1, 2n]]), tag('Map', [[1, tag('BigInt', '2')]])],
    [new Set(['a']), tag('Set', ['a'])],
    [Number.NaN, tag('Number', 'NaN')],
    [-Infinity, tag('Number', '-Infinity')],
    [-0, tag('Number', '-0')],
    [new Uint8Array([1, 2, 3]), tag('Bytes', 'AQID')],
    [/a/g, tag('RegExp', ['a', 'g'])],
    [new URL('http://a.example'), tag('URL', 'http://a.example/')],
    [tag('Date', 'mine'), tag('Object', [['$ayepi', 'Date'], ['value', 'mine']])], // biome-ignore format: pairs
  ])('of %o is stable, because stored text outlives versions', (value, wire) => {
    expect(JSON.parse(stringify(value))).toStrictEqual(wire)
  })

  it('of JSON-native data is plain JSON', () => {
    const value = { a: 1, b: 'x', c: [null, true, { d: 1.5 }], $: 1, ayepi: 2 }
    expect(stringify(value)).toBe(JSON.stringify(value))
  })

  it('of an error has its fields, and no empty ones', () => {
    const error = new Error('boom')
    expect(JSON.parse(stringify(error))).toStrictEqual(
      tag('Error', { name: 'Error', message: 'boom', stack: error.stack }),
    )
  })
})

describe('errors', () => {
  // S23
  it('come back as errors with name and message, and as the built-in type of that name', () => {
    const { err } = again({ err: new TypeError('boom') })
    expect(err).toBeInstanceOf(TypeError)
    expect([err.name, err.message]).toEqual(['TypeError', 'boom'])
  })

  it('keep stack, cause, errors and their own properties', () => {
    class PaymentError extends Error {
      override name = 'PaymentError'
      readonly code = 402
      readonly at = new Date(5)
    }
    const error = new PaymentError('declined', { cause: new RangeError('limit', { cause: undefined }) })
    const out = again(error) as PaymentError & { cause: Error }
    expect(out).toBeInstanceOf(Error)
    expect([out.name, out.message, out.stack, out.code]).toEqual(['PaymentError', 'declined', error.stack, 402])
    expect(out.at).toStrictEqual(new Date(5))
    expect(Object.keys(out)).toEqual(['code', 'at'])
    expect(out.cause).toBeInstanceOf(RangeError)
    expect(Object.hasOwn(out.cause, 'cause') && out.cause.cause).toBe(undefined)

    const many = again(new AggregateError([new Error('a'), 2n], 'several'))
    expect(many).toBeInstanceOf(AggregateError)
    expect([many.name, many.message, many.errors[0].message, many.errors[1]]).toEqual([
      'AggregateError',
      'several',
      'a',
      2n,
    ])
    expect(Object.keys(many)).toEqual([])
  })

  it('keep properties with awkward names as data', () => {
    const error = Object.assign(new Error('x'), {
      $ayepi: 'Date',
      errors: { field: 'bad' },
      toJSON: () => 'no',
      constructor: 5,
      fn() {},
    })
    Object.defineProperty(error, '__proto__', { value: 'p', enumerable: true })
    const out = again(error)
    expect(out).toBeInstanceOf(Error)
    expect(Object.keys(out).sort()).toEqual(['$ayepi', '__proto__', 'constructor', 'errors'])
    expect([out.$ayepi, out.errors]).toEqual(['Date', { field: 'bad' }])
  })

  it('of the platform that are no native ones come back too', () => {
    const out = again(AbortSignal.abort().reason as Error)
    expect(out).toBeInstanceOf(Error)
    expect(out.name).toBe('AbortError')
  })

  // S22
  it('are read without a stack, and do not then show the stack of the reader', () => {
    const out = parse('{"$ayepi":"Error","value":{"name":"TypeError","message":"boom"}}') as Error
    expect(out).toBeInstanceOf(Error)
    expect([out.name, out.message, out.stack]).toEqual(['TypeError', 'boom', 'TypeError: boom'])
  })

  it('are read also when a later version has written more about them', () => {
    const out = parse('{"$ayepi":"Error","value":{"name":"E","message":"boom","digest":"x"}}')
    expect(out).toBeInstanceOf(Error)
  })
})

describe('text that only looks like a wrapper', () => {
  it.each([
    tag('Mystery', 1), // S22
    { $ayepi: 'Date' },
    { $ayepi: 'Date', value: '2026-01-01T00:00:00.000Z', more: 1 },
    { $ayepi: 'undefined', value: 1 },
    { $ayepi: 1, value: 1 },
    { $ayepi: 'toString', value: 1 },
    { $ayepi: '__proto__', value: 1 },
    tag('BigInt', 'abc'),
    tag('BigInt', ''),
    tag('BigInt', '0x10'),
    tag('BigInt', 5),
    tag('Date', 'yesterday'),
    tag('Date', '2026-01-01'),
    tag('Date', '2026-99-01T00:00:00.000Z'),
    tag('Date', 5),
    tag('Map', [[1]]),
    tag('Map', {}),
    tag('Set', null),
    tag('Error', null),
    tag('Error', { name: 'E' }),
    tag('Error', { name: 'E', message: 1 }),
    tag('Error', { name: 'E', message: '', stack: 1 }),
    tag('Error', { name: 'E', message: '', errors: {} }),
    tag('Error', { name: 'E', message: '', props: [] }),
    tag('Error', { name: 'E', message: '', props: { $ayepi: 'Set', value: 1 } }),
    tag('Error', []),
    tag('Number', '1'),
    tag('Number', 'toString'),
    tag('Number', 1),
    tag('Bytes', 'A'),
    tag('Bytes', '!!!!'),
    tag('RegExp', ['(', '']),
    tag('RegExp', ['a', 'zz']),
    tag('RegExp', ['a']),
    tag('URL', 'no address'),
    tag('Object', [[1, 2]]),
    tag('Object', {}),
    // S22 W21
  ])('passes through: %j', (data) => {
    expect(parse(JSON.stringify(data))).toStrictEqual(data)
    expect(again({ data })).toStrictEqual({ data })
  })

  it('does not keep what is inside it from being read', () => {
    expect(parse('{"$ayepi":"Mystery","value":{"$ayepi":"BigInt","value":"1"}}')).toStrictEqual(tag('Mystery', 1n))
  })

  it('cannot be made by user data, however deep', () => {
    const forged = { a: [tag('Date', '2026-01-01T00:00:00.000Z'), tag('Object', [['$ayepi', tag('Set', [1])]])] }
    expect(again(forged)).toStrictEqual(forged)
  })
})

describe('names that mean something to JavaScript', () => {
  it('stay data: __proto__ is an own property on both sides', () => {
    const text = '{"__proto__":{"isAdmin":true},"constructor":1,"prototype":2,"d":{"$ayepi":"Date","value":null}}'
    const out = parse(text) as Record<string, unknown>
    expect(Object.getPrototypeOf(out)).toBe(Object.prototype)
    expect(Object.keys(out)).toEqual(['__proto__', 'constructor', 'prototype', 'd'])
    expect(out['isAdmin']).toBeUndefined()
    expect(stringify(out)).toBe(text)
  })

  it('stay data also where the value under them has to be revived or escaped', () => {
    const out = parse('{"__proto__":{"$ayepi":"Map","value":[]},"x":{"$ayepi":"Object","value":[["__proto__",[]]]}}')
    const { value } = Object.getOwnPropertyDescriptor(out, '__proto__')!
    expect(value).toStrictEqual(new Map())
    expect(Object.keys((out as { x: object }).x)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf((out as { x: object }).x)).toBe(Object.prototype)
    expect(({} as { isAdmin?: unknown }).isAdmin).toBeUndefined()
  })

  it('are not picked up from a polluted prototype', () => {
    const proto = Object.prototype as unknown as Record<string, unknown>
    proto['polluted'] = new Date(0)
    try {
      expect(stringify({ a: new Date(0) })).not.toContain('polluted')
    } finally {
      delete proto['polluted']
    }
  })
})

describe('what cannot be written', () => {
  it('is left out of objects, and null in lists, when it is a function or a symbol', () => {
    const value = {
      f: () => 1,
      s: Symbol('s'),
      list: [() => 1, Symbol('s')],
      d: new Date(0),
      map: new Map([[() => 1, 1]]),
    }
    expect(again(value)).toStrictEqual({ list: [null, null], d: new Date(0), map: new Map([[null, 1]]) })
    expect(again({ $ayepi: 1, f: () => 1 })).toStrictEqual({ $ayepi: 1 })
  })

  it('is refused with a TypeError when it contains itself', () => {
    const object: Record<string, unknown> = { a: { b: {} } }
    object['self'] = [object]
    const map = new Map<unknown, unknown>()
    map.set('m', new Set([map]))
    const error = new Error('x')
    error.cause = { error }
    const escaped: Record<string, unknown> = { $ayepi: 1 }
    escaped['x'] = escaped
    const array: unknown[] = []
    array.push(array, array)
    for (const value of [object, map, error, escaped, array]) {
      expect(() => stringify(value)).toThrow(TypeError)
      expect(() => stringify(value)).toThrow(/contains itself/)
    }
  })

  it('may contain the same thing twice', () => {
    const shared = { at: new Date(0) }
    let deep: unknown = [shared, shared]
    for (let i = 0; i < 100; i += 1) deep = { deep, shared }
    expect(again(deep)).toStrictEqual(deep)
  })

  it('passes on the error of a getter or a toJSON', () => {
    const boom = new Error('boom')
    const throwing = () => {
      throw boom
    }
    expect(() => stringify(Object.defineProperty({}, 'x', { get: throwing, enumerable: true }))).toThrow(boom)
    expect(() => stringify({ toJSON: throwing })).toThrow(boom)
  })
})

describe('objects of other classes', () => {
  it('are written as their toJSON says, and tagged inside it', () => {
    class Money {
      readonly cents: bigint
      constructor(cents: bigint) {
        this.cents = cents
      }
      toJSON(key: string) {
        return { key, cents: this.cents }
      }
    }
    expect(again({ price: new Money(5n), list: [new Money(6n)] })).toStrictEqual({
      price: { key: 'price', cents: 5n },
      list: [{ key: '0', cents: 6n }],
    })
    expect(again({ toJSON: () => new Date(0) })).toStrictEqual(new Date(0))
    expect(again({ a: { toJSON: () => undefined } })).toStrictEqual({ a: undefined })
    expect(again({ a: { toJSON: 'data' } })).toStrictEqual({ a: { toJSON: 'data' } })
    expect(again(Object.defineProperty({}, 'toJSON', { value: () => 1n }))).toBe(1n)
    expect(again({ f: Object.assign(() => 1, { toJSON: () => 2n }) })).toStrictEqual({ f: 2n })
  })

  it('are asked for their toJSON once, also when it answers with themselves or with a function', () => {
    const self = { n: 1n, toJSON: () => self }
    expect(again(self)).toStrictEqual({ n: 1n })
    const list: unknown[] = Object.assign([1n], { toJSON: () => list })
    expect(again(list)).toStrictEqual([1n])
    const fn = Object.assign(() => 1, { toJSON: () => fn })
    expect(again({ fn, a: 1 })).toStrictEqual({ a: 1 })
    expect(again(fn)).toBeUndefined()
  })

  it('ignore the toJSON of tagged types', () => {
    expect(again(Object.assign(new Map([[1, 2]]), { toJSON: () => 'no' }))).toStrictEqual(new Map([[1, 2]]))
    expect(again(Object.assign(new Error('x'), { toJSON: () => 'no' }))).toBeInstanceOf(Error)
  })

  it('are written as their own enumerable properties otherwise', () => {
    class Point {
      x = 1n
      hidden = () => 1
      get inherited() {
        return 2
      }
    }
    expect(again(new Point())).toStrictEqual({ x: 1n })
    expect(again([new Number(5), new String('s'), new Boolean(true), Object(7n)])).toStrictEqual([5, 's', true, 7n])
    expect(again(new Int16Array([7, 8]))).toStrictEqual({ 0: 7, 1: 8 })
    expect(again(new WeakMap())).toStrictEqual({})
  })

  it('are recognised by what they are, not by their prototype: from another realm, or disguised', () => {
    const foreign = runInNewContext(
      '({ d: new Date(5), m: new Map([[1, 2]]), s: new Set([1]), e: new TypeError("x"), r: /a/g, b: new Uint8Array([1]), o: { u: undefined }, l: [undefined] })',
    )
    const out = again(foreign)
    expect(out).toMatchObject({ d: new Date(5), m: new Map([[1, 2]]), s: new Set([1]), r: /a/g, o: {}, l: [undefined] })
    expect(out.e).toBeInstanceOf(TypeError)
    expect(out.b).toStrictEqual(new Uint8Array([1]))
    expect('u' in out.o).toBe(true)
    for (const name of ['Date', 'Map', 'Error', 'URL', 'Uint8Array']) {
      expect(again({ [Symbol.toStringTag]: name, a: 1 })).toStrictEqual({ a: 1 })
    }
    class Address {
      href = 'http://a.example/'
      readonly [Symbol.toStringTag] = 'URL'
    }
    expect(again(new Address())).toStrictEqual(new URL('http://a.example/'))
  })
})

describe('deep nesting', { timeout: 60_000 }, () => {
  const nest = (levels: number, around: (inner: unknown) => unknown) => {
    let value: unknown = 1
    for (let i = 0; i < levels; i += 1) value = around(value)
    return value
  }
  const shapes: [string, (inner: unknown) => unknown][] = [
    ['lists', (inner) => [inner]],
    ['objects', (inner) => ({ inner })],
    ['maps', (inner) => new Map([[1, inner]])],
    ['sets', (inner) => new Set([inner])],
    ['escaped objects', (inner) => ({ $ayepi: inner })],
    ['errors', (inner) => new Error('x', { cause: inner })],
    ['objects beside a date', (inner) => ({ at: new Date(0), inner })],
  ]

  it.each(shapes)('of %s works for 300 levels, and is a clear error at 10 000', (_, around) => {
    const deep = nest(300, around)
    expect(stringify(again(deep)) === stringify(deep)).toBe(true)
    try {
      stringify(nest(10_000, around))
      expect.unreachable()
    } catch (error) {
      expect(error).toMatchObject({ code: 'NESTED_TOO_DEEP', facts: { maxDepth: 1_000 } })
    }
  })

  it.each([
    ['lists', '[', ']'],
    ['objects', '{"a":', '}'],
    ['sets', '{"$ayepi":"Set","value":[', ']}'],
    ['maps', '{"$ayepi":"Map","value":[[1,', ']]}'],
    ['map keys', '{"$ayepi":"Map","value":[[', ',1]]}'],
    ['escaped objects', '{"$ayepi":"Object","value":[["a",', ']]}'],
    ['causes', '{"$ayepi":"Error","value":{"name":"E","message":"","cause":', '}}'],
    ['errors in errors', '{"$ayepi":"Error","value":{"name":"E","message":"","errors":[', ']}}'],
    ['properties of errors', '{"$ayepi":"Error","value":{"name":"E","message":"","props":{"a":', '}}}'],
    ['wrappers that are none', '{"$ayepi":"Mystery","value":', '}'],
  ])('of %s is read at 20 000 levels', (_, open, close) => {
    const text = `${open.repeat(20_000)}{"$ayepi":"undefined"}${close.repeat(20_000)}`
    expect(() => parse(text)).not.toThrow()
  })
})

describe('what is no text', () => {
  it('is refused by name', () => {
    expect(() => parse(undefined as unknown as string)).toThrow(/parse\(text\)/)
    expect(() => parse(5 as unknown as string)).toThrow(TypeError)
    expect(() => parse('{')).toThrow(SyntaxError)
  })
})
