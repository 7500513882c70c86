import { describe, expect, it } from 'vitest'
import { ack } from '../../../src/core/stream/result.js'
import { CodecRegistry, jsonCodec } from '../../../src/source/codecs/codec-registry.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import type { HopperOptions } from '../../../src/source/hopper/hopper-options.js'
import { dlq } from '../../../src/source/middleware/dead-letter.js'
import { MemDeadLetter } from '../../../src/source/middleware/mem-dead-letter.js'
import { retry } from '../../../src/source/middleware/retry.js'
import { Harness } from '../../../src/testing/harness.js'
import { numbered } from './support.js'

describe('a hopper that cannot work as asked', () => {
  it.each<[string, object, string]>([
    ['a misspelt option', { concurency: 2 }, 'Did you mean "concurrency"?'],
    ['no concurrency', { concurrency: 0 }, 'hopper.concurrency must be an integer >= 1'],
    ['half a window', { maxInFlight: 0.5 }, 'hopper.maxInFlight must be an integer'],
    ['no lanes', { maxLanes: 0 }, 'hopper.maxLanes must be'],
    ['a lane that is no function', { laneOf: 'key' }, 'hopper.laneOf must be a function'],
    ['an unknown order', { ordering: 'loose' }, "hopper.ordering must be 'relaxed' or 'strict'"],
    ['no deliveries', { maxDeliveries: 0 }, 'hopper.maxDeliveries must be'],
    ['a negative deadline', { deadlineMs: -1 }, 'hopper.deadlineMs must be'],
    ['no time to settle', { settle: { timeoutMs: 0 } }, 'hopper.settle.timeoutMs must be'],
    ['a misspelt option inside', { settle: { timeout: 5 } }, 'is not an option of hopper.settle'],
    ['no tries to fetch', { fetchRetry: { attempts: 0 } }, 'hopper.fetchRetry.attempts must be'],
    ['a handler without time', { handlerTimeoutMs: 0 }, 'hopper.handlerTimeoutMs must be'],
    ['codec and registry', { codec: jsonCodec(), registry: new CodecRegistry() }, 'hopper.codec must be absent'],
    ['a registry that is none', { registry: {} }, 'hopper.registry must be a CodecRegistry'],
    ['a codec that is none', { codec: {} }, 'decode'],
    ['middleware that is no list', { middleware: retry() }, 'hopper.middleware must be an array'],
    ['middleware that is none', { middleware: [{}] }, 'hopper.middleware[0] must be a function'],
    ['retry outside dlq', { middleware: [retry(), dlq(new MemDeadLetter())] }, 'List dlq before retry'],
    ['retry twice', { middleware: [retry(), retry()] }, 'listed twice'],
    ['a clock that is none', { clock: Date }, 'hopper.clock must be a Clock'],
    ['a logger without a voice', { logger: { warn: () => undefined } }, 'hopper.logger.error'],
  ])('says so when it is made: %s', (_name, options, message) => {
    expect(() => new Hopper(options as HopperOptions)).toThrow(message)
  })

  it('takes the order of middleware as it is when the caller says that it is intended', () => {
    const middleware = [retry(), dlq(new MemDeadLetter())]
    expect(() => new Hopper({ middleware, allowAnyOrder: true })).not.toThrow()
  })

  it('leaves out middleware that is not there', async () => {
    const harness = new Harness({ hopper: { middleware: [null, undefined, retry()] }, messages: numbered(1) })
    await harness.run(() => ack())
    harness.assertCounts({ acked: 1 })
  })

  it('is not taken down by a logger that throws', async () => {
    const logger = {
      warn: () => {
        throw new Error('disk full')
      },
      error: () => {
        throw new Error('disk full')
      },
    }
    const harness = new Harness({
      hopper: { logger, concurrency: 2, laneOf: () => 1 as unknown as string },
      messages: numbered(2),
    })
    await harness.run(() => ack())
    harness.assertCounts({ acked: 2 })
  })
})
