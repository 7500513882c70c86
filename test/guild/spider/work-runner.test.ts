import { createWork, memoryBackend } from 'millrace'
import { FakeClock } from 'millrace/testing'
import { expect, it, onTestFinished } from 'vitest'
import { onMemory } from '../grounds.js'
import { spiderGuild, thrower } from './spider-guild.js'

/** Waits for the end of something that runs by itself, in real time: the work engine is woken, so this takes milliseconds. */
async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5))
}

it('runs writs by itself, woken and not polled, and retries the one that fails', async () => {
  const runs: string[] = []
  const made = await spiderGuild(await onMemory.open(), {
    hasRetry: true,
    spider: { pollIntervalMs: 60_000, maxConcurrentEngines: 2 },
    designs: {
      flaky: async (_, { rigId, idempotencyKey = '', attempt }) => {
        runs.push(idempotencyKey)
        expect(idempotencyKey).toBe(`${rigId}/only/${attempt}`)
        if (runs.length === 1) throw new Error('the first one fails')
        return { status: 'completed', yields: { runs: runs.length } }
      },
    },
  })
  const w = createWork({ work: [made.spider.engineWork], pollInterval: 60_000 })
  const running = made.spider.start({ work: w })
  onTestFinished(async () => {
    await running.stop()
    await w.stop()
    await made.g.shutdown()
  })
  const first = await made.post()
  // Open only when it is linked: it would be run immediately.
  const second = await made.clerk.post({ title: 'a writ', body: '', draft: true })
  await made.follows(second, first)
  await made.clerk.transition(second.id, 'open')
  await until(async () => (await made.phaseOf(second)) === 'completed')
  expect(await made.phaseOf(first)).toBe('completed')
  expect((await made.rigsOf(first)).map(({ status }) => status)).toEqual(['stuck', 'completed'])
  expect(await made.rigsOf(second)).toHaveLength(1)
  // Every run was an item under its own key, and failure was an outcome: nothing is dead. The last one is settled after its writ.
  await until(async () => (await w.list()).every(({ status }) => status !== 'running'))
  const states = await w.list()
  expect(states.map(({ id }) => id).sort()).toEqual([...runs].sort())
  expect(new Set(states.map(({ status }) => status))).toEqual(new Set(['success']))
  expect(await made.stacks.book('spider', 'slots').count()).toBe(0)
})

it('goes through blocks and in-rig retries by itself', async () => {
  let runs = 0
  const made = await spiderGuild(await onMemory.open(), {
    spider: { pollIntervalMs: 60_000 },
    designs: {
      patient: {
        retry: { maxAttempts: 1, backoff: { initialMs: 5, maxMs: 5 } },
        run: async (_, { priorBlock, attempt }) => {
          runs += 1
          if (attempt === 1) throw new Error('once more')
          return priorBlock === undefined
            ? { status: 'blocked', blockType: 'scheduled-time', condition: { resumeAt: new Date(0).toISOString() } }
            : { status: 'completed', yields: 1 }
        },
      },
      thrower,
    },
  })
  const w = createWork({ work: [made.spider.engineWork], pollInterval: 60_000 })
  const running = made.spider.start({ work: w })
  onTestFinished(async () => {
    await running.stop()
    await w.stop()
    await made.g.shutdown()
  })
  const writ = await made.post()
  await until(async () => (await made.phaseOf(writ)) === 'completed')
  expect(runs).toBe(3)
  expect(await made.rigsOf(writ)).toHaveLength(1)
})

it('a run whose item is cancelled is cancelled with its rig and its writ', async () => {
  let key = ''
  const made = await spiderGuild(await onMemory.open(), {
    designs: {
      long: (_, { signal, idempotencyKey = '' }) => {
        key = idempotencyKey
        return new Promise((__, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)))
      },
    },
  })
  const w = createWork({ work: [made.spider.engineWork] })
  const running = made.spider.start({ work: w })
  onTestFinished(async () => {
    await running.stop()
    await w.stop()
    await made.g.shutdown()
  })
  const writ = await made.post()
  await until(() => key !== '')
  await w.cancel(key, 'not today')
  await until(async () => (await made.phaseOf(writ)) !== 'open')
  expect(await made.clerk.show(writ.id)).toMatchObject({ phase: 'cancelled', resolution: 'not today' })
  expect((await made.rigsOf(writ)).map(({ status }) => status)).toEqual(['cancelled'])
  expect(await made.stacks.book('spider', 'slots').count()).toBe(0)
})

it.each([
  ['immediately', 0],
  ['when the new one is away at first', 1],
])('runs an engine again whose item was lost with its work system, %s', async (_, failures) => {
  const ground = await onMemory.open()
  const keys: string[] = []
  const designs = {
    slow: async (_: unknown, { idempotencyKey = '' }: { readonly idempotencyKey?: string }) => {
      keys.push(idempotencyKey)
      // The first run is in a process that never comes back.
      if (keys.length === 1) await new Promise(() => undefined)
      return { status: 'completed', yields: 1 } as const
    },
  }
  const lost = await spiderGuild(ground, { designs })
  const writ = await lost.post()
  const lostWork = createWork({ work: [lost.spider.engineWork] })
  const lostSpider = lost.spider.start({ work: lostWork })
  await until(() => keys.length === 1)
  await lostSpider.stop()
  const next = await spiderGuild(ground, { designs })
  const w = createWork({ work: [next.spider.engineWork] })
  let calls = 0
  const enqueue = ((...args: Parameters<typeof w.enqueue>) => {
    calls += 1
    return calls <= failures ? { accepted: () => Promise.reject(new Error('away')) } : w.enqueue(...args)
  }) as typeof w.enqueue
  const running = next.spider.start({ work: { ...w, enqueue } })
  onTestFinished(async () => {
    await running.stop()
    await w.stop()
    await next.g.shutdown()
  })

  await until(async () => (await next.phaseOf(writ)) === 'completed')

  expect(calls).toBe(failures + 1)
  expect(keys[1]).toBe(keys[0])
  expect(await next.rigsOf(writ)).toHaveLength(1)
  // The item that was made anew was run, and no other had to be made for it.
  expect((await w.list()).map(({ id }) => id)).toEqual([keys[0]])
})

it('over plain ports, which forget the state of what waits for more than a day, it waits with it', async () => {
  const clock = new FakeClock()
  // The day passes for the items alone: the guild's store renews a lease every few seconds.
  const workClock = new FakeClock()
  const items = memoryBackend({ clock: workClock })
  // A copy of a port is none of the backend's own.
  const ports = { queue: items.queue, pubsub: items.pubsub, store: { ...items.store } }
  const ground = await onMemory.open()
  const member = async () => {
    const made = await spiderGuild(ground, { clock, spider: { pollIntervalMs: 3_600_000 } })
    const w = createWork({
      ...ports,
      clock: workClock,
      autoStart: false,
      pollInterval: 60_000,
      work: [made.spider.engineWork],
    })
    const running = made.spider.start({ work: w })
    onTestFinished(async () => {
      await running.stop()
      await w.stop()
      await made.g.shutdown()
    })
    await clock.advance(1)
    await workClock.advance(1)
    return { ...made, w, running }
  }
  const first = await member()
  const writ = await first.post()
  await clock.advance(1)
  await workClock.advance(1)
  const second = await member()
  expect(second.w.capabilities.atomic).toBe(false)
  await first.running.stop()

  await workClock.advance(26 * 3_600_000)
  // The guild polls twice meanwhile, and finds the state forgotten.
  await clock.advance(2 * 3_600_000)

  const [item = ''] = (await first.w.list()).map(({ id }) => id)
  expect(await second.w.states([item])).toEqual([undefined])
  expect(await second.phaseOf(writ)).toBe('open')
  second.w.start()
  await workClock.advance(1_000)
  await clock.advance(1_000)
  expect(await second.phaseOf(writ)).toBe('completed')
})
