import { type BackendTx, MemorySpace, memoryStacks, openStacks, type StacksBackend } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type SpiderGuild, type SpiderGuildOptions, spiderGuild } from './spider-guild.js'

/** The reads and writes of a store, by book. */
interface Counts {
  readonly read: Map<string, number>
  readonly written: Map<string, number>
  /** How many questions, however many documents answered them. */
  readonly asked: Map<string, number>
}

/** A guild whose store counts the documents that go through it. */
async function countedGuild(options: SpiderGuildOptions): Promise<{ made: SpiderGuild; counts: Counts }> {
  const counts: Counts = { read: new Map(), written: new Map(), asked: new Map() }
  const add = (to: Map<string, number>, { ownerId, book }: { ownerId: string; book: string }, n: number) =>
    to.set(`${ownerId}/${book}`, (to.get(`${ownerId}/${book}`) ?? 0) + n)
  const counted = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, key) {
        const value = Reflect.get(target, key, target) as unknown
        if (key === 'reads') return counted(value as object)
        if (typeof value !== 'function') return value
        return async (...args: [{ ownerId: string; book: string }, ...unknown[]]) => {
          const answer = (await value.apply(target, args)) as unknown
          if (key === 'begin') return counted(answer as BackendTx)
          if (key === 'find') add(counts.read, args[0], (answer as unknown[]).length)
          if (key === 'get' || key === 'lock') add(counts.read, args[0], 1)
          if (key === 'put') add(counts.written, args[0], 1)
          if (key === 'find' || key === 'get') add(counts.asked, args[0], 1)
          return answer
        }
      },
    })
  const backend: StacksBackend = counted(memoryStacks())
  const made = await spiderGuild({ backend: () => backend, close: async () => undefined }, options)
  onTestFinished(() => made.g.shutdown())
  return { made, counts }
}

/** How many documents all of its crawls together read, and of which book. */
async function readBy(counts: Counts, run: () => Promise<unknown>): Promise<Record<string, number>> {
  counts.read.clear()
  await run()
  return Object.fromEntries([...counts.read].sort())
}

describe('the cost of a crawl', () => {
  // W10
  it('is the same beside three writs that are ready and three sessions that go on as beside sixty of each', async () => {
    const costs: Record<string, number>[] = []
    for (const many of [3, 60]) {
      const { made, counts } = await countedGuild({
        designs: { quick: async (_, { rigId }) => ({ status: 'launched', sessionId: rigId }) },
        spider: { maxConcurrentEngines: 100 },
      })
      for (let n = 0; n < many; n += 1) await made.post()
      while ((await made.spider.crawl()) !== null) {
        // Until all of them run.
      }
      for (let n = 0; n < many; n += 1) await made.post()
      // One is given its rig, then its engine is run. The slots are as many as may run at once, and are read as one list.
      const { 'spider/slots': _, ...read } = await readBy(counts, async () => {
        expect((await made.spider.crawl())?.action).toBe('rig-spawned')
        expect((await made.spider.crawl())?.action).toBe('engine-started')
      })
      costs.push(read)
    }
    expect(costs[1]).toEqual(costs[0])
  })

  // W11
  it('rewrites the engine that it is about, and none of the others in its rig', async () => {
    const LENGTH = 30
    const engines = Array.from({ length: LENGTH }, (_, n) => ({
      id: `e${n}`,
      designId: 'done',
      ...(n === 0 ? {} : { upstream: [`e${n - 1}`] }),
    }))
    const { made, counts } = await countedGuild({ engines })
    const writ = await made.post()
    await made.spider.crawl()
    for (let n = 0; n < LENGTH; n += 1) {
      counts.written.clear()
      await made.spider.crawl()
      // Once when it is claimed, once when it is done.
      expect(counts.written.get('spider/engines')).toBe(2)
    }
    expect(await made.phaseOf(writ)).toBe('completed')
  })

  // W14
  it('does not follow the links of writs that wait, however long their chain', async () => {
    const costs: Record<string, number>[] = []
    for (const length of [3, 40]) {
      const { made, counts } = await countedGuild({})
      let before = await made.clerk.post({ title: 'later', body: '', draft: true })
      for (let n = 0; n < length; n += 1) {
        const writ = await made.post()
        await made.follows(writ, before)
        before = writ
      }
      await made.post('free')
      costs.push(await readBy(counts, () => made.drain()))
    }
    expect(costs[1]).toEqual(costs[0])
  })
})

it('checks three items that were handed over with as many queries as thirty', async () => {
  const costs: Record<string, number>[] = []
  for (const many of [3, 30]) {
    const clock = new FakeClock()
    const { made, counts } = await countedGuild({ clock, spider: { maxConcurrentEngines: many } })
    for (let n = 0; n < many; n += 1) await made.post()
    let checks = 0
    const running = made.spider.start({
      work: {
        capabilities: { atomic: true, inspect: true },
        enqueue: (() => ({ accepted: async () => undefined })) as never,
        states: async (ids) => {
          checks += 1
          expect(ids).toHaveLength(many)
          return ids.map((id) => ({
            id,
            type: 'spider.engine',
            status: 'pending',
            attempt: 1,
            priority: 0,
            queueAt: 0,
            startAt: 0,
          }))
        },
      },
    })
    const rows = made.stacks.book('spider', 'queue')
    while ((await rows.count([['kind', '=', 'item']])) < many) await running.settled()
    await running.settled()
    const before = checks
    counts.asked.clear()
    await clock.advance(5_000)
    while (checks === before) await running.settled()
    await running.settled()
    costs.push(Object.fromEntries([...counts.asked].sort()))
    await running.stop()
  }
  expect(costs[0]?.['spider/engines']).toBe(1)
  expect(costs[1]).toEqual(costs[0])
})

// W13
it('a transaction in memory reads the documents that it touches, and no other', async () => {
  const space = new MemorySpace()
  const stacks = await openStacks({ backend: memoryStacks({ space }) })
  onTestFinished(() => stacks.close())
  await stacks.declare('o', { a: {} })
  await stacks.seal()
  const book = stacks.book<{ id: string; n: number }>('o', 'a')
  await stacks.transaction(async () => {
    for (let n = 0; n < 500; n += 1) await book.put({ id: `d${n}`, n })
  })
  const documents = space.books.get('o/a')!
  let walks = 0
  for (const name of ['values', 'keys', 'entries', 'forEach', Symbol.iterator] as const) {
    const walk = documents[name].bind(documents) as (...args: unknown[]) => unknown
    Object.defineProperty(documents, name, {
      value: (...args: unknown[]) => {
        walks += 1
        return walk(...args)
      },
    })
  }
  expect(await book.count()).toBe(500)
  expect(walks).toBeGreaterThan(0)
  walks = 0
  await stacks.transaction(async () => {
    await book.put({ id: 'd1', n: ((await book.get('d2'))?.n ?? 0) + 1 })
    await book.delete('d3')
  })
  await stacks.transaction(async () => Promise.reject(new Error('undone'))).catch(() => undefined)
  expect(walks).toBe(0)
})
