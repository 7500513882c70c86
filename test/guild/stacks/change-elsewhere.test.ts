import { MemorySpace, memoryStacks, openStacks, type Stacks } from 'millrace/guild/stacks'
import { expect, it, onTestFinished } from 'vitest'

async function opened(space: MemorySpace): Promise<Stacks> {
  const stacks = await openStacks({ backend: memoryStacks({ space }) })
  onTestFinished(() => stacks.close())
  await stacks.declare('o', { watched: {}, other: {} })
  stacks.watch('o', 'watched', () => undefined, { durable: 'd' })
  await stacks.seal()
  return stacks
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

it('calls back when another process writes to a book that a durable watcher watches, until that is ended', async () => {
  const space = new MemorySpace()
  const [here, there] = [await opened(space), await opened(space)]
  let calls = 0
  const stop = here.onChangeElsewhere(() => (calls += 1))
  await there.book('o', 'other').put({ id: 'a' })
  await turn()
  expect(calls).toBe(0)
  await there.book('o', 'watched').put({ id: 'a' })
  await turn()
  expect(calls).toBeGreaterThan(0)
  const before = calls
  stop()
  await there.book('o', 'watched').put({ id: 'b' })
  await turn()
  expect(calls).toBe(before)
})

it('is no callback, or the store is closed: it says so', async () => {
  const stacks = await openStacks({ backend: memoryStacks() })
  expect(() => stacks.onChangeElsewhere(7 as never)).toThrow('onChangeElsewhere(callback)')
  await stacks.close()
  expect(() => stacks.onChangeElsewhere(() => undefined)).toThrow(expect.objectContaining({ code: 'STACKS_CLOSED' }))
})
