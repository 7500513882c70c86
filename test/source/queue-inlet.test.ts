import { describe, expect, it } from 'vitest'
import { memoryQueue } from '../../src/backends/memory/queue/memory-queue.js'
import { ack, nak, nakAfter, reject, term } from '../../src/core/stream/result.js'
import type { Queue } from '../../src/ports/ports.js'
import { Hopper } from '../../src/source/hopper/hopper.js'
import { QueueInlet, type QueueInletOptions } from '../../src/source/inlets/queue/queue-inlet.js'
import { pulledWork } from '../../src/source/inlets/queue/queue-message.js'
import { dlq } from '../../src/source/middleware/dead-letter.js'
import { MemDeadLetter } from '../../src/source/middleware/mem-dead-letter.js'
import { retry } from '../../src/source/middleware/retry.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { held, textOf } from './hopper/support.js'

const boom = new Error('boom')
const never = { signal: new AbortController().signal }

async function opened(options: QueueInletOptions & { readonly wrap?: (queue: Queue) => Queue } = {}) {
  const { wrap = (queue: Queue) => queue, ...rest } = options
  const clock = new FakeClock()
  const queue = memoryQueue({ clock })
  const inlet = new QueueInlet(wrap(queue), { clock, ...rest })
  const sub = await inlet.subscribe()
  return { clock, queue, inlet, sub }
}

describe('a body as a message', () => {
  it('is its text in UTF-8, with the subject of the inlet and the attempt of the queue', async () => {
    const { queue, sub } = await opened({ subject: 'mail' })
    queue.push('žluťoučký kůň')
    queue.push('b')
    const first = await sub.next(never)
    expect(textOf(first)).toBe('žluťoučký kůň')
    expect(first).toMatchObject({ key: null, subject: 'mail', partitionKey: '', deliveryCount: 1 })
    expect(first.cursor.toString()).toBe(first.as(pulledWork)?.id)
    expect((await sub.next(never)).cursor.toString()).not.toBe(first.cursor.toString())
    expect(first.as(pulledWork)).toMatchObject({ body: 'žluťoučký kůň', attempt: 1 })
  })

  it('has the key that keyOf finds, and none where that fails', async () => {
    const { queue, sub } = await opened({ keyOf: (body) => JSON.parse(body).customer })
    queue.push('{"customer":"c-7"}')
    queue.push('{"other":1}')
    queue.push('no json')
    const keys = []
    for (let i = 0; i < 3; i += 1) {
      const { key } = await sub.next(never)
      keys.push(key === null ? null : new TextDecoder().decode(key))
    }
    expect(keys).toEqual(['c-7', null, null])
  })
})

describe('results on a queue', () => {
  it('ack, put back with their delay, and dead-letter what is terminated', async () => {
    const { clock, queue, sub } = await opened()
    for (const body of ['ack', 'nak', 'later', 'term', 'reject', 'bare']) queue.push(body)
    const settle = async (result: Parameters<typeof sub.settle>[1]) => sub.settle(await sub.next(never), result, never)
    await settle(ack())
    const naked = await sub.next(never)
    await sub.settle(naked, nak(boom), never)
    expect(textOf(await sub.next(never))).toBe('nak')
    const later = await sub.next(never)
    await sub.settle(later, nakAfter(5_000, boom), never)
    await settle(term(boom))
    await settle(reject(new TypeError('wrong state')))
    await settle(term())
    expect(queue.dead).toEqual([
      { body: 'term', error: 'Error: boom' },
      { body: 'reject', error: 'TypeError: wrong state' },
      { body: 'bare', error: 'poison' },
    ])
    const again = sub.next(never)
    await clock.advance(6_000)
    expect([textOf(await again), (await again).deliveryCount]).toEqual(['later', 2])
  })

  it('leave no second dead letter where middleware has dead-lettered one', async () => {
    const { clock, queue, inlet, sub } = await opened()
    const letters = new MemDeadLetter()
    queue.push('bad')
    await sub.close()
    await new Hopper({ clock, middleware: [dlq(letters), retry()] }).run(sub, () => term(boom))
    expect(letters.size).toBe(1)
    expect(queue.dead).toEqual([])
    expect(queue.size()).toBe(0)
    await inlet.close()
  })

  it('end a terminated body although the queue has no place for dead letters', async () => {
    const { queue, sub } = await opened({ wrap: (q) => ({ ...q, deadLetter: undefined }) as unknown as Queue })
    queue.push('bad')
    await sub.settle(await sub.next(never), term(boom), never)
    expect(queue.size()).toBe(0)
  })

  it('write one dead letter, although the ack behind it had to be tried again', async () => {
    let acks = 0
    const { queue, sub } = await opened({
      wrap: (q) => ({
        ...q,
        ack: async (pulled) => {
          acks += 1
          if (acks === 1) throw new Error('away')
          await q.ack(pulled)
        },
      }),
    })
    queue.push('bad')
    const message = await sub.next(never)
    await expect(sub.settle(message, term(boom), never)).rejects.toThrow('away')
    await sub.settle(message, term(boom), never)
    expect(queue.dead).toHaveLength(1)
    expect(queue.size()).toBe(0)
  })

  it('never ask for a delay beyond what the queue keeps', async () => {
    const delays: (number | undefined)[] = []
    const { queue, sub } = await opened({
      wrap: (q) => ({ ...q, maxDelay: 900_000, fail: (_pulled, delay) => void delays.push(delay) }),
    })
    queue.push('a')
    await sub.settle(await sub.next(never), nakAfter(86_400_000, boom), never)
    expect(delays).toEqual([900_000])
  })

  it('may be tried again when the first try is no longer awaited', async () => {
    let tries = 0
    const { queue, sub } = await opened({
      wrap: (q) => ({
        ...q,
        ack: (pulled) => {
          tries += 1
          return tries === 1 ? new Promise<void>(() => undefined) : q.ack(pulled)
        },
      }),
    })
    queue.push('a')
    const message = await sub.next(never)
    const timeout = new AbortController()
    const first = sub.settle(message, ack(), timeout)
    await expect(sub.settle(message, ack(), never)).rejects.toMatchObject({ code: 'ALREADY_SETTLED' })
    timeout.abort(new Error('too slow'))
    await expect(first).rejects.toThrow('too slow')
    await sub.settle(message, ack(), never)
    expect(queue.size()).toBe(0)
  })
})

describe('polling a queue that sends no notifications', () => {
  it('happens less and less often while it is empty, up to idlePollMs', async () => {
    const at: number[] = []
    const setup = await opened({
      idlePollMs: 100,
      wrap: (q) => ({
        ...q,
        pop: (max, visibility) => {
          at.push(setup.clock.monotonic())
          return q.pop(max, visibility)
        },
      }),
    })
    const { clock, queue, sub } = setup
    const waiting = sub.next(never)
    await clock.advance(349)
    expect(at).toEqual([0, 10, 30, 70, 150, 250])
    queue.push('a')
    await clock.advance(1)
    expect(textOf(await waiting)).toBe('a')
    expect(clock.pending).toBe(0)
  })

  it('happens immediately after a wake, also one that comes during a poll', async () => {
    const polling = held()
    let polls = 0
    const { clock, queue, inlet, sub } = await opened({
      wrap: (q) => ({
        ...q,
        pop: async (max, visibility) => {
          polls += 1
          const found = q.pop(max, visibility)
          if (polls === 1) await polling.promise
          return found
        },
      }),
    })
    const waiting = sub.next(never)
    await clock.settle()
    queue.push('a')
    inlet.wake()
    polling.release()
    expect(textOf(await waiting)).toBe('a')
    const again = sub.next(never)
    await clock.settle()
    queue.push('b')
    inlet.wake()
    expect(textOf(await again)).toBe('b')
    expect(clock.monotonic()).toBe(0)
  })

  it('gives back what a poll brings after an abort', async () => {
    const polling = held()
    const { clock, queue, sub } = await opened({
      wrap: (q) => ({
        ...q,
        pop: async (max, visibility) => {
          const found = q.pop(max, visibility)
          await polling.promise
          return found
        },
      }),
    })
    queue.push('a')
    const stop = new AbortController()
    const waiting = sub.next(stop)
    await clock.settle()
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    polling.release()
    await clock.settle()
    expect(queue.pop(1, 1_000)).toMatchObject([{ body: 'a', attempt: 2 }])
  })

  it('is tried again by a hopper when it fails', async () => {
    let polls = 0
    const { clock, queue, sub } = await opened({
      wrap: (q) => ({
        ...q,
        pop: (max, visibility) => {
          polls += 1
          if (polls < 4) throw new Error('away')
          return q.pop(max, visibility)
        },
      }),
    })
    queue.push('a')
    await sub.close()
    const running = new Hopper({ clock, random: () => 0.5 }).run(sub, () => ack())
    await clock.advance(10_000)
    expect(await running).toMatchObject({ acked: 1 })
  })

  it('asks for no more than the queue gives at a time, and keeps what it gave beyond that', async () => {
    const asked: number[] = []
    const { queue, sub } = await opened({
      wrap: (q) => ({
        ...q,
        maxPop: 10,
        pop: (max, visibility) => {
          asked.push(max)
          return q.pop(max + 1, visibility)
        },
      }),
    })
    for (const body of ['a', 'b', 'c', 'd']) queue.push(body)
    expect(textOf(await sub.next(never))).toBe('a')
    const batch = await sub.capability('batched')!.nextBatch(50, never)
    expect(batch.map(textOf)).toEqual(['b'])
    expect((await sub.capability('batched')!.nextBatch(50, never)).map(textOf)).toEqual(['c', 'd'])
    expect(asked).toEqual([1, 10])
  })
})

describe('a hopper over a queue', () => {
  it('retries, heartbeats and gives up, and every body ends somewhere', async () => {
    const { clock, queue, sub } = await opened({ leaseMs: 3_000 })
    for (let i = 0; i < 30; i += 1) queue.push(i % 3 === 0 ? `bad-${i}` : `good-${i}`)
    const middleware = [retry({ maxAttempts: 3, backoff: () => 500 })]
    const hopper = new Hopper({ clock, concurrency: 4, laneOf: (m) => m.cursor.toString(), middleware })
    const runs = new Map<string, number>()
    const running = hopper.run(sub, async (_ctx, message) => {
      const body = textOf(message)
      runs.set(body, (runs.get(body) ?? 0) + 1)
      await clock.sleep(body.endsWith('7') ? 10_000 : 100)
      return body.startsWith('bad') ? nak(boom) : ack()
    })
    await clock.advance(120_000)
    await hopper.close()
    const summary = await running
    expect(summary).toMatchObject({ acked: 20, nak: 20, term: 10 })
    expect(queue.size()).toBe(0)
    expect(queue.dead).toHaveLength(10)
    for (const [body, n] of runs) expect([body, n]).toEqual([body, body.startsWith('bad') ? 3 : 1])
  })
})

describe('options of a queue inlet', () => {
  it.each<[unknown, object, string]>([
    [undefined, {}, 'queueInlet(queue)'],
    [{ pop: () => [] }, {}, 'queueInlet(queue) must be a Queue'],
    [memoryQueue(), { leaseMs: 0 }, 'queueInlet.leaseMs must be'],
    [memoryQueue(), { idlePollMs: 0 }, 'queueInlet.idlePollMs must be'],
    [memoryQueue(), { subject: '' }, 'queueInlet.subject must be'],
    [memoryQueue(), { pollMs: 1 }, 'is not an option of queueInlet'],
  ])('are checked (%#)', (queue, options, message) => {
    expect(() => new QueueInlet(queue as Queue, options)).toThrow(message)
  })
})
