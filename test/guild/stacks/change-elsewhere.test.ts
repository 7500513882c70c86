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

it('whoever asks is called back when another process writes what a durable watcher is told, until that is ended', async () => {
  const space = new MemorySpace()
  const [here, there] = [await opened(space), await opened(space)]
  let looks = 0
  const stop = here.onChangeElsewhere(() => (looks += 1))
  await there.book('o', 'other').put({ id: 'a' })
  await turn()
  expect(looks).toBe(0)
  await there.book('o', 'watched').put({ id: 'a' })
  await turn()
  expect(looks).toBeGreaterThan(0)
  const heard = looks
  stop()
  await there.book('o', 'watched').put({ id: 'b' })
  await turn()
  expect(looks).toBe(heard)
})

it('is no callback, or the store is closed: it says so', async () => {
  const stacks = await openStacks({ backend: memoryStacks() })
  expect(() => stacks.onChangeElsewhere(7 as never)).toThrow('onChangeElsewhere(look)')
  await stacks.close()
  expect(() => stacks.onChangeElsewhere(() => undefined)).toThrow(expect.objectContaining({ code: 'STACKS_CLOSED' }))
})
