import { createWork, memoryBackend } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/core/time/clock.js'
import { Gauges } from '../../load/gauges.js'
import { onMemory, onSqlite } from '../grounds.js'
import { spiderGuild } from './spider-guild.js'

const WRITS = 300
/** A timer, a request or a heartbeat waits this long at most. */
const STALL_MS = 250

it.each([onMemory, onSqlite])('a guild with more writs than it can work on lets timers in, on $name', async (kind) => {
  const ground = await kind.open()
  onTestFinished(() => ground.close())
  let [now, most] = [0, 0]
  const made = await spiderGuild(ground, {
    clock: systemClock,
    designs: {
      quick: async () => {
        now += 1
        most = Math.max(most, now)
        await Promise.resolve()
        now -= 1
        return { status: 'completed', yields: { ok: true } }
      },
    },
  })
  onTestFinished(() => made.g.shutdown())
  for (let n = 0; n < WRITS; n += 1) await made.post()
  const gauges = new Gauges()
  await gauges.begin()
  const w = createWork({ backend: memoryBackend(), work: [made.spider.engineWork] })
  const running = made.spider.start({ work: w })
  onTestFinished(async () => {
    await running.stop()
    await w.stop()
  })
  await expect.poll(() => made.clerk.count({ phase: 'completed' }), { timeout: 60_000, interval: 50 }).toBe(WRITS)
  const { stallMs } = await gauges.end()
  expect(most).toBeLessThanOrEqual(32)
  expect(stallMs).toBeLessThan(STALL_MS)
})
