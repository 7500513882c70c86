import { describe, expect, it } from 'vitest'
import { DecodeError } from '../../../src/core/failure/failure-errors.js'
import { ack } from '../../../src/core/stream/result.js'
import { CodecRegistry, jsonCodec } from '../../../src/source/codecs/codec-registry.js'
import { decoded } from '../../../src/source/message/decoded.js'
import { dlq } from '../../../src/source/middleware/dead-letter.js'
import { MemDeadLetter } from '../../../src/source/middleware/mem-dead-letter.js'
import { Harness } from '../../../src/testing/harness.js'

describe('a hopper with a codec', () => {
  // S35
  it('shows the handler what was decoded', async () => {
    const harness = new Harness({ hopper: { codec: jsonCodec() }, messages: [{ value: '{"id":"A-1"}' }] })
    let seen: unknown
    await harness.run((_ctx, message) => {
      seen = decoded(message)
      return ack()
    })
    expect(seen).toEqual({ ok: true, value: { id: 'A-1' } })
    harness.assertCounts({ acked: 1 })
  })

  // S35
  it('terminates what cannot be decoded, without the handler', async () => {
    const harness = new Harness({ hopper: { codec: jsonCodec() }, messages: [{ value: '{bad json' }] })
    let runs = 0
    await harness.run(() => {
      runs += 1
      return ack()
    })
    expect(runs).toBe(0)
    harness.assertCounts({ term: 1 })
    const [entry] = harness.ledger.entries()
    expect(entry?.result).toMatchObject({ class: 'poison', error: expect.any(DecodeError) })
  })

  // S35, W6
  it('sends it through the middleware, so that it is dead-lettered', async () => {
    const letters = new MemDeadLetter()
    const harness = new Harness({
      hopper: { name: 'shop', codec: jsonCodec(), middleware: [dlq(letters)] },
      messages: [{ key: 'k', value: '{bad json', subject: 'orders' }],
    })
    await harness.run(() => ack())
    expect(letters.records()).toMatchObject([
      { reason: 'poison', errorName: 'DecodeError', subject: 'orders', source: 'shop' },
    ])
    expect(harness.ledger.entries()[0]?.result).toMatchObject({ action: 'term', deadLettered: true })
  })

  it('chooses it by content type, and has none for an unknown one', async () => {
    const registry = new CodecRegistry().register('application/json', jsonCodec())
    const harness = new Harness({
      hopper: { registry },
      messages: [
        { value: '1', headers: [['Content-Type', 'Application/JSON; charset=utf-8']] },
        { value: '1', headers: [['content-type', 'text/plain']] },
      ],
    })
    const seen: unknown[] = []
    await harness.run((_ctx, message) => {
      seen.push(decoded(message))
      return ack()
    })
    expect(seen).toEqual([{ ok: true, value: 1 }])
    harness.assertCounts({ acked: 1, term: 1 })
  })
})

describe('a hopper without a codec', () => {
  it('hands out the raw message', async () => {
    const harness = new Harness({ messages: [{ value: '{}' }] })
    let seen: unknown
    await harness.run((_ctx, message) => {
      seen = decoded(message)
      return ack()
    })
    expect(seen).toEqual({ ok: false })
  })
})
