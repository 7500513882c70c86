import { connect, headers, type NatsConnection } from '@nats-io/transport-node'
import { ack, dlq, type Handler, Hopper, type HopperOptions, type Message, nak, retry, term } from 'millrace/source'
import { JetStreamInlet, type JetStreamInletOptions, JetStreamOutlet } from 'millrace/source/nats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startNats } from '../../servers/index.js'

let server: Awaited<ReturnType<typeof startNats>>
let nats: NatsConnection
const inlets: JetStreamInlet[] = []

beforeAll(async () => {
  server = await startNats()
  nats = await connect({ servers: server.url, maxReconnectAttempts: -1 })
})
afterAll(async () => {
  await Promise.all(inlets.map((inlet) => inlet.close()))
  await nats.close()
  await server.stop()
})

let streams = 0
async function freshStream(): Promise<{ readonly name: string; readonly subject: string }> {
  streams += 1
  const [name, subject] = [`ORDERS_${streams}`, `orders.${streams}`]
  await nats.request(`$JS.API.STREAM.CREATE.${name}`, JSON.stringify({ name, subjects: [subject], storage: 'file' }))
  return { name, subject }
}
const open = (stream: string, options: Partial<JetStreamInletOptions> = {}): JetStreamInlet => {
  const inlet = new JetStreamInlet({
    servers: server.url,
    stream,
    durable: 'shipping',
    idlePollMs: 200,
    onError: () => undefined,
    ...options,
  })
  inlets.push(inlet)
  return inlet
}
const signal = new AbortController().signal
const textOf = (message: Message) => new TextDecoder().decode(message.value)

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 30_000; !(await isTrue()); ) {
    if (Date.now() > end) throw new Error('it did not come true within 30 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function consume(
  inlet: JetStreamInlet,
  options: HopperOptions,
  handler: Handler,
  isOver: () => boolean | Promise<boolean>,
) {
  const hopper = new Hopper({ lagIntervalMs: 0, ...options })
  const running = hopper.receive(inlet, { topics: [] }, handler)
  await Promise.race([until(isOver), running])
  await hopper.close()
  return running
}

describe('a stream of JetStream', () => {
  it('keeps terminated messages with their reasons, once, and takes them back', async () => {
    const { name, subject } = await freshStream()
    const inlet = open(name, { deadLetters: `${name}_DEAD` })
    const sent = headers()
    sent.append('x-trace', 'abc')
    sent.append('Crucible-Key', 'customer-7')
    await nats.request(subject, 'bad', { headers: sent, timeout: 5_000 })
    const options = { name: 'billing', middleware: [dlq(inlet.letters), retry({ maxAttempts: 2, backoff: () => 1 })] }
    await consume(
      inlet,
      options,
      () => nak(new Error('no such\narticle')),
      async () => (await inlet.letters.count()) === 1,
    )
    const [letter, ...others] = await inlet.letters.list()
    expect(others).toEqual([])
    expect(letter).toMatchObject({ class: 'retryable', error: 'no such article', errorName: 'Error', attempts: 2 })
    expect([textOf(letter as never), new TextDecoder().decode(letter!.key!)]).toEqual(['bad', 'customer-7'])
    expect(await inlet.explain()).toMatchObject({
      stream: name,
      unsettled: 0,
      letters: { count: 1, reasons: { 'retryable: Error': 1 } },
    })
    expect(await inlet.letters.redrive([letter!.id, letter!.id])).toBe(1)
    const seen: unknown[] = []
    await consume(
      open(name),
      {},
      (_, message) => {
        seen.push([textOf(message), message.headers.get('x-trace'), message.deliveryCount])
        return ack()
      },
      () => seen.length === 1,
    )
    expect(seen).toEqual([['bad', 'abc', 1]])
    expect(await inlet.letters.count()).toBe(0)
    expect(await inlet.letters.discard(['99'])).toBe(0)
  })

  it('writes one letter although its first settlement seemed to fail', async () => {
    const { name, subject } = await freshStream()
    const inlet = open(name, { deadLetters: `${name}_DEAD`, leaseMs: 400 })
    await nats.request(subject, 'bad')
    const sub = await inlet.subscribe()
    const first = await sub.next({ signal })
    // The letter is stored, and the process is gone before the message ends.
    await (inlet.letters as unknown as { write(m: Message, words: readonly unknown[]): Promise<void> }).write(first, [])
    const again = await sub.next({ signal })
    await sub.settle(again, term('bad data'), { signal })
    expect(await inlet.letters.count()).toBe(1)
  })

  it('goes on when its server was restarted', async () => {
    const { name, subject } = await freshStream()
    const seen: string[] = []
    const hopper = new Hopper({ lagIntervalMs: 0, settle: { attempts: 10 } })
    const running = hopper.receive(open(name, { leaseMs: 2_000 }), { topics: [] }, (_, message) => {
      seen.push(textOf(message))
      return ack()
    })
    await nats.request(subject, 'before')
    await until(() => seen.length === 1)
    await server.kill()
    await server.restart()
    await until(async () =>
      nats.request(subject, 'after', { timeout: 1_000 }).then(
        () => true,
        () => false,
      ),
    )
    await until(() => seen.includes('after'))
    await hopper.close()
    expect((await running).acked).toBeGreaterThanOrEqual(2)
  })

  it('goes on when its consumer was removed', async () => {
    const { name, subject } = await freshStream()
    const seen: string[] = []
    const hopper = new Hopper({ lagIntervalMs: 0 })
    const running = hopper.receive(open(name), { topics: [] }, (_, message) => {
      seen.push(textOf(message))
      return ack()
    })
    await nats.request(subject, 'a')
    await until(() => seen.length === 1)
    await nats.request(`$JS.API.CONSUMER.DELETE.${name}.shipping`)
    await nats.request(subject, 'b')
    await until(() => seen.includes('b'))
    await hopper.close()
    await running
  })

  it('is paused and resumed, and gives back what it had fetched when it is closed', async () => {
    const { name, subject } = await freshStream()
    const inlet = open(name, { leaseMs: 30_000 })
    const sub = await inlet.subscribe()
    inlet.pause()
    await nats.request(subject, 'a')
    const waiting = sub.next({ signal })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(await inlet.explain()).toMatchObject({ waiting: 1, isPaused: true })
    inlet.resume()
    await sub.settle(await waiting, ack(), { signal })
    // An open pull takes what comes now, and nobody asks for it.
    const stop = new AbortController()
    const aborted = sub.next({ signal: stop.signal }).catch(() => 'aborted')
    await new Promise((resolve) => setTimeout(resolve, 20))
    stop.abort()
    expect(await aborted).toBe('aborted')
    await nats.request(subject, 'b')
    await inlet.close()
    const other = await open(name).subscribe()
    expect(textOf(await other.next({ signal }))).toBe('b')
  })

  it('says what is wrong where there is no stream', async () => {
    const inlet = open('NO_SUCH_STREAM')
    await expect(inlet.subscribe()).rejects.toMatchObject({ code: 'JETSTREAM_REFUSED', status: 404 })
  })
})

describe('an outlet on JetStream', () => {
  it('publishes once for each id', async () => {
    const { name, subject } = await freshStream()
    const outlet = new JetStreamOutlet({ servers: server.url, subject })
    await outlet.publish({ id: 'a', value: 'one', key: 'k', headers: { 'x-trace': 'abc' } })
    await outlet.publish({ id: 'a', value: 'one' })
    await outlet.publish({ id: 'b', value: 'two' })
    const nowhere = new JetStreamOutlet({ servers: server.url, subject: 'nobody.listens', timeoutMs: 500 })
    await expect(nowhere.publish({ id: 'a', value: 'x' })).rejects.toMatchObject({ code: 'JETSTREAM_NOT_STORED' })
    await Promise.all([outlet.close(), nowhere.close()])
    const seen: unknown[] = []
    await consume(
      open(name),
      {},
      (_, message) => {
        seen.push([textOf(message), message.headers.get('message-id')])
        return ack()
      },
      () => seen.length === 2,
    )
    expect(seen).toEqual([
      ['one', 'a'],
      ['two', 'b'],
    ])
  })
})
