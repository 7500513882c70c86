import { createWork, defineWork, memoryBackend, PoisonError, type WorkSystem } from 'millrace'
import { type Pipe, pipe, publishResults } from 'millrace/pipe'
import {
  dlq,
  MemDeadLetter,
  MemInlet,
  type Message,
  type Outlet,
  type OutletMessage,
  QueueInlet,
  retry,
} from 'millrace/source'
import { FakeClock } from 'millrace/testing'
import { afterEach, describe, expect, it } from 'vitest'

interface Order {
  readonly id: string
}

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

const ship = defineWork('ship', (order: Order) => ({ shipped: order.id }))

function system(options: { readonly autoStart?: boolean; readonly more?: readonly never[] } = {}): WorkSystem {
  const w = createWork({ work: [ship], log: false, autoStart: options.autoStart ?? false })
  open.push(() => w.stop())
  return w
}

const orderIn = (message: Message): Order => JSON.parse(new TextDecoder().decode(message.value)) as Order
const body = (id: string) => JSON.stringify({ id })

/** With a clock, its time passes while it waits. */
async function until(isTrue: () => boolean | Promise<boolean>, clock?: FakeClock): Promise<void> {
  for (const end = Date.now() + 10_000; !(await isTrue()); ) {
    if (Date.now() > end) throw new Error('it did not come true within 10 s')
    await (clock === undefined ? new Promise((resolve) => setTimeout(resolve, 2)) : clock.advance(50))
  }
}

/** Waits until every message is settled, and closes the pipe. */
async function emptied(inlet: MemInlet, running: Pipe, settled: number, clock?: FakeClock) {
  await until(() => inlet.ledger.length >= settled, clock)
  await running.close()
  return running.done
}

describe('a pipe from a stream into work', () => {
  it('adds an item for every message, and acknowledges it when the item is durable', async () => {
    let ids = 0
    const nextId = () => String(++ids)
    const inlet = new MemInlet({ messages: ['1', '2', '3'].map((id) => ({ value: body(id) })), nextId })
    const w = system()
    const settledBefore: number[] = []
    const to: Pick<WorkSystem, 'add'> = {
      add: (async (...given: Parameters<WorkSystem['add']>) => {
        settledBefore.push(inlet.ledger.length)
        return w.add(...given)
      }) as WorkSystem['add'],
    }
    const running = pipe(inlet, { to, as: (message) => ship(orderIn(message)) })
    expect(await emptied(inlet, running, 3)).toMatchObject({ acked: 3, created: 3, coalesced: 0 })
    expect(settledBefore).toEqual([0, 0, 0])
    expect((await w.list({ type: 'ship' })).map(({ id }) => id).toSorted()).toEqual([
      'ship:memsource||1',
      'ship:memsource||2',
      'ship:memsource||3',
    ])
  })

  it('finds the item of a message that comes again, whoever sends it', async () => {
    const inlet = new MemInlet({
      messages: ['a', 'a', 'b'].map((id) => ({ value: body(id), headers: { 'message-id': id } })),
    })
    const w = system()
    const running = pipe(inlet, { to: w, as: (message) => ship(orderIn(message)) })
    expect(await emptied(inlet, running, 3)).toMatchObject({ acked: 3, created: 2, coalesced: 1 })
    expect((await w.list({ type: 'ship' })).length).toBe(2)
  })

  it('keeps the items of two types of work apart, and hashes what is too long for an id', async () => {
    const w = system()
    const bill = defineWork('bill', (order: Order) => order.id)
    const long = 'x'.repeat(500)
    for (const type of [ship, bill]) {
      const inlet = new MemInlet({ messages: [{ value: body('a'), headers: { 'message-id': long } }] })
      const running = pipe(inlet, { to: w, as: (message) => type(orderIn(message)) })
      expect(await emptied(inlet, running, 1)).toMatchObject({ created: 1 })
    }
    const ids = (await w.list({})).map(({ id }) => id)
    expect(ids.every((id) => id.length < 60)).toBe(true)
  })

  it('skips what becomes nothing, takes options, and dead-letters what cannot become work', async () => {
    const letters = new MemDeadLetter()
    const inlet = new MemInlet({
      messages: [{ value: body('nothing') }, { value: body('urgent') }, { value: 'no json' }, { value: body('bad') }],
    })
    const w = system()
    const running = pipe(inlet, {
      to: w,
      hopper: { middleware: [dlq(letters), retry({ maxAttempts: 2, backoff: () => 1 })], lagIntervalMs: 0 },
      as: (message) => {
        const order = orderIn(message)
        if (order.id === 'nothing') return undefined
        if (order.id === 'bad') throw new PoisonError('there is no such article')
        return [ship(order), { priority: 7, tags: ['fast'] }]
      },
    })
    expect(await emptied(inlet, running, 5)).toMatchObject({ acked: 1, dropped: 1, term: 2, nak: 1, created: 1 })
    expect(letters.size).toBe(2)
    expect(await w.list({ type: 'ship' })).toEqual([expect.objectContaining({ priority: 7, tags: ['fast'] })])
  })

  it('gives up what the work system will never take, whatever is asked beside it', async () => {
    const letters = new MemDeadLetter()
    const w = createWork({ work: [ship], log: false, autoStart: false, backend: memoryBackend() })
    open.push(() => w.stop())
    const inlet = new MemInlet({ messages: [{ value: body('x'.repeat(2_000_000)) }, { value: body('small') }] })
    const running = pipe(inlet, {
      to: w,
      hopper: { middleware: [dlq(letters)] },
      as: (message) => ship(orderIn(message)),
    })
    expect(await emptied(inlet, running, 2)).toMatchObject({ acked: 1, term: 1 })
    expect(letters.size).toBe(1)
  })

  it('waits for a work system that is away, and uses up no attempts', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ messages: [{ value: body('1') }, { value: body('2') }], clock })
    const w = system()
    let isAway = true
    let tries = 0
    const add = (async (...given: Parameters<WorkSystem['add']>) => {
      tries += 1
      if (isAway) throw new Error('the database is away')
      return w.add(...given)
    }) as WorkSystem['add']
    const running = pipe(inlet, { to: { add }, hopper: { clock }, as: (message) => ship(orderIn(message)) })
    await until(() => tries >= 8, clock)
    expect(inlet.ledger.length).toBe(0)
    isAway = false
    await until(() => inlet.ledger.length === 2, clock)
    await running.close()
    expect(await running.done).toMatchObject({ acked: 2, nak: 0, created: 2, coalesced: 0 })
    expect(inlet.ledger.entries().map(({ attempt }) => attempt)).toEqual([1, 1])
  })

  it('gives one item up for itself where others get through', async () => {
    const clock = new FakeClock()
    const letters = new MemDeadLetter()
    const inlet = new MemInlet({ messages: [{ value: body('odd') }, { value: body('even') }], clock })
    const w = system()
    const add = (async (work: { readonly input: Order }, options: object) => {
      if (work.input.id === 'odd') throw new Error('a schema that throws')
      return w.add(work as never, options)
    }) as unknown as WorkSystem['add']
    const running = pipe(inlet, {
      to: { add },
      hopper: { clock, middleware: [dlq(letters), retry({ maxAttempts: 1 })] },
      as: (message) => ship(orderIn(message)),
    })
    expect(await emptied(inlet, running, 2, clock)).toMatchObject({ acked: 1, term: 1, created: 1 })
    expect(letters.size).toBe(1)
  })

  it('gives back what it could not add when it is closed', async () => {
    const inlet = new MemInlet({ messages: [{ value: body('1') }] })
    let tries = 0
    const add = (async () => {
      tries += 1
      throw new Error('the database is away')
    }) as WorkSystem['add']
    const running = pipe(inlet, { to: { add }, as: (message) => ship(orderIn(message)) })
    await until(() => tries >= 2)
    await running.close({ deadlineMs: 0 })
    const summary = await running.done
    expect([summary.acked, summary.term]).toEqual([0, 0])
    expect(summary.nak + summary.abandoned).toBe(1)
  })

  it('ends in order when it is closed before it has subscribed', async () => {
    const inlet = new MemInlet({ messages: [{ value: body('1') }] })
    const running = pipe(inlet, { to: system(), as: (message) => ship(orderIn(message)) })
    await running.close()
    expect(await running.done).toMatchObject({ received: 0, created: 0 })
  })

  it('refuses a stream whose messages have no identity, unless it is given one', async () => {
    const bodies: string[] = [body('a')]
    const queue = {
      push: async (text: string) => void bodies.push(text),
      pop: async () => bodies.splice(0).map((text) => ({ body: text, handle: text, attempt: 1 })),
      heartbeat: async () => undefined,
      ack: async () => undefined,
      fail: async () => undefined,
    }
    const refused = pipe(new QueueInlet(queue), { to: system(), as: (message) => ship(orderIn(message)) })
    await expect(refused.done).rejects.toMatchObject({ code: 'BAD_OPTION' })
    const w = system()
    const running = pipe(new QueueInlet(queue), {
      to: w,
      keyOf: (message) => orderIn(message).id,
      as: (message) => ship(orderIn(message)),
    })
    await until(async () => (await w.list({ type: 'ship' })).length === 1)
    await running.close()
    expect((await running.done).created).toBe(1)
  })
})

/** Remembers what was published, and fails as often as it is told to. */
class FakeOutlet implements Outlet {
  readonly published = new Map<string, OutletMessage>()
  calls = 0
  failures = 0

  async publish(message: OutletMessage): Promise<void> {
    this.calls += 1
    if (!this.published.has(message.id)) this.published.set(message.id, message)
    // The answer is lost: it was published all the same.
    if (this.failures > 0) {
      this.failures -= 1
      throw new Error('the connection was cut')
    }
  }

  async close(): Promise<void> {}
}

describe('results that go back', () => {
  it('are published under the id of their item, once, also when a run is repeated', async () => {
    const outlet = new FakeOutlet()
    outlet.failures = 1
    const publishShipped = publishResults<{ shipped: string }>(outlet, {
      name: 'publish shipped',
      as: ({ shipped }) => ({ value: `shipped ${shipped}`, key: shipped }),
      retry: { attempts: 3, base: 1 },
    })
    const w = createWork({ work: [ship, publishShipped], log: false })
    open.push(() => w.stop())
    const inlet = new MemInlet({
      messages: ['a', 'b', 'a'].map((id) => ({ value: body(id), headers: { 'message-id': id } })),
    })
    const running = pipe(inlet, { to: w, as: (message) => ship(orderIn(message)), results: publishShipped })
    expect(await emptied(inlet, running, 3)).toMatchObject({ created: 2, coalesced: 1 })
    await until(async () => (await w.list({ type: 'publish shipped', status: 'success' })).length === 2)
    expect([...outlet.published.values()].map(({ id, value }) => [id, value]).toSorted()).toEqual([
      ['ship:memsource|a', 'shipped a'],
      ['ship:memsource|b', 'shipped b'],
    ])
    expect(outlet.calls).toBe(3)
  })

  it('are published after a redrive, where their item was dead first', async () => {
    const outlet = new FakeOutlet()
    let isFixed = false
    const fragile = defineWork(
      'fragile',
      (order: Order) => {
        if (!isFixed) throw new PoisonError('broken')
        return order.id
      },
      { retry: { attempts: 1 } },
    )
    const publishDone = publishResults<string>(outlet, {
      name: 'publish done',
      as: (id) => ({ value: id }),
      recheckMs: 20,
    })
    const backend = memoryBackend()
    const w = createWork({ backend, work: [fragile, publishDone], log: false })
    open.push(() => w.stop())
    const inlet = new MemInlet({ messages: [{ value: body('a') }] })
    const running = pipe(inlet, { to: w, as: (message) => fragile(orderIn(message)), results: publishDone })
    await emptied(inlet, running, 1)
    await until(async () => (await w.list({ type: 'fragile', status: 'dead' })).length === 1)
    expect(outlet.calls).toBe(0)
    isFixed = true
    const { openOps } = await import('millrace/ops')
    await openOps(backend).redrive({ type: 'fragile' }, { who: 'ann' })
    await until(() => outlet.calls === 1)
    expect([...outlet.published.values()].map(({ value }) => value)).toEqual(['a'])
  })
})
