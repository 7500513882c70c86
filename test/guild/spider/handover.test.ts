import { createWork, memoryBackend } from 'millrace'
import { MemorySpace, memoryStacks } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { expect, it } from 'vitest'
import { mortal } from '../mortal-backend.js'
import { spiderGuild } from './spider-guild.js'

const turns = async () => {
  for (let n = 0; n < 20; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

/**
 * A process that plans and runs nothing is killed at this call to the store, counted from the commit that gives the writ its rig; then
 * another one starts, and runs what was handed over. Returns its calls, and how many it had made when it pushed the item.
 */
async function killedAt(call: number): Promise<{ calls: readonly string[]; pushedAfter: number }> {
  const space = new MemorySpace()
  const runs: string[] = []
  const designs = {
    done: async (_: unknown, { idempotencyKey = '' }: { readonly idempotencyKey?: string }) => {
      runs.push(idempotencyKey)
      return { status: 'completed', yields: 1 } as const
    },
  }
  const items = memoryBackend()
  const victim = mortal(memoryStacks({ space }))
  const ground = (backend: ReturnType<typeof memoryStacks>) => ({
    backend: () => backend,
    close: async () => undefined,
  })
  // Its clock stands still: once it is dead, so are its timers.
  const dying = await spiderGuild(ground(victim.backend), { designs, clock: new FakeClock() })
  const writ = await dying.post()
  const queue = createWork({ backend: items, work: [] as never, autoStart: false })
  let pushedAfter = Infinity
  victim.dieAt(call)
  dying.spider.start({
    work: {
      enqueue: ((...args: Parameters<typeof queue.enqueue>) => {
        if (victim.isDead) return { accepted: () => new Promise(() => undefined) }
        pushedAfter = Math.min(pushedAfter, victim.calls.length)
        return queue.enqueue(...args)
      }) as never,
      capabilities: queue.capabilities,
      states: (ids) => (victim.isDead ? new Promise(() => undefined) : queue.states(ids)),
    },
  })
  await turns()
  expect(victim.isDead).toBe(call < Infinity)
  const { calls } = victim
  const next = await spiderGuild(ground(memoryStacks({ space })), { designs, spider: { pollIntervalMs: 100 } })
  const w = createWork({ backend: items, work: [next.spider.engineWork] })
  const running = next.spider.start({ work: w })
  const isOver = async () =>
    (await next.phaseOf(writ)) === 'completed' && (await w.list()).every(({ status }) => status !== 'running')
  while (!(await isOver())) await new Promise((resolve) => setTimeout(resolve, 2))
  const [rig, ...others] = await next.rigsOf(writ)
  expect(others).toEqual([])
  expect(runs).toEqual([`${rig?.id}/only/1`])
  expect((await w.list()).map(({ id, status }) => [id, status])).toEqual([[`${rig?.id}/only/1`, 'success']])
  await running.stop()
  await w.stop()
  await queue.stop()
  await next.g.shutdown()
  return { calls, pushedAfter }
}

it('a process killed between the commit and the push, or before the push is noted: the engine is handed over, and runs once', async () => {
  const { calls, pushedAfter } = await killedAt(Infinity)
  const commits = calls.flatMap((name, index) => (name === 'commit' ? [index + 1] : []))
  // The rig, the engine that is admitted, and the note that its item was pushed.
  expect(commits).toHaveLength(3)
  const [, admitted = 0, noted = 0] = commits
  expect(admitted).toBeLessThan(pushedAfter)
  expect(noted).toBeGreaterThan(pushedAfter)
  for (const call of new Set([...commits, admitted + 1, pushedAfter, pushedAfter + 1, noted - 1])) await killedAt(call)
})
