import { createWork, memoryBackend } from 'millrace'
import type { EngineRunContext } from 'millrace/guild/fabricator'
import { MemorySpace, memoryStacks } from 'millrace/guild/stacks'
import { expect, it, onTestFinished } from 'vitest'
import { onMemory } from '../grounds.js'
import { spiderGuild } from './spider-guild.js'

/** Waits for the end of something that runs by itself, in real time: the work engine is woken, so this takes milliseconds. */
async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 2))
}

/** Processes that share documents and items: each a guild and a work system. */
function fleet(run: (signal: AbortSignal) => Promise<void>) {
  const space = new MemorySpace()
  const items = memoryBackend()
  return async () => {
    const backend = memoryStacks({ space })
    const begin = backend.begin.bind(backend)
    let held: Promise<void> | undefined
    backend.begin = async (options) => {
      await held
      return begin(options)
    }
    const made = await spiderGuild(
      { backend: () => backend, close: async () => undefined },
      {
        designs: {
          long: async (_, { signal }) => {
            await run(signal!)
            return { status: 'completed', yields: 1 }
          },
        },
      },
    )
    const w = createWork({ backend: items, work: [made.spider.engineWork], stopDrain: 0 })
    const running = made.spider.start({ work: w })
    return {
      ...made,
      w,
      /** What it writes from the stop of its work system on reaches the store after that. */
      stop: async (writes?: Promise<void>) => {
        await running.stop()
        held = writes
        await w.stop()
        await made.g.shutdown()
      },
    }
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))

it.each(['before', 'after'])(
  'a process that is stopped while its engine runs gives it back, which is no death, however often; it says so %s another took it',
  async (order) => {
    let runs = 0
    let onRun = () => {}
    const RESTARTS = 5
    const member = fleet(async (signal) => {
      runs += 1
      onRun()
      if (runs <= RESTARTS) await aborted(signal)
    })
    let now = await member()
    const writ = await now.post()
    for (let n = 1; n <= RESTARTS; n += 1) {
      await until(async () => runs === n || (await now.phaseOf(writ)) !== 'open')
      if (order === 'before') {
        await now.stop()
        now = await member()
      } else {
        const next = await member()
        const isRunning = new Promise<void>((resolve) => {
          onRun = resolve
        })
        await now.stop(isRunning)
        now = next
      }
    }
    onTestFinished(() => now.stop())
    await until(async () => (await now.phaseOf(writ)) !== 'open')

    expect(await now.phaseOf(writ)).toBe('completed')
    expect(await now.rigsOf(writ)).toHaveLength(1)
    expect(runs).toBe(RESTARTS + 1)
  },
)

it('an engine that ignores its signal is given back when it is aborted, and its result still counts', async () => {
  let end = () => {}
  const member = fleet(() => new Promise((resolve) => (end = resolve)))
  const [now, other] = [await member(), await member()]
  onTestFinished(() => other.stop())
  const writ = await now.post()
  const claim = async () => (await other.spider.forWrit(writ.id))?.engines[0]?.claim
  await until(async () => (await claim()) !== undefined)
  await Promise.all([now.w.stop(), other.w.stop()])
  await until(async () => (await claim())?.isGivenBack === true)
  end()
  await until(async () => (await other.phaseOf(writ)) === 'completed')
  await now.g.shutdown()
})

it('a guild that shuts down while a crawl runs an engine gives it back, and the next one need not wait', async () => {
  let runs = 0
  const RESTARTS = 5
  const ground = await onMemory.open()
  const options = {
    designs: {
      long: async (_: unknown, { signal }: EngineRunContext) => {
        runs += 1
        if (runs <= RESTARTS) await aborted(signal!)
        return { status: 'completed', yields: 1 } as const
      },
    },
  }
  const first = await spiderGuild(ground, options)
  const writ = await first.post()
  await first.spider.crawl()
  for (let n = 1, now = first; n <= RESTARTS; n += 1) {
    let isOver = false
    const crawling = now.spider.crawl().finally(() => (isOver = true))
    await until(() => runs === n || isOver)
    await now.g.shutdown()
    expect(await crawling).toBeNull()
    now = await spiderGuild(ground, options)
    if (n === RESTARTS) {
      onTestFinished(() => now.g.shutdown())
      expect(await now.spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'completed', writId: writ.id })
    }
  }
  expect(runs).toBe(RESTARTS + 1)
})
