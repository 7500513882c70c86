import { MemorySpace, memoryStacks, openStacks } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it } from 'vitest'

const turns = async () => {
  for (let n = 0; n < 30; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('a process that stood still while another took over its durable watcher', () => {
  // By timer: the renewal notices it. Without: its clock is stopped, and storing the progress notices it.
  it.each([
    { by: 'its renewal', ms: 150 },
    { by: 'storing its progress', ms: 0 },
  ])('stops by $by', async ({ ms }) => {
    const space = new MemorySpace()
    // The store's time goes on; that of the stalled process does not.
    const [time, stalled] = [new FakeClock(), new FakeClock()]
    const log: string[] = []
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const process = async (name: string, clock: FakeClock, handler: (id: string) => Promise<void> | void) => {
      const backend = memoryStacks({ space, clock: time })
      const stacks = await openStacks({ backend, clock, watcherLeaseMs: 100 })
      await stacks.declare('o', { a: {} })
      stacks.watch<{ id: string }>(
        'o',
        'a',
        async (event) => {
          if (event.type === 'delete') return
          log.push(`${name}${event.entry.id}`)
          await handler(event.entry.id)
        },
        { durable: 'w' },
      )
      await stacks.seal()
      return stacks
    }
    const a = await process('A', stalled, (id) => (id === '1' ? gate : undefined))
    // Another watcher that no process handles keeps the events, so they could be delivered again.
    await memoryStacks({ space }).outbox.register('idle', { ownerId: 'o', book: 'a' })
    const writer = await openStacks({ backend: memoryStacks({ space, clock: time }), clock: time })
    const book = writer.book('o', 'a')
    await writer.transaction(async () => {
      for (const id of ['1', '2', '3']) await book.put({ id })
    })
    await turns()
    await time.advance(200)
    const b = await process('B', time, () => undefined)
    await turns()
    await book.put({ id: '4' })
    await turns()
    expect(log).toEqual(['A1', 'B1', 'B2', 'B3', 'B4'])
    const cursors: number[] = []
    const row = space.watchers.get('w')!
    let cursor = row.cursor
    Object.defineProperty(row, 'cursor', {
      get: () => cursor,
      set: (value: number) => {
        cursors.push(value)
        cursor = value
      },
    })

    if (ms > 0) await stalled.advance(ms)
    open()
    await turns()
    const again = log.slice(5)
    expect(cursors).toEqual([])
    expect(cursor).toBe(4)
    // What it had read before may be delivered once more, but not a third time.
    expect(again).toEqual(ms > 0 ? [] : ['A2', 'A3'])
    await book.put({ id: '5' })
    await turns()
    expect(log.slice(5 + again.length)).toHaveLength(1)
    for (const stacks of [a, b, writer]) await stacks.close()
  })
})
