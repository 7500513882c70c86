import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryBackend } from '../../../src/backends/memory/index.js'
import { ITEM_BYTES } from '../../../src/backends/memory/items/bytes.js'
import { ItemTable } from '../../../src/backends/memory/items/item-table.js'
import { memoryLedger } from '../../../src/backends/memory/ledger.js'
import { Notifier } from '../../../src/backends/memory/notify.js'
import { Queues } from '../../../src/backends/memory/queue/queues.js'
import { timeOf } from '../../../src/backends/memory/time.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ledgerOn } from '../ledger-on.js'
import { play } from '../ledger-player.js'
import { step } from '../ledger-steps.js'
import { anybody, claim, DAY, deadLetter, enqueue, envelope, finish, ids } from '../native.js'

const KB = 1_024
const me = { id: 'w1', host: 'h', version: '1', types: [], queues: [] }

function opened(options: Parameters<typeof memoryBackend>[0] = {}) {
  const clock = new FakeClock()
  const backend = memoryBackend({ clock, ...options })
  return { clock, backend, ledger: ledgerOn(backend) }
}

/** An item whose input is so many bytes. */
const heavy = (id: string, bytes: number) => enqueue(envelope(id, { input: 'x'.repeat(bytes) }))
const erase = (id: string) =>
  ({ guard: { by: 'status', id, in: ['pending', 'running'] }, effects: [{ do: 'delete', id }] }) as const

describe('a memory backend that is full', () => {
  const bounds = { maxBytes: 10 * KB, maxItemBytes: 64 * KB }

  it('refuses only the enqueue that would go beyond it, and says what to do', async () => {
    const { ledger } = opened(bounds)
    const results = await ledger.commit([heavy('a', 4 * KB), heavy('b', 5 * KB), heavy('c', 4 * KB)])

    expect(results.map(({ kind }) => kind)).toEqual(['applied', 'refused', 'applied'])
    expect(results[1]).toMatchObject({
      code: 'STORE_FULL',
      limit: 10 * KB,
      message: expect.stringMatching(/holds 4796 bytes, .*5820 more .*limit of 10240.*raise `maxBytes`/),
    })
    expect(await ledger.read(['b'])).toEqual([undefined])
    expect((await ledger.groups(['g-b']))[0]).toBeUndefined()
  })

  it('takes all that fits, to the byte', async () => {
    const { ledger } = opened(bounds)
    expect(await ledger.commit([heavy('a', 10 * KB - ITEM_BYTES + 1)])).toMatchObject([{ code: 'STORE_FULL' }])
    expect(await ledger.commit([heavy('a', 10 * KB - ITEM_BYTES)])).toMatchObject([{ kind: 'applied' }])
    expect(await ledger.commit([heavy('b', 0)])).toMatchObject([{ code: 'STORE_FULL' }])
  })

  it('counts text in bytes, and each enqueue of several items as one', async () => {
    const { ledger } = opened(bounds)
    const many = [...heavy('a', 4 * KB).effects, ...heavy('b', 5 * KB).effects]
    expect(await ledger.commit([anybody(...many)])).toMatchObject([{ code: 'STORE_FULL' }])
    expect(await ledger.commit([enqueue(envelope('é', { input: 'é'.repeat(5 * KB) }))])).toMatchObject([
      { code: 'STORE_FULL' },
    ])
    expect((await ledger.inspect!.counts()).length).toBe(0)
  })

  it('never refuses what a run settles: its result, its children, its failure, its progress', async () => {
    const { ledger } = opened(bounds)
    await ledger.commit(['a', 'b', 'c'].map((id) => heavy(id, 2 * KB)))
    const [a, b, c] = await claim(ledger)
    await ledger.extend([{ lease: c!.lease, running: true, progress: 'p'.repeat(5 * KB) }], 30_000, me)
    const child = heavy('child', 20 * KB)
    const retry = { do: 'retry', id: 'c', attempt: 2, delayMs: 0, reason: 'retry' } as const
    const results = await ledger.commit([
      finish(a!, 'r'.repeat(20 * KB), child.effects),
      deadLetter(b!, 'e'.repeat(4 * KB), DAY),
      { guard: { by: 'lease', lease: c!.lease }, effects: [retry] },
      heavy('d', 1),
    ])

    expect(results.map(({ kind }) => kind)).toEqual(['applied', 'applied', 'applied', 'refused'])
    expect((await ledger.read(['child']))[0]?.status).toBe('pending')
  })

  it.each([
    ['erased', async ({ ledger }: ReturnType<typeof opened>) => ledger.commit([erase('a')])],
    [
      'done, and its large input dropped',
      async ({ ledger }: ReturnType<typeof opened>) => ledger.commit([finish((await claim(ledger, 1))[0]!)]),
    ],
  ])('takes an enqueue again once something is %s', async (_, act) => {
    const made = opened(bounds)
    await made.ledger.commit([heavy('a', 6 * KB), heavy('b', 1 * KB)])
    expect(await made.ledger.commit([heavy('c', 3 * KB)])).toMatchObject([{ code: 'STORE_FULL' }])
    await act(made)
    expect(await made.ledger.commit([heavy('c', 3 * KB)])).toMatchObject([{ kind: 'applied' }])
  })

  it('counts bodies and texts of its plain ports', async () => {
    const { backend, ledger } = opened(bounds)
    backend.queue.push('x'.repeat(4 * KB))
    backend.store.set('mine', 'x'.repeat(4 * KB))
    backend.queue.deadLetter('x'.repeat(KB), 'why')
    expect(await ledger.commit([heavy('a', KB)])).toMatchObject([{ code: 'STORE_FULL' }])
    backend.store.set('mine', 'y')
    expect(await ledger.commit([heavy('a', KB)])).toMatchObject([{ kind: 'applied' }])
    await ledger.commit([erase('a')])
    await claim(ledger)
    backend.store.delete('mine')
    const dead = backend.queue.deadQueue()
    for (const one of await dead.pop(5, 1000)) await dead.ack(one)
    expect(await ledger.commit([heavy('b', 8 * KB)])).toMatchObject([{ kind: 'applied' }])
  })

  it('checks how its bounds relate', () => {
    expect(() => memoryBackend({ maxBytes: 4_096, keepEndedBytes: 4_096 })).toThrow(
      /memoryBackend.keepEndedBytes must be less than maxBytes \(4096\)/,
    )
    expect(() => memoryBackend({ maxBytes: 5 })).toThrow(/memoryBackend.maxBytes must be an integer >= 1024/)
  })
})

describe('the bytes of a memory backend', () => {
  /** A ledger whose account can be read. */
  function accounted(now: () => number) {
    const time = timeOf({ now }, 'test')
    const queues = new Queues(time, { file: undefined, maxDead: 5, onEvict: undefined })
    const notifier = new Notifier()
    const table = new ItemTable({
      queues,
      notifier,
      bytes: queues.bytes,
      maxEnded: 500_000,
      keepEndedBytes: 1_000_000,
      maxBytes: 1_000_000_000,
      settled: () => notifier.flush(),
    })
    return { table, ledger: memoryLedger(table, KB * KB, time, () => undefined), bytes: queues.bytes }
  }

  it('are right after whatever happened, and none when nothing is left', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        let later = 0
        let made: ReturnType<typeof accounted> | undefined
        const open = (now: () => number) => {
          made = accounted(() => now() + later)
          return made.ledger
        }
        await play({ open }, steps)
        const { ledger, bytes, table } = made!
        const groups = ['g0', 'g1', 'g2', ...Array.from({ length: 12 }, (_, n) => `i${n}`)]
        const counted = { ...bytes }
        const everything = (await ledger.inspect!.list({ limit: 1000 })).items.map(
          ({ envelope: { id } }) => table.known(id)!,
        )
        for (const record of everything) table.weigh(record)
        for (const id of groups) {
          const group = table.singleItem(id, 0) === undefined ? table.group(id, 0) : undefined
          if (group !== undefined) table.weigh(group)
        }
        expect(counted).toEqual({ ...bytes })
        for (const { envelope: item } of (await ledger.inspect!.list({ limit: 1000 })).items) {
          const effects = [
            { do: 'delete', id: item.id } as const,
            { do: 'leaveGroup', groupId: item.groupId, count: 1 } as const,
          ]
          await ledger.commit([{ guard: { by: 'status', id: item.id, in: ['pending', 'running'] }, effects }])
        }
        // Groups that no item ever closed have no end: what is left then is closed by hand.
        for (const id of groups) {
          const open = (await ledger.groups([id]))[0]?.open ?? 0
          if (open !== 0) await ledger.commit([anybody({ do: 'leaveGroup', groupId: id, count: open })])
        }
        later = 60 * DAY
        for (let round = 0; round < 20; round += 1) await ledger.claim({ queues: [], leaseMs: 1, worker: 'w' })
        expect({ ...bytes }).toEqual({ stored: 0, ended: 0 })
      }),
      { numRuns: 60 },
    )
  })
})

describe('ended items beyond the bound of their bytes', () => {
  const bounds = { keepEndedBytes: 10 * KB }
  const run = async (ledger: ReturnType<typeof ledgerOn>, names: readonly string[], bytes: number) => {
    await ledger.commit(names.map((id) => enqueue(envelope(id))))
    await ledger.commit((await claim(ledger, names.length)).map((item) => finish(item, 'r'.repeat(bytes))))
  }
  const kept = async (ledger: ReturnType<typeof ledgerOn>, names: readonly string[]) =>
    (await ledger.read(names)).flatMap((view) => view?.envelope.id ?? [])
  const names = ['a', 'b', 'c', 'd', 'e']

  it('leave, the oldest first, and are reported as removed', async () => {
    const { ledger } = opened(bounds)
    await run(ledger, names, 3 * KB)

    expect(await kept(ledger, names)).toEqual(['d', 'e'])
    expect((await ledger.claim({ queues: [], leaseMs: 1, worker: 'w' })).removed).toBe(3)
    expect(await ledger.inspect!.counts()).toEqual([{ queue: 'default', type: 't', counts: { completed: 2 } }])
    expect((await ledger.groups(['g-a', 'g-e'])).map((group) => group?.open)).toEqual([undefined, 0])
  })

  it('leave by their age, not by how long they would have been kept', async () => {
    const { ledger } = opened(bounds)
    await ledger.commit(names.map((id) => enqueue(envelope(id))))
    const [a, ...rest] = await claim(ledger)
    await ledger.commit([deadLetter(a!, 'e'.repeat(3 * KB), 30 * DAY)])
    await ledger.commit(rest.map((item) => finish(item, 'r'.repeat(3 * KB))))
    expect(await kept(ledger, names)).toEqual(['d', 'e'])
  })

  it('do not take with them what is open, however old and large', async () => {
    const { ledger } = opened(bounds)
    await ledger.commit([heavy('open', 50 * KB), heavy('running', 50 * KB)])
    const held = await claim(ledger, 1)
    await run(ledger, ['x', ...names], 3 * KB)
    expect(ids(held)).toEqual(['open'])
    expect((await ledger.read(['open']))[0]?.status).toBe('running')
  })

  it('stay while a waiter was notified of their end and has not read it', async () => {
    const { ledger, clock } = opened(bounds)
    const received: string[] = []
    ledger.onInbox('me', (what) => void received.push(...what.itemIds))
    await ledger.commit([enqueue(envelope('awaited', { waiter: 'me' })), enqueue(envelope('watched'))])
    await ledger.watch('me', { itemIds: ['watched'], groupIds: [] })
    await ledger.commit((await claim(ledger)).map((item) => finish(item, 'r'.repeat(3 * KB))))
    await run(ledger, names, 3 * KB)
    expect(received.toSorted()).toEqual(['awaited', 'watched'])

    const read = await ledger.read(['awaited', 'watched'])
    expect(read.map((view) => view?.result?.length)).toEqual([3 * KB, 3 * KB])

    await clock.advance(1)
    await run(ledger, ['x', 'y', 'z'], 3 * KB)
    expect(await kept(ledger, ['awaited', 'watched', 'y', 'z'])).toEqual(['y', 'z'])
  })

  it('stay no longer than a minute if the notified waiter never reads', async () => {
    const { ledger, clock } = opened(bounds)
    ledger.onInbox('me', () => undefined)
    await ledger.commit([enqueue(envelope('awaited', { waiter: 'me' }))])
    await ledger.commit((await claim(ledger)).map((item) => finish(item, 'r'.repeat(20 * KB))))
    await clock.advance(59_999)
    await ledger.claim({ queues: [], leaseMs: 1, worker: 'w' })
    expect((await ledger.inspect!.counts())[0]?.counts).toEqual({ completed: 1 })
    await clock.advance(1)
    expect((await ledger.claim({ queues: [], leaseMs: 1, worker: 'w' })).removed).toBe(1)
    expect(await ledger.inspect!.counts()).toEqual([])
  })

  it('include groups, whose values weigh as much', async () => {
    const { ledger } = opened(bounds)
    const groups = ['g1', 'g2', 'g3', 'g4']
    for (const groupId of groups) {
      await ledger.commit([1, 2].map((n) => enqueue(envelope(`${groupId} ${n}`, { groupId }))))
      const [first, second] = await claim(ledger)
      const value = { do: 'setGroupValue', groupId, value: 'v'.repeat(4 * KB), final: false } as const
      await ledger.commit([finish(first!, '1', [value]), finish(second!, '1')])
    }
    const left = (await ledger.groups(groups)).map((group) => group?.value?.length)
    expect(left).toEqual([undefined, undefined, undefined, 4 * KB])
  })

  it('take their dead letters along, which is reported', async () => {
    const evicted: string[] = []
    const { backend, ledger } = opened({ ...bounds, queue: { onEvict: ({ error }) => void evicted.push(error[0]!) } })
    await ledger.commit(names.map((id) => heavy(id, 3 * KB)))
    for (const item of await claim(ledger)) await ledger.commit([deadLetter(item, item.lease.id, DAY)])
    expect(evicted).toEqual(['a', 'b', 'c'])
    expect(backend.queue.dead.map(({ error }) => error)).toEqual(['d', 'e'])
  })
})
