import { describe, expect, it } from 'vitest'
import { isPoison } from '../../../src/core/failure/failure-predicates.js'
import { ack } from '../../../src/core/stream/result.js'
import { CodecRegistry } from '../../../src/source/codecs/codec-registry.js'
import {
  BadChangeEventError,
  DEBEZIUM_CONTENT_TYPE,
  type DebeziumChange,
  debeziumCodec,
  imageOf,
  MissingImageError,
} from '../../../src/source/codecs/debezium.js'
import { decoded } from '../../../src/source/message/decoded.js'
import { Headers } from '../../../src/source/message/headers.js'
import { dlq } from '../../../src/source/middleware/dead-letter.js'
import { MemDeadLetter } from '../../../src/source/middleware/mem-dead-letter.js'
import { Harness } from '../../../src/testing/harness.js'
import { bytes, messageOf } from '../message-of.js'

const read = (payload: string | Uint8Array) => debeziumCodec().decode(bytes(payload), Headers.empty) as DebeziumChange

const SOURCE = `{"version":"2.5","connector":"postgresql","name":"shop","ts_ms":1,"snapshot":"false","db":"shop",
  "schema":"public","table":"orders","txId":9007199254740993,"lsn":18446744073709551615,"xmin":null}`

describe('a change event of Debezium', () => {
  const update = read(
    `{"before":{"id":1,"qty":1},"after":{"id":1,"qty":9007199254740993},"source":${SOURCE},"op":"u","ts_ms":1700000000123}`,
  )

  it('has its operation, its images as they were written, and its time', () => {
    expect(update).toMatchObject({
      operation: 'update',
      before: '{"id":1,"qty":1}',
      after: '{"id":1,"qty":9007199254740993}',
      message: undefined,
      tsMs: 1_700_000_000_123,
    })
    expect(imageOf(update, 'before')).toEqual({ id: 1, qty: 1 })
    expect(imageOf(update, 'before', (row) => (row as { id: number }).id)).toBe(1)
  })

  it('says where it comes from, with every digit of lsn and txId', () => {
    expect(update.source).toMatchObject({
      connector: 'postgresql',
      database: 'shop',
      schema: 'public',
      table: 'orders',
      isSnapshot: false,
      lsn: '18446744073709551615',
      txId: '9007199254740993',
    })
    expect(JSON.parse(update.source.json)).toMatchObject({ version: '2.5' })
  })

  it('has headers in a fixed order, those that say something', () => {
    expect(update.headers.entries()).toEqual([
      { key: 'cdc-op', value: 'update' },
      { key: 'cdc-connector', value: 'postgresql' },
      { key: 'cdc-database', value: 'shop' },
      { key: 'cdc-schema', value: 'public' },
      { key: 'cdc-table', value: 'orders' },
      { key: 'cdc-lsn', value: '18446744073709551615' },
      { key: 'cdc-txid', value: '9007199254740993' },
    ])
    const bare = read('{"op":"r","after":{},"source":{"connector":"mysql","snapshot":true,"db":"","txId":"a1"}}')
    expect(bare.headers.entries().map((h) => `${h.key}=${h.value}`)).toEqual([
      'cdc-op=read',
      'cdc-connector=mysql',
      'cdc-snapshot=true',
      'cdc-txid=a1',
    ])
  })

  it.each([
    ['c', 'create'],
    ['r', 'read'],
    ['u', 'update'],
    ['d', 'delete'],
    ['t', 'truncate'],
    ['m', 'message'],
  ])('op %s is %s', (op, operation) => {
    expect(read(`{"op":"${op}"}`).operation).toBe(operation)
  })

  it.each<[string, boolean]>([
    ['true', true],
    ['false', false],
    ['"true"', true],
    ['"first"', true],
    ['"incremental"', true],
    ['"false"', false],
    ['""', false],
    ['null', false],
    ['1', false],
  ])('snapshot %s is %s', (snapshot, isSnapshot) => {
    expect(read(`{"op":"c","source":{"snapshot":${snapshot}}}`).source.isSnapshot).toBe(isSnapshot)
  })

  it('may come in the wrapper of Kafka Connect', () => {
    const wrapped = read(
      `{"schema":{"type":"struct"},"payload":{"op":"d","before":{"id":1},"after":null,"source":${SOURCE}}}`,
    )
    expect(wrapped).toMatchObject({ operation: 'delete', before: '{"id":1}', after: undefined })
    expect(wrapped.source.lsn).toBe('18446744073709551615')
  })

  it('may be a logical message, whose block is kept', () => {
    expect(read('{"op":"m","message":{"prefix":"p","content":"aGk="}}').message).toBe('{"prefix":"p","content":"aGk="}')
  })

  it.each(['', 'null', '{"schema":null,"payload":null}'])(
    'is a tombstone when there is nothing in it: "%s"',
    (payload) => {
      const event = read(payload)
      expect(event).toMatchObject({ operation: 'tombstone', before: undefined, after: undefined, tsMs: undefined })
      expect(event.headers.entries()).toEqual([{ key: 'cdc-op', value: 'tombstone' }])
    },
  )

  it('without the image that is asked for says so, and that is poison', () => {
    const event = read(`{"op":"u","before":null,"after":{"id":1},"source":${SOURCE}}`)
    expect(() => imageOf(event, 'before')).toThrow(MissingImageError)
    expect(() => imageOf(event, 'before')).toThrow('update on "orders"')
    expect(() => imageOf(read('{"op":"d"}'), 'after')).toThrow(MissingImageError)
    expect(isPoison(new MissingImageError(event, 'before'))).toBe(true)
  })
})

describe('a payload that is no change event', () => {
  it.each([
    ['{"op":"x"}', 'its "op" is "x"'],
    ['{"op":"constructor"}', 'its "op" is "constructor"'],
    ['{"after":{}}', 'it has no "op"'],
    ['{"op":null}', 'it has no "op"'],
    ['{"schema":{},"payload":[]}', 'its "payload" is no object'],
    ['{"op":"c","source":"here"}', 'its "source" is no object'],
  ])('%s is refused: %s', (payload, text) => {
    expect(() => read(payload)).toThrow(BadChangeEventError)
    expect(() => read(payload)).toThrow(text)
  })

  it.each(['[]', '5', '{"op":"c"', 'garbage'])('%s is refused', (payload) => {
    expect(() => read(payload)).toThrow()
  })

  it('is refused when it is no UTF-8', () => {
    expect(() => read(Uint8Array.of(0x7b, 0xff, 0x7d))).toThrow()
  })
})

describe('the codec in a registry and a hopper', () => {
  const registry = new CodecRegistry().register(DEBEZIUM_CONTENT_TYPE, debeziumCodec())

  it('is found by its content type, before plain JSON', async () => {
    registry.register('application/json', { decode: () => 'plain' })
    const headers = { 'content-type': 'Application/vnd.debezium.CDC+json; charset=utf-8' }
    expect(await registry.decode(messageOf({ headers, value: '{"op":"c"}' }))).toMatchObject({ operation: 'create' })
  })

  it('lets a tombstone through, and dead-letters what is no change event', async () => {
    const letters = new MemDeadLetter()
    const headers = { 'content-type': DEBEZIUM_CONTENT_TYPE }
    const harness = new Harness({
      hopper: { registry, middleware: [dlq(letters)] },
      messages: [{ headers }, { headers, value: '{"op":"?"}' }],
    })
    const seen: unknown[] = []
    await harness.run((_ctx, message) => {
      seen.push((decoded<DebeziumChange>(message) as { value: DebeziumChange }).value.operation)
      return ack()
    })
    expect(seen).toEqual(['tombstone'])
    harness.assertCounts({ acked: 1, term: 1 })
    expect(letters.records()).toMatchObject([{ reason: 'poison', errorName: 'DecodeError' }])
  })
})
