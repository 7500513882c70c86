import { MemorySpace, memoryStacks, openStacks, type StacksBackend } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it } from 'vitest'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const turns = async () => {
  for (let n = 0; n < 30; n += 1) await turn()
}

/** A store whose answers about the outbox take a moment, as over a network. */
function distant(backend: StacksBackend): void {
  const { outbox } = backend
  for (const name of ['isBehind', 'claim', 'read', 'advance'] as const) {
    const answer = outbox[name].bind(outbox) as (...args: unknown[]) => Promise<unknown>
    Object.assign(outbox, {
      [name]: async (...args: unknown[]) => {
        const value = await answer(...args)
        await turn()
        return value
      },
    })
  }
}

describe('a write whose durable watcher had nothing left to do resolves after it', () => {
  it('though a query from before the commit comes back with nothing', async () => {
    const space = new MemorySpace()
    const backend = memoryStacks({ space })
    distant(backend)
    const stacks = await openStacks({ backend })
    await stacks.declare('o', { a: {} })
    const seen: string[] = []
    stacks.watch('o', 'a', (event) => void seen.push(event.type), { durable: 'w' })
    await stacks.seal()
    const isBehind = backend.outbox.isBehind.bind(backend.outbox)
    let arrive: (() => void) | undefined
    backend.outbox.isBehind = async (name) => {
      backend.outbox.isBehind = isBehind
      const answer = await isBehind(name)
      await new Promise<void>((resolve) => {
        arrive = resolve
      })
      return answer
    }
    // A wake-up without an event: stores may call late, or once too often.
    space.wake()
    await turns()
    expect(arrive).toBeDefined()

    const written = stacks.book('o', 'a').put({ id: 'new' })
    await turns()
    arrive?.()
    await written

    expect(seen).toEqual(['create'])
    await stacks.close()
  })

  it.each([
    { what: 'its handler takes long', ms: 60, documents: 1 },
    { what: 'the transaction before filled a batch', ms: 0, documents: 100 },
  ])('though $what', async ({ ms, documents }) => {
    const clock = new FakeClock()
    const backend = memoryStacks()
    distant(backend)
    const stacks = await openStacks({ backend, clock })
    await stacks.declare('o', { a: {} })
    let handled = 0
    const count = async () => {
      await clock.advance(ms)
      handled += 1
    }
    stacks.watch('o', 'a', count, { durable: 'w' })
    await stacks.seal()
    const book = stacks.book('o', 'a')

    for (let n = 1; n <= 3; n += 1) {
      await stacks.transaction(async () => {
        for (let k = 0; k < documents; k += 1) await book.put({ id: `${n}-${k}` })
      })
      expect(handled).toBe(n * documents)
    }
    await stacks.close()
  })
})
