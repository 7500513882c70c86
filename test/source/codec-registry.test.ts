import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DecodeError, PoisonError } from '../../src/core/failure/failure-errors.js'
import { isPoison } from '../../src/core/failure/failure-predicates.js'
import { NoCodecError } from '../../src/core/stream/stream-errors.js'
import { type Codec, CodecRegistry, decodeTyped, jsonCodec } from '../../src/source/codecs/codec-registry.js'
import { mediaType } from '../../src/source/message/media-type.js'
import { type MessageSpec, messageOf } from './message-of.js'

const named = (name: string): Codec<string> => ({ decode: () => name })
const typed = (contentType: string, value = '', name = 'content-type'): MessageSpec => ({
  headers: { [name]: contentType },
  value,
})
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  )

describe('a registry of codecs', () => {
  const json = new CodecRegistry().register('application/json', jsonCodec())

  // S34
  it('decodes by the content type', async () => {
    const message = messageOf(typed('application/json', '{"id":"A-1","qty":2}'))
    expect(await json.decode(message)).toEqual({ id: 'A-1', qty: 2 })
  })

  // S34
  it('has a default for what has no type, or an unknown one', async () => {
    const registry = new CodecRegistry().register('application/json', jsonCodec()).setDefault(named('default'))
    expect(await registry.decode(messageOf({ value: '{}' }))).toBe('default')
    expect(await registry.decode(messageOf(typed('')))).toBe('default')
    expect(await registry.decode(messageOf(typed('text/plain', 'x')))).toBe('default')
    expect(await registry.decode(messageOf(typed('application/json', '1')))).toBe(1)
  })

  // S34
  it('without any is a DecodeError because of NoCodecError, and names the type as found', async () => {
    const error = await failure(new CodecRegistry().decode(messageOf(typed('Text/Plain; q=1'))))
    expect(error).toBeInstanceOf(DecodeError)
    expect(error).toMatchObject({ contentType: 'Text/Plain; q=1', subject: 'orders', cause: expect.any(NoCodecError) })
    expect(isPoison(error)).toBe(true)
    expect(await failure(new CodecRegistry().decode(messageOf()))).toMatchObject({ contentType: '' })
    expect(await failure(json.decode(messageOf(typed('text/plain'))))).toMatchObject({
      cause: expect.any(NoCodecError),
    })
  })

  // S34
  it('makes every failure of a codec poison, and keeps its error', async () => {
    const error = await failure(json.decode(messageOf(typed('application/json', '{not json'))))
    expect(isPoison(error)).toBe(true)
    expect(error).toMatchObject({ contentType: 'application/json', cause: expect.any(SyntaxError) })
    const odd = new CodecRegistry().setDefault({ decode: () => Promise.reject('words') })
    expect(await failure(odd.decode(messageOf()))).toMatchObject({ cause: 'words', contentType: '' })
  })

  it.each([
    'Application/JSON; charset=utf-8',
    'application/json;charset=utf-8',
    ' application/json ',
    'APPLICATION/JSON',
    // S34 W31
  ])('reads "%s" as JSON', async (contentType) => {
    expect(await json.decode(messageOf(typed(contentType, '1')))).toBe(1)
    expect(await json.decode(messageOf(typed(contentType, '1', 'Content-Type')))).toBe(1)
  })

  // W31
  it('knows that a type ending in +json is JSON, unless it has its own codec', async () => {
    const registry = new CodecRegistry().register('application/json', named('json')).setDefault(named('default'))
    expect(await registry.decode(messageOf(typed('application/vnd.acme+json; v=2')))).toBe('json')
    registry.register('application/vnd.acme+json', named('own'))
    expect(await registry.decode(messageOf(typed('application/vnd.acme+json; v=2')))).toBe('own')
    expect(await registry.decode(messageOf(typed('application/vnd.acme+xml')))).toBe('default')
    const noJson = new CodecRegistry().setDefault(named('default'))
    expect(await noJson.decode(messageOf(typed('application/vnd.acme+json')))).toBe('default')
  })

  it('replaces what was registered before, under any spelling, and shares nothing with another registry', async () => {
    const registry = new CodecRegistry().register('a/b', named('old')).register('A/B; x=y', named('new'))
    expect(await registry.decode(messageOf(typed('a/b')))).toBe('new')
    expect(await failure(new CodecRegistry().decode(messageOf(typed('a/b'))))).toBeInstanceOf(DecodeError)
  })

  it('gives a codec the bytes and the headers', async () => {
    const registry = new CodecRegistry().setDefault({
      decode: (data, headers) => `${data.length} ${headers.get('x')}`,
    })
    expect(await registry.decode(messageOf({ value: 'abc', headers: { x: 'y' } }))).toBe('3 y')
  })

  it('refuses what is no codec and what is no type', () => {
    const registry = new CodecRegistry()
    expect(() => registry.register('a/b', {} as never)).toThrow(
      /register\(contentType, codec\).*decode\(data, headers\)/,
    )
    expect(() => registry.setDefault(null as never)).toThrow('setDefault(codec)')
    for (const type of ['', ' ; charset=utf-8', undefined, 5]) {
      expect(() => registry.register(type as never, named('x'))).toThrow('a media type such as application/json')
    }
  })
})

describe('jsonCodec', () => {
  const registry = new CodecRegistry().setDefault(jsonCodec())
  const decode = (value: Uint8Array | string) => registry.decode(messageOf({ value }))

  it('round-trips whatever JSON can say', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const text = JSON.stringify(value)
        expect(JSON.stringify(await decode(text))).toBe(text)
      }),
      { numRuns: 1_000 },
    )
  })

  it.each([
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['a cut sequence', [0x22, 0xe2, 0x82]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ])('takes %s for poison, and the next message as it is', async (_name, data) => {
    expect(isPoison(await failure(decode(Uint8Array.from(data))))).toBe(true)
    expect(await decode('"ok"')).toBe('ok')
  })

  it('treats an empty payload as poison', async () => {
    expect(isPoison(await failure(decode('')))).toBe(true)
  })

  it('gives a shape with parse, and what that throws is poison', async () => {
    const numbers = jsonCodec((value) => {
      if (typeof value !== 'number') throw new TypeError('not a number')
      return value + 1
    })
    const shaped = new CodecRegistry().setDefault(numbers)
    expect(await shaped.decode(messageOf({ value: '1' }))).toBe(2)
    expect(await failure(shaped.decode(messageOf({ value: '"1"' })))).toMatchObject({ cause: expect.any(TypeError) })
  })
})

describe('decodeTyped', () => {
  const registry = new CodecRegistry().setDefault(jsonCodec())
  const isText = (value: unknown): value is string => typeof value === 'string'

  it('gives the value when it passes the guard', async () => {
    expect((await decodeTyped(registry, messageOf({ value: '"x"' }), isText)).toUpperCase()).toBe('X')
  })

  it('is a DecodeError because of a PoisonError when it does not, also when the guard throws', async () => {
    const stumbling = (_value: unknown): _value is string => {
      throw new TypeError('stumbled')
    }
    const spec = { value: '1', headers: { 'content-type': 'a/b' } }
    const error = await failure(decodeTyped(registry, messageOf(spec), isText))
    expect(error).toMatchObject({ contentType: 'a/b', subject: 'orders', cause: expect.any(PoisonError) })
    expect(error).toBeInstanceOf(DecodeError)
    expect(await failure(decodeTyped(registry, messageOf(spec), stumbling))).toMatchObject({
      cause: { code: 'POISON', cause: { message: 'stumbled' } },
    })
  })

  it('is the usual DecodeError when it cannot be decoded', async () => {
    expect(await failure(decodeTyped(registry, messageOf({ value: '{' }), isText))).toMatchObject({
      cause: expect.any(SyntaxError),
    })
  })
})

describe('a media type', () => {
  it('is the part before the parameters, in lower case', () => {
    expect(['a/b', 'A/B', ' a/b ; x=y', 'a/b;', ''].map(mediaType)).toEqual(['a/b', 'a/b', 'a/b', 'a/b', ''])
  })
})
