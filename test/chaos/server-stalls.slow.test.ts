import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { machineNow } from './machine-time.mjs'
import { watchServer } from './server-stalls.js'
import { Timeline } from './timeline.js'

// Real time: how long a server takes is measured.
it('a server that takes long to answer disturbs all, one that answers in time or not at all disturbs none', async () => {
  const timeline = new Timeline()
  const from = machineNow()
  const answers = [async () => {}, () => pause(1_000), () => pause(1_000).then(() => Promise.reject(new Error('gone')))]
  let asked = 0
  const watch = watchServer(() => (answers[asked++] ?? answers[0]!)(), timeline, 2_000)
  await pause(900)
  expect(timeline.count('server')).toBe(0)
  await pause(2_000)
  watch.close()

  expect(timeline.count('server')).toBe(1)
  expect(timeline.isDisturbed('worker-1', from, machineNow())).toBe(true)
  expect(timeline.faultsOf('worker-1', from, machineNow())).toBe(0)
})
