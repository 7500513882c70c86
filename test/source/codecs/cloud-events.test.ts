import { describe, expect, it } from 'vitest'
import { isPoison } from '../../../src/core/failure/failure-predicates.js'
import { BadCloudEventError, type CloudEvent, cloudEventsCodec } from '../../../src/source/codecs/cloud-events.js'
import { CodecRegistry, jsonCodec } from '../../../src/source/codecs/codec-registry.js'
import { parseRfc3339 } from '../../../src/source/codecs/rfc3339.js'
import { Headers, type HeadersInit } from '../../../src/source/message/headers.js'
import { bytes, messageOf, text } from '../message-of.js'

const read = async (headers: HeadersInit, value: string | Uint8Array = '') =>
  cloudEventsCodec().decode(bytes(value), new Headers(headers)) as Promise<CloudEvent>

const REQUIRED = { 'ce-id': '1', 'ce-source': '/shop', 'ce-type': 'order.placed', 'ce-specversion': '1.0' }
const STRUCTURED = { 'content-type': 'application/cloudevents+json; charset=utf-8' }
const structured = (more: string, type = STRUCTURED) =>
  read(type, `{"id":"1","source":"/shop","type":"order.placed","specversion":"1.0"${more}}`)

describe('a CloudEvent in binary mode', () => {
  it('has its attributes in headers, and its data as the payload', async () => {
    const event = await read(
      {
        ...REQUIRED,
        'content-type': 'application/json',
        'ce-subject': 'A-1',
        'ce-time': '2026-01-01T00:00:00.5+01:00',
        'ce-dataschema': 'urn:order',
      },
      '{"qty":1}',
    )
    expect(event).toMatchObject({
      id: '1',
      source: '/shop',
      type: 'order.placed',
      specversion: '1.0',
      subject: 'A-1',
      time: '2026-01-01T00:00:00.5+01:00',
      timeMs: Date.UTC(2025, 11, 31, 23, 0, 0, 500),
      datacontenttype: 'application/json',
      dataschema: 'urn:order',
      extensions: {},
    })
    expect(text(event.data!)).toBe('{"qty":1}')
  })

  it('reads its headers in any case, with a dash or an underscore, and the first of two', async () => {
    const event = await read([
      ['CE_ID', '1'],
      ['ce_source', '/shop'],
      ['Ce-Type', 'a'],
      ['ce-type', 'b'],
      ['cE-SpecVersion', '1.0'],
    ])
    expect(event).toMatchObject({ id: '1', source: '/shop', type: 'a' })
  })

  it('has no content type, and still is one', async () => {
    const event = await read(REQUIRED, 'x')
    expect(event.datacontenttype).toBeUndefined()
    expect(text(event.data!)).toBe('x')
  })

  it('names the type of its data in datacontenttype, else in the content type', async () => {
    expect((await read({ ...REQUIRED, 'ce-datacontenttype': 'a/b', 'content-type': 'c/d' })).datacontenttype).toBe(
      'a/b',
    )
    expect((await read({ ...REQUIRED, datacontenttype: 'a/b', 'content-type': 'c/d' })).datacontenttype).toBe('a/b')
    expect((await read({ ...REQUIRED, 'content-type': 'c/d' })).datacontenttype).toBe('c/d')
  })

  it('has everything else as extensions, sorted, and as headers to pass on', async () => {
    const event = await read({ ...REQUIRED, 'ce-zone': 'eu', 'ce-Actor': 'ada', 'ce-blank': ' ', trace: 'x' })
    expect(event.extensions).toEqual({ actor: 'ada', zone: 'eu' })
    expect(event.headers.entries()).toEqual([
      { key: 'ce-ext-actor', value: 'ada' },
      { key: 'ce-ext-zone', value: 'eu' },
    ])
  })

  it('may carry no data at all', async () => {
    expect((await read(REQUIRED)).data).toBeUndefined()
  })

  it.each(['id', 'source', 'type', 'specversion'])('is refused without %s, also when that is blank', async (name) => {
    await expect(read({ ...REQUIRED, [`ce-${name}`]: '  ' })).rejects.toThrow(`it has no "${name}"`)
    const { [`ce-${name}` as keyof typeof REQUIRED]: _, ...rest } = REQUIRED
    await expect(read(rest)).rejects.toBeInstanceOf(BadCloudEventError)
  })

  it('is refused when its time is no RFC 3339', async () => {
    await expect(read({ ...REQUIRED, 'ce-time': 'yesterday' })).rejects.toThrow(
      'its "time" is not RFC 3339: "yesterday"',
    )
  })
})

describe('a CloudEvent in structured mode', () => {
  it('is the payload', async () => {
    const event = await structured(
      ',"subject":"A-1","data":{"qty":9007199254740993},"zone":"eu","shard":12345678901234567890,"hot":true,"none":null',
    )
    expect(event).toMatchObject({
      id: '1',
      type: 'order.placed',
      subject: 'A-1',
      extensions: { hot: 'true', shard: '12345678901234567890', zone: 'eu' },
    })
    expect(Object.keys(event.extensions)).toEqual(['hot', 'shard', 'zone'])
    expect(text(event.data!)).toBe('{"qty":9007199254740993}')
  })

  it('is recognised by how its media type begins, whatever its case', async () => {
    for (const type of ['application/cloudevents', 'Application/CloudEvents+JSON']) {
      expect(await structured('', { 'content-type': type })).toMatchObject({ id: '1', data: undefined })
    }
  })

  it('has data in JSON as it is, other data as text, and binary data in base64', async () => {
    const dataOf = async (more: string) => text((await structured(more)).data ?? null)
    expect(await dataOf(',"data":"words"')).toBe('"words"')
    expect(await dataOf(',"datacontenttype":"application/vnd.a+json","data":"words"')).toBe('"words"')
    expect(await dataOf(',"datacontenttype":"text/xml","data":"<a/>"')).toBe('<a/>')
    expect(await dataOf(',"datacontenttype":"text/xml","data":{"a":1}')).toBe('{"a":1}')
    expect(await dataOf(',"data_base64":"aGk="')).toBe('hi')
    expect(await dataOf(',"data":null')).toBeNull()
  })

  it.each<[string, string]>([
    [',"time":"2026-13-01T00:00:00Z"', 'not RFC 3339'],
    [',"data_base64":"a!"', 'not base64'],
    [',"zone":{"a":1}', 'its attribute "zone"'],
  ])('is refused with %s', async (more, message) => {
    await expect(structured(more)).rejects.toThrow(message)
  })

  it('is refused in a format that is not read, and when it is a batch', async () => {
    await expect(structured('', { 'content-type': 'application/cloudevents+avro' })).rejects.toThrow(
      'only single events in JSON',
    )
    await expect(read({ 'content-type': 'application/cloudevents-batch+json' }, '[]')).rejects.toThrow(
      'only single events',
    )
    await expect(read(STRUCTURED, '[]')).rejects.toThrow()
    await expect(read(STRUCTURED, '{')).rejects.toThrow(SyntaxError)
    await expect(read(STRUCTURED, '{"id":"1"}')).rejects.toThrow('"source", "type", "specversion"')
  })
})

describe('the data of a CloudEvent', () => {
  it('is read by a codec, which sees the content type of the data', async () => {
    const types: (string | undefined)[] = []
    const codec = cloudEventsCodec({
      data: {
        decode(data, headers) {
          types.push(headers.get('content-type'))
          return JSON.parse(text(data)!)
        },
      },
    })
    const event = await codec.decode(
      bytes('{"id":"1","source":"s","type":"t","specversion":"1.0","datacontenttype":"a/b","data":[1]}'),
      new Headers(STRUCTURED),
    )
    expect(event.data).toEqual([1])
    await codec.decode(
      bytes('{"id":"1","source":"s","type":"t","specversion":"1.0","data":[1]}'),
      new Headers(STRUCTURED),
    )
    await codec.decode(bytes('[2]'), new Headers({ ...REQUIRED, 'content-type': 'c/d' }))
    expect(types).toEqual(['a/b', undefined, 'c/d'])
  })

  it('that cannot be read makes the event poison', async () => {
    const registry = new CodecRegistry().setDefault(cloudEventsCodec({ data: jsonCodec() }))
    const error = await registry.decode(messageOf({ headers: REQUIRED, value: '{' })).catch((e: unknown) => e)
    expect(isPoison(error)).toBe(true)
    const bad = await registry.decode(messageOf({ value: '{}' })).catch((e: unknown) => e)
    expect(isPoison(bad)).toBe(true)
  })

  it('needs a codec that is one', () => {
    expect(() => cloudEventsCodec({ data: {} as never })).toThrow('cloudEventsCodec.data')
    expect(() => cloudEventsCodec({ date: jsonCodec() } as never)).toThrow('"data"')
  })
})

describe('a timestamp of RFC 3339', () => {
  it.each<[string, number]>([
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01t00:00:00.123999z', 123],
    ['2024-02-29T23:59:59+00:00', Date.UTC(2024, 1, 29, 23, 59, 59)],
    ['1970-01-01T01:30:00+01:30', 0],
    ['1969-12-31T22:00:00-02:00', 0],
    ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1)],
    ['0001-01-01T00:00:00Z', -62_135_596_800_000],
  ])('%s is %s', (stamp, at) => {
    expect(parseRfc3339(stamp)).toBe(at)
  })

  it.each([
    '',
    '2026-01-01',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00Z',
    '2026-01-01T00:00:00',
    '2026-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:61Z',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00.Z',
    'Thu, 01 Jan 2026 00:00:00 GMT',
  ])('"%s" is none', (stamp) => {
    expect(parseRfc3339(stamp)).toBeUndefined()
  })
})
