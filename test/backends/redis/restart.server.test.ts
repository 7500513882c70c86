import { afterEach, describe, expect, it } from 'vitest'
import { type RedisBackend, redisBackend } from '../../../src/backends/redis/index.js'
import { RedisSubscriptions } from '../../../src/drivers/redis/index.js'
import { createWork, defineWork } from '../../../src/index.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { startRedis } from '../../servers/index.js'
import { ledgerOn } from '../ledger-on.js'
import { claim, enqueue, envelope, finish } from '../native.js'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function serverAndBackend(commandTimeoutMs = 5_000) {
  const server = await startRedis({ appendonly: true, appendfsync: 'always' })
  closing.unshift(() => server.stop())
  const errors: Error[] = []
  const open = (): RedisBackend => {
    const backend = redisBackend({ url: server.url, commandTimeoutMs, onError: (error) => errors.push(error) })
    closing.unshift(() => backend.close())
    return backend
  }
  return { server, open, errors }
}

const moment = () => new Promise((resolve) => setTimeout(resolve, 20))
const double = defineWork('double', (n: number, ctx) => ctx.result(n * 2))

// Real servers are killed and started here, so time is real.
describe('a Redis server that was killed and came back', () => {
  it('is connected to again, with its subscriptions: work from elsewhere starts without waiting for a poll', async () => {
    const { server, open, errors } = await serverAndBackend()
    const worker = createWork({ backend: open(), work: [double] as const, pollInterval: 600_000 })
    worker.start()
    closing.unshift(() => worker.stop())
    const producer = createWork({ backend: open(), work: [double] as const, autoStart: false })
    expect(await producer.enqueue(double(1)).result()).toBe(2)

    for (let round = 2; round <= 3; round += 1) {
      await server.restart('SIGKILL')
      const from = performance.now()
      expect(await producer.enqueue(double(round)).result()).toBe(round * 2)
      // Far less than the poll: it was notified, or polled because it had lost its connection.
      expect(performance.now() - from).toBeLessThan(60_000)
    }
    expect(errors.length).toBeGreaterThan(0)
  })

  it('has everything that was accepted, and the same settlement can be sent again', async () => {
    const { server, open } = await serverAndBackend()
    const ledger = ledgerOn(open())
    await ledger.commit(Array.from({ length: 50 }, (_, i) => enqueue(envelope(`i${i}`))))
    const items = await claim(ledger)
    await ledger.commit(items.slice(0, 25).map((item) => finish(item)))
    await server.restart('SIGKILL')

    const results = await ledger.commit(items.map((item) => finish(item)))

    expect(results.map(({ kind }) => kind)).toEqual(items.map((_, i) => (i < 25 ? 'repeated' : 'applied')))
    expect(await ledger.inspect!.counts()).toEqual([{ queue: 'default', type: 't', counts: { completed: 50 } }])
  })
})

describe('a Redis server that dies before it answers', () => {
  it('leaves the outcome unknown, and says so by that code', async () => {
    const { server, open } = await serverAndBackend()
    const backend = open()
    const ledger = ledgerOn(backend)
    await ledger.commit([enqueue(envelope('a'))])
    server.pause()
    const calls = [ledger.commit([enqueue(envelope('b'))]), backend.pubsub.publish('hello'), backend.store.get('k')]
    const answers = Promise.allSettled(calls)
    // What was sent is in the socket of a server that reads no more.
    await moment()
    await server.kill()

    for (const answer of await answers)
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'OUTCOME_UNKNOWN' } })
  })
})

describe('a Redis backend that is closed while a call is under way', () => {
  it('rejects that call as closed', async () => {
    const { server, open } = await serverAndBackend()
    const backend = open()
    await ledgerOn(backend).commit([enqueue(envelope('a'))])
    server.pause()
    const answer = ledgerOn(backend).commit([enqueue(envelope('b'))])
    const refused = expect(answer).rejects.toMatchObject({ code: 'REDIS_CLOSED' })
    await moment()
    await backend.close()
    await refused
    server.resume()
  })
})

describe('a Redis server that hangs', () => {
  it('is not reported after a close: not by a ping that was under way, and no other follows', async () => {
    const { server } = await serverAndBackend()
    const clock = new FakeClock()
    const errors: Error[] = []
    const subscriptions = new RedisSubscriptions({
      ...{ address: { url: server.url }, commandTimeoutMs: 2_000, clock },
      onError: (error) => errors.push(error),
      onMissed: () => undefined,
    })
    subscriptions.on('channel', () => undefined)
    await subscriptions.settled()
    server.pause()
    await clock.advance(15_000)
    await subscriptions.close()
    await clock.advance(2_000)
    server.resume()
    expect(errors).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it('is listened to as soon as it goes on, even by a subscriber whose first try failed while it hung', async () => {
    const { server, open, errors } = await serverAndBackend(200)
    server.pause()
    const received: string[] = []
    open().pubsub.subscribe((message) => received.push(message))
    for (let i = 0; i < 200 && !errors.some(({ message }) => message.includes('no connection')); i += 1) await moment()
    expect(errors).toMatchObject([{ code: 'REDIS_UNREACHABLE' }])
    server.resume()

    const { pubsub } = open()
    for (let i = 0; i < 200 && received.length === 0; i += 1) {
      await pubsub.publish('hello').catch(() => undefined)
      await moment()
    }
    expect(received[0]).toBe('hello')
  })

  it('does not block a call forever: it rejects, and the next one gets through when the server goes on', async () => {
    const { server, open } = await serverAndBackend(300)
    const ledger = ledgerOn(open())
    await ledger.commit([enqueue(envelope('a'))])
    server.pause()
    await expect(ledger.commit([enqueue(envelope('b'))])).rejects.toMatchObject({
      code: 'REDIS_TIMEOUT',
      message: expect.stringContaining('increment'),
    })
    server.resume()
    // The connection is made anew; that takes a moment.
    for (let tries = 0; ; tries += 1) {
      try {
        await ledger.commit([enqueue(envelope('b'))])
        break
      } catch (error) {
        if (tries > 20) throw error
      }
    }
    expect((await claim(ledger)).map(({ lease }) => lease.id)).toEqual(['a', 'b'])
  })
})
