import { memoryBackend, memoryStore } from 'millrace'
import {
  ack,
  Hopper,
  idempotency,
  idempotencyStore,
  MemInlet,
  messageBody,
  QueueInlet,
  queueDeadLetters,
} from 'millrace/source'
import { describe, expect, it } from 'vitest'

describe('idempotency on a queue whose messages have no ids', () => {
  // A spread is what a user's own wrapper makes of a queue: the ids are lost with it.
  const inlet = (backend = memoryBackend()) => new QueueInlet({ ...backend.queue }, { idlePollMs: 5 })
  const seen = () => idempotencyStore(memoryStore())

  it.each(['single', 'batch'] as const)('is refused before anything is fetched (%s)', async (mode) => {
    const backend = memoryBackend()
    backend.queue.push('order')
    const hopper = new Hopper({ middleware: [idempotency({ store: seen() })], batch: { size: 2, maxWaitMs: 1 } })
    const running =
      mode === 'single'
        ? hopper.receive(inlet(backend), { topics: [] }, () => ack())
        : hopper.receiveBatch(inlet(backend), { topics: [] }, (_, messages) => messages.map(() => ack()))
    await expect(running).rejects.toMatchObject({ code: 'BAD_OPTION', option: 'idempotency.keyOf' })
    expect(backend.queue.pop(5, 1_000)).toMatchObject([{ body: 'order', attempt: 1 }])
  })

  it('goes by the key that its producer gave', async () => {
    const backend = memoryBackend()
    for (const id of ['o-1', 'o-2', 'o-1']) backend.queue.push(messageBody('order', { id }))
    const ran: (string | undefined)[] = []
    const hopper = new Hopper({
      lagIntervalMs: 0,
      middleware: [idempotency({ store: seen(), keyOf: (message) => message.headers.get('message-id') })],
    })
    const running = hopper.receive(inlet(backend), { topics: [] }, (_, message) => {
      ran.push(message.headers.get('message-id'))
      return ack()
    })
    await expect.poll(() => backend.queue.size()).toBe(0)
    await hopper.close()
    await running
    expect(ran).toEqual(['o-1', 'o-2'])
  })

  it('needs no key where cursors name messages', async () => {
    const stream = new MemInlet({ messages: [{ value: 'a' }] })
    const hopper = new Hopper({ middleware: [idempotency({ store: seen() })] })
    const running = hopper.receive(stream, { topics: [] }, () => ack())
    await expect.poll(() => stream.ledger.entries().length).toBe(1)
    await hopper.close()
    expect((await running).acked).toBe(1)
  })

  it('takes no message of a memory inlet for one that an earlier inlet had', async () => {
    const store = seen()
    let runs = 0
    for (const day of ['monday', 'tuesday']) {
      const stream = new MemInlet({ messages: [{ value: day }] })
      const hopper = new Hopper({ lagIntervalMs: 0, middleware: [idempotency({ store })] })
      const running = hopper.receive(stream, { topics: [] }, () => {
        runs += 1
        return ack()
      })
      await expect.poll(() => stream.ledger.entries().length).toBe(1)
      await hopper.close()
      await running
    }
    expect(runs).toBe(2)
  })

  it('is the same for a queue whose dead letters cannot be listed', () => {
    expect(() => queueDeadLetters({ ...memoryBackend().queue })).toThrow('dead letters can be listed')
  })
})

describe('a start that cannot be counted', () => {
  it('begins nothing, and the message runs once it can be', async () => {
    const backend = memoryBackend()
    backend.queue.push('order')
    // It was delivered before: it may be what ended the process that had it.
    for (const pulled of backend.queue.pop(1, 1_000)) backend.queue.fail(pulled)
    let refusals = 2
    const start = backend.queue.start
    const inlet = new QueueInlet(
      Object.defineProperties(
        { ...backend.queue },
        {
          start: {
            value: (pulled: Parameters<typeof start>[0]) => {
              refusals -= 1
              if (refusals >= 0) throw new Error('the queue cannot be written')
              return start(pulled)
            },
          },
        },
      ),
      { idlePollMs: 5 },
    )
    const warned: string[] = []
    const hopper = new Hopper({ lagIntervalMs: 0, logger: { warn: (text) => void warned.push(text), error: () => {} } })
    let runs = 0
    const running = hopper.receive(inlet, { topics: [] }, () => {
      runs += 1
      return ack()
    })
    await expect.poll(() => runs, { timeout: 10_000 }).toBe(1)
    await hopper.close()
    const summary = await running
    expect([summary.acked, summary.returned]).toEqual([1, 2])
    expect(warned).toEqual(['A begin failed', 'A begin failed'])
  })
})
