import { readFileSync } from 'node:fs'
import { createGuild, guild, runWithGuild } from 'millrace/guild'
import type { ClerkApi } from 'millrace/guild/clerk'
import clockworksRetry, {
  type ClockworksRetryApi,
  createClockworksRetry,
  MAX_RETRY_ATTEMPTS,
  type SpiderWritStatus,
} from 'millrace/guild/clockworks-retry'
import { MemorySpace, memoryStacks } from 'millrace/guild/stacks'
import { expect, it, onTestFinished } from 'vitest'
import { spiderGuild } from '../spider/spider-guild.js'

it('is what its page says: a cap of two, found by its id', async () => {
  const g = await createGuild({
    config: { plugins: ['stacks', 'clerk', 'fabricator', 'spider', 'clockworks-retry'], stacks: { backend: 'memory' } },
    strict: true,
  })
  const retry = runWithGuild(g, () => guild().apparatus<ClockworksRetryApi>('clockworks-retry'))
  expect(MAX_RETRY_ATTEMPTS).toBe(2)
  expect(retry.maxAttempts).toBe(MAX_RETRY_ATTEMPTS)
  const status: SpiderWritStatus = { stuckCause: 'engine-failure', retryable: true, detail: '' }
  expect(status.retryable).toBe(true)
  await g.shutdown()
})

it('is inert without Spider, with one warning', async () => {
  const g = await createGuild({
    config: { plugins: ['stacks', 'clerk', 'clockworks-retry'], stacks: { backend: 'memory' } },
  })
  expect(g.startupWarnings()).toEqual([expect.stringContaining('spider')])
  const clerk = g.apparatus<ClerkApi>('clerk')
  const writ = await clerk.post({ title: 'a', body: '' })
  await clerk.transition(writ.id, 'stuck')
  expect((await clerk.show(writ.id)).phase).toBe('stuck')
  // Zero rigs are below the cap, also where the book of rigs was not declared.
  expect(await g.apparatus<ClockworksRetryApi>('clockworks-retry').describe(writ.id)).toMatchObject({ attempts: 0 })
  await g.shutdown()
})

it('loads nothing of Spider but how its status of a writ is read', () => {
  const loads = (file: string) =>
    readFileSync(new URL(`../../../src/guild/${file}.ts`, import.meta.url), 'utf8')
      .split('\n')
      .filter((line) => / from '\./.test(line) && !/^(import|export) type /.test(line))
  for (const file of ['index', 'apparatus', 'observer', 'describe', 'api', 'cap'])
    for (const line of loads(`clockworks-retry/${file}`).filter((one) => one.includes('/spider/')))
      expect(line).toBe("import { spiderStatusOf } from '../spider/dispatch/writ-status.js'")
  expect(loads('spider/dispatch/writ-status')).toEqual([])
})

it('requires Stacks and the Clerk and recommends Spider, also as a new instance', () => {
  for (const plugin of [clockworksRetry, createClockworksRetry()]) {
    if (!('apparatus' in plugin)) throw new Error('no apparatus')
    const { requires, recommends } = plugin.apparatus
    expect({ requires, recommends }).toEqual({ requires: ['stacks', 'clerk'], recommends: ['spider'] })
  }
})

it('starts as cheaply beside a hundred and fifty writs at the cap as beside one', async () => {
  const begun: number[] = []
  for (const count of [1, 150]) {
    const space = new MemorySpace()
    const ground = { backend: () => memoryStacks({ space }), close: async () => undefined }
    const before = await spiderGuild(ground, { spider: { rigTemplateMappings: {} } })
    for (let n = 0; n < count; n += 1) {
      const writ = await before.post()
      for (const attempt of [1, 2])
        await before.stacks
          .book('spider', 'rigs')
          .put({ id: `${writ.id}-${attempt}`, writId: writ.id, status: 'stuck', attempt } as never)
      await before.stacks.transaction(async () => {
        await before.clerk.transition(writ.id, 'stuck')
        await before.clerk.setWritStatus(writ.id, 'spider', { retryable: true, rigId: `${writ.id}-2` })
      })
    }
    await before.g.shutdown()
    const backend = memoryStacks({ space })
    const begin = backend.begin.bind(backend)
    let transactions = 0
    backend.begin = (options) => {
      transactions += 1
      return begin(options)
    }
    const after = await spiderGuild(
      { backend: () => backend, close: async () => undefined },
      { hasRetry: true, spider: { rigTemplateMappings: {} } },
    )
    onTestFinished(() => after.g.shutdown())
    begun.push(transactions)
  }
  expect(begun[1]).toBe(begun[0])
})
