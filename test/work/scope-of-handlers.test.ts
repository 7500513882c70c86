import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, it } from 'vitest'
import { memoryBackend } from '../../src/backends/memory/index.js'
import { createWork, defineBatchWork, defineWork, priorityDoer, unlimitedDoer } from '../../src/index.js'

it.each([
  ['in the places that there are by default', {}, {}],
  ['in one place', { concurrency: 1 }, {}],
  ['in the places of a doer', { doer: priorityDoer({ max: 2 }) }, {}],
  ['without a limit', { doer: unlimitedDoer() }, {}],
  ['within a limit of their type', {}, { concurrency: 1 }],
] as const)('a handler sees nothing that another has entered in a context: %s', async (_, system, type) => {
  const context = new AsyncLocalStorage<string>()
  const seen: (string | undefined)[] = []
  const enter = (name: string) => {
    seen.push(context.getStore())
    context.enterWith(name)
  }
  const now = defineWork('now', (n: number) => enter(`now ${n}`), type)
  const later = defineWork(
    'later',
    async (n: number) => {
      enter(`later ${n}`)
      await null
      seen.push(context.getStore() === `later ${n}` ? undefined : 'what another entered')
    },
    type,
  )
  const failing = defineWork(
    'failing',
    (n: number) => {
      enter(`failing ${n}`)
      throw new Error('it fails')
    },
    { retry: { attempts: 1 }, ...type },
  )
  const together = defineBatchWork('together', {
    size: 5,
    maxWait: 1,
    run: (inputs: readonly number[]) => {
      enter('together')
      return inputs.map((n) => n)
    },
  })
  const w = createWork({ backend: memoryBackend(), work: [now, later, failing, together], autoStart: false, ...system })
  await context.run('the caller', async () => {
    for (let n = 0; n < 20; n += 1) await w.enqueueMany([now(n), later(n), failing(n), together(n)])
  })
  await w.runUntilIdle()
  await w.stop()

  expect(seen.length).toBeGreaterThanOrEqual(84)
  expect(new Set(seen)).toEqual(new Set([undefined]))
})
