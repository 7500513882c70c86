import {
  ack,
  Hopper,
  inProgress,
  type Message,
  manual,
  nak,
  nakAfter,
  reject,
  type Subscription,
  term,
} from 'millrace/source'
import { JetStreamInlet, type JetStreamInletOptions, natsMessage } from 'millrace/source/nats'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { FakeConnection } from './fake-connection.js'

const signal = new AbortController().signal

async function opened(connection: FakeConnection, options: Partial<JetStreamInletOptions> = {}) {
  const inlet = new JetStreamInlet({ connection, stream: 'ORDERS', durable: 'shipping', ...options })
  return { inlet, sub: await inlet.subscribe() }
}

async function delivered(connection: FakeConnection, sub: Subscription, ...values: string[]): Promise<Message[]> {
  values.forEach((value, i) => void connection.add(value, i + 1))
  const messages: Message[] = []
  for (const _ of values) messages.push(await sub.next({ signal }))
  return messages
}

describe('what a result says to JetStream', () => {
  it('is one word for each delivery, and nothing where its handler has settled it', async () => {
    const connection = new FakeConnection()
    const { sub } = await opened(connection)
    const results = [ack(), nak(new Error('no')), nakAfter(5_000), term('bad data'), manual(), inProgress()]
    const messages = await delivered(connection, sub, ...results.map((_, i) => `message ${i}`))
    for (const [i, result] of results.entries()) await sub.settle(messages[i]!, result, { signal })
    expect(connection.words).toEqual(['1 +ACK', '2 -NAK', '3 -NAK {"delay":5000000000}', '4 +TERM', '6 +WPI'])
  })

  it('gives the reason of a term to servers that know reasons', async () => {
    const connection = new FakeConnection('2.11.0')
    const { sub } = await opened(connection)
    const [message] = await delivered(connection, sub, 'a')
    await sub.settle(message!, term('bad data'), { signal })
    expect(connection.words).toEqual(['1 +TERM bad data'])
  })

  it('stores the dead letter before it ends the message, under an id of its own', async () => {
    const connection = new FakeConnection()
    const { sub } = await opened(connection, { deadLetters: 'DEAD' })
    const [message] = await delivered(connection, sub, 'a')
    await sub.settle(message!, reject(new RangeError('too late')), { signal })
    expect(connection.stored).toEqual([
      {
        subject: 'dead.letters',
        headers: {
          'crucible-dlq-original-id': '1',
          'crucible-dlq-stream': 'ORDERS',
          'crucible-dlq-class': 'invalid_for_state',
          'crucible-dlq-error': 'too late',
          'crucible-dlq-error-name': 'RangeError',
          'crucible-dlq-attempts': '1',
          'crucible-dlq-group': 'shipping',
          'crucible-dlq-subject': 'orders.new',
          'Nats-Msg-Id': 'ORDERS:shipping:1',
        },
      },
    ])
    expect(connection.words).toEqual(['1 +TERM'])
  })

  it('is not sent once the lease is over: the server would take it for the one that holds the message now', async () => {
    const clock = new FakeClock()
    const connection = new FakeConnection()
    const { sub } = await opened(connection, { clock, leaseMs: 1_000 })
    const [held, late] = await delivered(connection, sub, 'a', 'b')
    await clock.advance(900)
    expect(await sub.capability('leaseExtender')!.extend(held!)).toBe(true)
    await clock.advance(200)
    await sub.settle(held!, ack(), { signal })
    await expect(sub.settle(late!, ack(), { signal })).rejects.toMatchObject({ code: 'LEASE_LOST' })
    expect(await sub.capability('leaseExtender')!.extend(late!)).toBe(false)
    expect(connection.words).toEqual(['1 +WPI', '1 +ACK'])
  })

  it('is waited for no longer than its signal says, and may then be said again', async () => {
    const connection = new FakeConnection()
    const { sub } = await opened(connection)
    const [message] = await delivered(connection, sub, 'a')
    connection.unanswered = 1
    const stop = new AbortController()
    const settling = sub.settle(message!, ack(), { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(settling).rejects.toThrow('enough')
    await sub.settle(message!, ack(), { signal })
    expect(connection.words).toEqual(['1 +ACK', '1 +ACK'])
  })

  it('is said again by a hopper whose try had no answer in its time', async () => {
    const clock = new FakeClock()
    const connection = new FakeConnection()
    const inlet = new JetStreamInlet({ connection, clock, stream: 'ORDERS', durable: 'shipping' })
    connection.add('a', 1)
    connection.unanswered = 1
    const hopper = new Hopper({ clock, lagIntervalMs: 0, settle: { timeoutMs: 1_000 } })
    const running = hopper.receive(inlet, { topics: [] }, () => ack())
    for (let i = 0; i < 40 && connection.words.length < 2; i += 1) await clock.advance(100)
    const closing = hopper.close()
    await clock.advance(5_000)
    await closing
    expect(await running).toMatchObject({ acked: 1, settleFailures: 0 })
    expect(connection.words).toEqual(['1 +ACK', '1 +ACK'])
  })
})

describe('a consumer of JetStream', () => {
  it('is durable, with explicit acknowledgements, and without a limit of the server', async () => {
    const connection = new FakeConnection()
    await opened(connection, { filter: 'orders.eu', from: 'end', leaseMs: 5_000, maxUnsettled: 7 })
    expect(connection.consumers).toEqual([
      {
        durable_name: 'shipping',
        ack_policy: 'explicit',
        replay_policy: 'instant',
        ack_wait: 5_000_000_000,
        max_deliver: -1,
        max_ack_pending: 7,
        filter_subject: 'orders.eu',
        deliver_policy: 'new',
      },
    ])
  })

  it('that is there is taken as it is, and gets the lease of the inlet', async () => {
    const connection = new FakeConnection()
    await opened(connection, { leaseMs: 5_000 })
    await opened(connection, { leaseMs: 5_000 })
    expect(connection.consumers.length).toBe(1)
    await opened(connection, { leaseMs: 6_000 })
    expect(connection.consumers[1]).toEqual({ ...connection.consumers[0], ack_wait: 6_000_000_000 })
  })

  it('is made anew by a seek, and what was out before settles nothing', async () => {
    const connection = new FakeConnection()
    const { sub } = await opened(connection)
    const messages = await delivered(connection, sub, ...Array.from({ length: 10 }, (_, i) => String(i + 1)))
    const { seekToCursor, seekToStart, seekToEnd, seekToTime } = sub.capability('seekable')!
    await seekToCursor(messages[9]!.cursor)
    expect(connection.consumers.at(-1)).toMatchObject({ deliver_policy: 'by_start_sequence', opt_start_seq: 11 })
    await expect(sub.settle(messages[0]!, ack(), { signal })).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await seekToStart()
    expect(connection.consumers.at(-1)).toMatchObject({ deliver_policy: 'all' })
    await seekToEnd()
    expect(connection.consumers.at(-1)).toMatchObject({ deliver_policy: 'new' })
    await seekToTime(0)
    expect(connection.consumers.at(-1)).toMatchObject({ opt_start_time: '1970-01-01T00:00:00.000Z' })
    expect(connection.words).toEqual([])
  })
})

describe('a message of JetStream', () => {
  it('has its sequence, subject, time and key', async () => {
    const connection = new FakeConnection()
    const { sub } = await opened(connection)
    const [message] = await delivered(connection, sub, 'a')
    expect(message).toMatchObject({ subject: 'orders.new', partitionKey: '', deliveryCount: 1 })
    expect([message!.cursor.toString(), message!.timestampMs]).toEqual(['1', 1_700_000_000_000])
    expect(new TextDecoder().decode(message!.key!)).toBe('orders.new')
    expect(message!.as(natsMessage)?.subject).toBe('orders.new')
    const other = new FakeConnection()
    const { sub: keyed } = await opened(other, { keyOf: () => undefined })
    expect((await delivered(other, keyed, 'a'))[0]!.key).toBeNull()
  })
})

describe('options of a JetStream inlet', () => {
  it('are refused where they cannot work', () => {
    const base = { servers: 'nats://127.0.0.1:1', stream: 'S', durable: 'd' }
    expect(() => new JetStreamInlet({ ...base, deadLetters: 'S' })).toThrow(/another stream/)
    expect(() => new JetStreamInlet({ ...base, durable: 'a.b' })).toThrow(/without spaces, dots/)
    expect(() => new JetStreamInlet({ ...base, leasMs: 5 } as never)).toThrow(/Did you mean "leaseMs"/)
    expect(() => new JetStreamInlet({ stream: 'S', durable: 'd' })).toThrow(/jetStreamInlet.servers/)
  })
})
