import { createWork, defineWork } from 'millrace'
import { openOps } from 'millrace/ops'
import {
  ack,
  attempt,
  type DeadLetterStore,
  deadLetterToken,
  dlq,
  type Handler,
  Hopper,
  type HopperOptions,
  idempotency,
  idempotencyStore,
  messageBody,
  nak,
  QueueInlet,
  queueDeadLetters,
  retry,
  type Subscription,
  term,
} from 'millrace/source'
import { describe, expect, it } from 'vitest'
import type { Backend } from '../../../src/ports/ports.js'

/** Opens the same backend once more, as another process would. The first call makes it. */
export type OpenBackend = () => { connect(): Backend; close(): Promise<void> }

const utf8 = new TextDecoder()
const textOf = ({ value }: { readonly value: Uint8Array }) => utf8.decode(value)

/** Short enough that a clause can wait for its end. */
const LEASE_MS = 300
const inletOn = (backend: Backend, options: { readonly leaseMs?: number } = {}) =>
  new QueueInlet(backend.queue, { subject: 'orders', idlePollMs: 20, ...options })

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const ends = Date.now() + 30_000
  while (!(await isTrue())) {
    if (Date.now() > ends) throw new Error('it did not happen within 30 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Runs a stream until `isDone`, and closes it. */
async function consume(
  inlet: QueueInlet,
  options: HopperOptions,
  handler: Handler,
  isDone: () => boolean | Promise<boolean>,
): Promise<void> {
  const hopper = new Hopper({ lagIntervalMs: 0, ...options })
  const running = hopper.receive(inlet, { topics: ['orders'] }, handler)
  try {
    await until(isDone)
  } finally {
    await hopper.close({ deadlineMs: 1_000 })
    await running
  }
}

/** A subscription whose process is about to die: nothing that it settles or gives back reaches the queue. */
function dying(sub: Subscription): Subscription {
  return {
    next: (o) => sub.next(o),
    settle: () => new Promise(() => undefined),
    close: async () => undefined,
    capability: (name) => (name === 'releaser' || name === 'leaseExtender' ? undefined : sub.capability(name)),
  }
}

export function describeQueueStreams(name: string, open: OpenBackend): void {
  const on = async (use: (connect: () => Backend) => Promise<void>) => {
    const { connect, close } = open()
    const connected: Backend[] = []
    try {
      await use(() => {
        const backend = connect()
        connected.push(backend)
        return backend
      })
    } finally {
      for (const backend of new Set(connected)) await backend.close?.()
      await close()
    }
  }

  describe(`streams from the queue of ${name}`, () => {
    it('run what was pushed after a restart, although as many had been done before it', () =>
      on(async (connect) => {
        const ran: string[] = []
        const handler: Handler = (_, message) => {
          ran.push(textOf(message))
          return ack()
        }
        for (const day of ['monday', 'tuesday']) {
          const backend = connect()
          const seen = idempotencyStore(backend.store)
          for (let i = 0; i < 5; i += 1) await backend.queue.push(`${day} ${i}`)
          const isDone = async () => (await backend.queue.size?.()) === 0
          await consume(inletOn(backend), { middleware: [idempotency({ store: seen })] }, handler, isDone)
        }
        expect(ran.toSorted()).toEqual(
          ['monday', 'tuesday'].flatMap((day) => [0, 1, 2, 3, 4].map((i) => `${day} ${i}`)),
        )
      }))

    it('run every message once, whichever of two consumers has it', () =>
      on(async (connect) => {
        const backends = [connect(), connect()] as const
        const ran: string[] = []
        for (let i = 0; i < 100; i += 1) await backends[0].queue.push(`order ${i}`)
        await Promise.all(
          backends.map((backend) =>
            consume(
              inletOn(backend),
              { concurrency: 4, maxInFlight: 8, middleware: [idempotency({ store: idempotencyStore(backend.store) })] },
              (_, message) => {
                ran.push(textOf(message))
                return ack()
              },
              async () => (await backend.queue.size?.()) === 0,
            ),
          ),
        )
        expect(new Set(ran).size).toBe(100)
        expect(ran).toHaveLength(100)
      }))

    it('know a redelivery again in another process, and do not run it twice', () =>
      on(async (connect) => {
        const [first, second] = [connect(), connect()]
        const middleware = (backend: Backend) => [idempotency({ store: idempotencyStore(backend.store) })]
        let runs = 0
        const handler: Handler = () => {
          runs += 1
          return ack()
        }
        // The two have not delivered equally many: what they count by themselves says nothing.
        const inlet = inletOn(first, { leaseMs: LEASE_MS })
        await first.queue.push('before')
        // Without idempotency: a count that starts over at the other one would meet a key that is done, and pass for knowledge.
        await consume(
          inlet,
          {},
          () => ack(),
          async () => (await first.queue.size?.()) === 0,
        )
        await first.queue.push('order')
        const dead = new Hopper({ lagIntervalMs: 0, abortGraceMs: 0, middleware: middleware(first) })
        const sub = await inlet.subscribe()
        const running = dead.run(dying(sub), handler)
        await until(() => runs === 1)
        // It is done and remembered; its acknowledgement never arrives, and its lease lapses.
        await consume(
          inletOn(second, { leaseMs: LEASE_MS }),
          { middleware: middleware(second) },
          handler,
          async () => (await second.queue.size?.()) === 0,
        )
        expect(runs).toBe(1)
        await dead.close({ deadlineMs: 0 })
        await running.catch(() => undefined)
      }))

    it('count no delivery that was given back at a stop', () =>
      on(async (connect) => {
        const backend = connect()
        const letters = queueDeadLetters(backend.queue)
        const attempts: number[] = []
        for (let i = 0; i < 15; i += 1) await backend.queue.push(`order ${i}`)
        // Every deployment takes all of them, ends one, and gives the others back.
        for (let deploy = 1; deploy <= 15; deploy += 1) {
          const hopper = new Hopper({ lagIntervalMs: 0, maxDeliveries: 2, middleware: [dlq(letters)] })
          const running = hopper.receive(inletOn(backend), { topics: [] }, (ctx) => {
            attempts.push(attempt(ctx)[0])
            void hopper.close()
            return ack()
          })
          await running
        }
        expect(attempts).toEqual(Array.from({ length: 15 }, () => 1))
        expect(await backend.queue.deadLetters?.count()).toBe(0)
        expect(await backend.queue.size?.()).toBe(0)
      }))

    it('give up no message because shutdowns cut its handler off', () =>
      on(async (connect) => {
        const backend = connect()
        await backend.queue.push('long')
        const options: HopperOptions = {
          lagIntervalMs: 0,
          middleware: [dlq(queueDeadLetters(backend.queue)), retry({ maxAttempts: 2, backoff: { baseMs: 1 } })],
        }
        const attempts: number[] = []
        for (let deploy = 1; deploy <= 4; deploy += 1) {
          const hopper = new Hopper(options)
          await hopper.receive(inletOn(backend), { topics: [] }, (ctx) => {
            attempts.push(attempt(ctx)[0])
            void hopper.close({ deadlineMs: 1 })
            return new Promise((_resolve, reject) =>
              ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error)),
            )
          })
        }
        const isEmpty = async () => (await backend.queue.size?.()) === 0
        const last: Handler = (ctx) => {
          attempts.push(attempt(ctx)[0])
          return ack()
        }
        await consume(inletOn(backend), options, last, isEmpty)
        expect([attempts, await backend.queue.deadLetters?.count()]).toEqual([[1, 2, 3, 4, 5], 0])
      }))

    it('give up a message that kills its process, and none that was only fetched with it', () =>
      on(async (connect) => {
        const backend = connect()
        await backend.queue.push('killer')
        for (let i = 0; i < 9; i += 1) await backend.queue.push(`innocent ${i}`)
        const deaths: Promise<unknown>[] = []
        for (let death = 1; death <= 3; death += 1) {
          const sub = await inletOn(backend, { leaseMs: LEASE_MS }).subscribe()
          const hopper = new Hopper({ lagIntervalMs: 0, heartbeat: false, abortGraceMs: 0 })
          let isKilled = false
          const running = hopper.run(dying(sub), (_, message) => {
            expect(textOf(message)).toBe('killer')
            isKilled = true
            return new Promise(() => undefined)
          })
          await until(() => isKilled)
          deaths.push(
            hopper.close({ deadlineMs: 0 }),
            running.catch(() => undefined),
          )
          await new Promise((resolve) => setTimeout(resolve, LEASE_MS + 100))
        }
        const ran: string[] = []
        await consume(
          inletOn(backend),
          { maxDeliveries: 3, middleware: [dlq(queueDeadLetters(backend.queue))] },
          (ctx, message) => {
            ran.push(`${textOf(message)}: ${attempt(ctx)[0]}`)
            return ack()
          },
          async () => (await backend.queue.size?.()) === 0,
        )
        expect(ran.toSorted()).toEqual(Array.from({ length: 9 }, (_, i) => `innocent ${i}: 1`))
        const letters = (await backend.queue.deadLetters?.list({ limit: 10 })) ?? []
        expect(letters.map(({ body }) => body)).toEqual(['killer'])
        expect(letters[0]?.error).toContain('Delivery 4 of a message that may be delivered 3 times')
        await Promise.all(deaths)
      }))

    it.each(['relaxed', 'strict'] as const)(
      'keep a verdict while its dead letter cannot be stored, also from one process to the next, with %s order',
      (ordering) =>
        on(async (connect) => {
          let isAway = true
          let tries = 0
          const storeOf = (backend: Backend): DeadLetterStore => {
            const store = queueDeadLetters(backend.queue)
            return {
              deadLetter: async (ctx, record) => {
                tries += 1
                if (isAway) throw new Error('the dead letter store is away')
                await store.deadLetter(ctx, record)
              },
            }
          }
          const ran: string[] = []
          const handler: Handler = (_, message) => {
            ran.push(textOf(message))
            return textOf(message) === 'good' ? ack() : term(new RangeError('the quantity is negative'))
          }
          const optionsOn = (backend: Backend): HopperOptions => ({
            ordering,
            maxDeliveries: 3,
            middleware: [dlq(storeOf(backend), { retryDelayMs: 1, retryMaxMs: 2 }), retry({ maxAttempts: 2 })],
          })
          const first = connect()
          await first.queue.push('bad')
          await first.queue.push('good')
          // The first process dies: what it would still settle at its end never arrives.
          const dead = new Hopper({ lagIntervalMs: 0, abortGraceMs: 0, ...optionsOn(first) })
          const sub = await inletOn(first, { leaseMs: LEASE_MS }).subscribe()
          let isDead = false
          const dyingSoon: Subscription = {
            next: (o) => sub.next(o),
            settle: (...given) => (isDead ? new Promise(() => undefined) : sub.settle(...given)),
            close: async () => undefined,
            capability: (name) => (name === 'releaser' ? undefined : sub.capability(name)),
          }
          const running = dead.run(dyingSoon, handler)
          await until(() => tries >= 6)
          isDead = true
          const died = [dead.close({ deadlineMs: 0 }), running.catch(() => undefined)]
          const second = connect()
          const before = tries
          await consume(inletOn(second), optionsOn(second), handler, () => tries >= before + 3)
          isAway = false
          await consume(inletOn(second), optionsOn(second), handler, async () => (await second.queue.size?.()) === 0)
          // And no other message waits for it.
          expect(ran.toSorted()).toEqual(['bad', 'good'])
          const [letter, ...others] = (await openOps(second).letters()).letters
          expect(letter).toMatchObject({ class: 'poison', attempts: 1, error: 'RangeError: the quantity is negative' })
          expect(others).toEqual([])
          await Promise.all(died)
        }),
    )

    it('run a redriven message at the process that had given it up, and whose verdict another one carried out', () =>
      on(async (connect) => {
        const [first, second] = [connect(), connect()]
        let tries = 0
        const away: DeadLetterStore = {
          deadLetter: async () => {
            tries += 1
            throw new Error('the dead letter store is away')
          },
        }
        let isFixed = false
        let runs = 0
        const handler: Handler = () => {
          runs += 1
          return isFixed ? ack() : term(new RangeError('the quantity is negative'))
        }
        const isEmpty = async () => (await second.queue.size?.()) === 0
        const ofFirst = [dlq(away, { retryDelayMs: 1, retryMaxMs: 2 })]
        await first.queue.push('bad')
        await consume(inletOn(first), { middleware: ofFirst }, handler, () => tries >= 1)
        await consume(inletOn(second), { middleware: [dlq(queueDeadLetters(second.queue))] }, handler, isEmpty)
        const ops = openOps(second)
        expect([runs, (await ops.letters()).letters.length]).toEqual([1, 1])
        isFixed = true
        await ops.redriveLetters({}, { who: 'ann' })
        await consume(inletOn(first), { middleware: ofFirst }, handler, isEmpty)
        expect([runs, (await ops.letters()).letters.length]).toEqual([2, 0])
      }))

    it('carry headers and keys, and bring them back with a redrive', () =>
      on(async (connect) => {
        const backend = connect()
        const ops = openOps(backend)
        const name = 'billing'
        await backend.queue.push(
          messageBody('{"qty":0}', { id: 'o-1', key: 'customer-7', headers: { 'x-trace': 'abc' } }),
        )
        await backend.queue.push('{"qty":1}')
        const seen: unknown[] = []
        let isFixed = false
        const handler: Handler = (ctx, message) => {
          const key = message.key === null ? null : utf8.decode(message.key)
          seen.push([
            textOf(message),
            key,
            message.headers.get('x-trace'),
            message.headers.get('message-id'),
            attempt(ctx)[0],
          ])
          return isFixed ? ack() : nak(new Error('no such article'))
        }
        const options: HopperOptions = {
          name,
          middleware: [
            dlq(queueDeadLetters(backend.queue)),
            retry({ maxAttempts: 2, backoff: { baseMs: 1 } }),
            idempotency({ store: idempotencyStore(backend.store) }),
          ],
        }
        await consume(inletOn(backend), options, handler, async () => (await backend.queue.size?.()) === 0)
        const { letters } = await ops.letters({ class: 'retryable', subject: 'orders', error: 'ARTICLE' })
        expect(letters).toHaveLength(2)
        expect(letters[0]).toMatchObject({ queue: 'default', reason: 'retryable', attempts: 2, source: name })
        expect(letters[0]?.error).toBe('Error: no such article')
        const wrapped = await ops.letter(letters.find(({ id }) => id === letters[0]!.id)!.id)
        expect([wrapped, await ops.letter(letters[1]!.id)]).toEqual(
          expect.arrayContaining([
            expect.objectContaining({
              value: '{"qty":0}',
              key: 'customer-7',
              headers: [
                { key: 'x-trace', value: 'abc' },
                { key: 'message-id', value: 'o-1' },
              ],
            }),
            expect.objectContaining({ value: '{"qty":1}', headers: [] }),
          ]),
        )
        expect((await ops.letters({ class: 'poison' })).letters).toEqual([])

        const counted = await ops.redriveLetters({ class: 'retryable' }, { who: 'ann', dryRun: true })
        expect([counted.total, counted.done]).toEqual([2, 0])
        const progress: number[] = []
        const report = await ops.redriveLetters(
          {},
          { who: 'ann', why: 'the article is back', pageSize: 1, onProgress: ({ done }) => progress.push(done) },
        )
        expect(report).toMatchObject({ total: 2, done: 2, passed: 0, state: 'done' })
        expect(progress).toEqual([1, 2])
        expect(await backend.queue.deadLetters?.count()).toBe(0)
        isFixed = true
        seen.length = 0
        await consume(inletOn(backend), options, handler, async () => (await backend.queue.size?.()) === 0)
        expect(seen).toEqual(
          expect.arrayContaining([
            ['{"qty":0}', 'customer-7', 'abc', 'o-1', 1],
            ['{"qty":1}', null, undefined, undefined, 1],
          ]),
        )
        expect(seen).toHaveLength(2)
        expect((await ops.log(10)).map(({ who, why, what }) => [who, why, what.replace(/ \(action .*/, '')])).toEqual([
          ['ann', 'the article is back', 'redrive of dead letters queue:default done: 2 changed, 0 had gone'],
          ['ann', 'the article is back', 'redrive of dead letters queue:default began: 2 match'],
        ])
      }))

    it('stop a redrive between two pages, go on when it is repeated, and discard', () =>
      on(async (connect) => {
        const backend = connect()
        const ops = openOps(backend)
        for (let i = 0; i < 5; i += 1) await backend.queue.deadLetter?.(`body ${i}`, 'Error: boom')
        const stop = new AbortController()
        const by = { who: 'ann', pageSize: 2, signal: stop.signal, onProgress: () => stop.abort() }
        const stopped = await ops.redriveLetters({}, by)
        expect(stopped).toMatchObject({ total: 5, done: 2, state: 'stopped' })
        const { letters } = await ops.letters({ limit: 2 })
        expect((await ops.redriveLetters({ id: letters[0]!.id }, { who: 'ann' })).done).toBe(1)
        expect((await ops.redriveLetters({ id: letters[0]!.id }, { who: 'ann' })).total).toBe(0)
        expect((await ops.discardLetters({ before: Date.now() + 60_000 }, { who: 'ann' })).done).toBe(2)
        expect([await backend.queue.size?.(), await backend.queue.deadLetters?.count()]).toEqual([3, 0])
      }))

    it('are refused where a work system uses the backend natively, and take none of its items', () =>
      on(async (connect) => {
        const [backend, other] = [connect(), connect()]
        const twice = defineWork('twice', async (n: number) => n * 2)
        const w = createWork({ backend, work: [twice], autoStart: false })
        const handle = w.enqueue(twice(21))
        await handle.accepted()
        const ran: string[] = []
        const hopper = new Hopper({ lagIntervalMs: 0 })
        const running = hopper.receive(inletOn(other), { topics: [] }, (_, message) => {
          ran.push(textOf(message))
          return ack()
        })
        // Immediately: asking again would change nothing.
        await expect(running).rejects.toMatchObject({ code: 'WRONG_MODE', message: expect.stringContaining('stream') })
        expect(ran).toEqual([])
        w.start()
        expect(await handle.result()).toBe(42)
        await w.stop()
      }))

    it('replace a letter that is stored twice for one message', () =>
      on(async (connect) => {
        const backend = connect()
        const store = queueDeadLetters(backend.queue)
        await backend.queue.push('bad')
        let failures = 2
        const inlet = inletOn(backend, { leaseMs: LEASE_MS })
        const sub = await inlet.subscribe()
        const refusing: Subscription = {
          next: (o) => sub.next(o),
          close: () => sub.close(),
          capability: (what) => sub.capability(what),
          settle: async (message, result, options) => {
            failures -= 1
            if (failures >= 0) throw new Error('the queue could not be reached')
            await sub.settle(message, result, options)
          },
        }
        const hopper = new Hopper({ lagIntervalMs: 0, settle: { attempts: 1 }, middleware: [dlq(store)] })
        const running = hopper.run(refusing, (_, message) => {
          expect(message.as(deadLetterToken)).toBeUndefined()
          return term(new Error('boom'))
        })
        await until(async () => (await backend.queue.size?.()) === 0)
        await hopper.close()
        await running
        expect(await backend.queue.deadLetters?.count()).toBe(1)
      }))
  })
}
