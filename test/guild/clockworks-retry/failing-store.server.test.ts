import { NonRetryableError } from 'millrace'
import { guild, type PluginSource } from 'millrace/guild'
import type { WritDoc } from 'millrace/guild/clerk'
import type { ClockworksRetryApi } from 'millrace/guild/clockworks-retry'
import { createStacks, postgresStacks, type Stacks, type StacksApi, type StacksWarning } from 'millrace/guild/stacks'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { type SpiderGuild, spiderGuild, thrower } from '../spider/spider-guild.js'

let server: Awaited<ReturnType<typeof startPostgres>>
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(() => server.stop())

/** Calls back inside the transaction in which a writ is opened again. */
const onRequeue = (act: () => Promise<void>): PluginSource => ({
  package: 'saboteur-apparatus',
  plugin: {
    apparatus: {
      requires: ['stacks', 'clerk'],
      start: () =>
        guild()
          .apparatus<StacksApi>('stacks')
          .watch<WritDoc>('clerk', 'writs', async (event) => {
            if (event.type === 'update' && event.prev.phase === 'stuck' && event.entry.phase === 'open') await act()
          }),
    },
  },
})

async function guildWith(schema: string, act: () => Promise<void>) {
  const warnings: StacksWarning[] = []
  const backend = postgresStacks({ connectionString: server.url, schema, maxConnections: 4 })
  const made: SpiderGuild = await spiderGuild(
    { backend: () => backend, close: async () => undefined },
    {
      designs: { thrower },
      hasRetry: true,
      plugins: [onRequeue(act)],
      stacks: createStacks({ backend, onWarning: (warning) => warnings.push(warning) }),
    },
  )
  onTestFinished(() => made.g.shutdown())
  const retry = made.g.apparatus<ClockworksRetryApi>('clockworks-retry')
  return { ...made, warnings, retry, store: made.g.apparatus<Stacks>('stacks') }
}

it('a retry whose connection is cut inside its transaction happens all the same', async () => {
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  onTestFinished(() => admin.end())
  let cuts = 0
  const { spider, drain, post, warnings, rigsOf, phaseOf } = await guildWith('cut', async () => {
    cuts += 1
    if (cuts > 2) return
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
    )
  })
  const writ = await post()
  expect((await spider.crawl())?.action).toBe('rig-spawned')
  expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'stuck' })
  await expect.poll(() => phaseOf(writ), { timeout: 10_000 }).toBe('open')
  expect(cuts).toBe(3)
  expect(warnings.map(({ code, watcher }) => [code, watcher])).toEqual([['WATCHER_FAILED', 'clockworks-retry']])
  await drain()
  expect((await rigsOf(writ)).map(({ status }) => status)).toEqual(['stuck', 'stuck'])
})

it('a retry that can never succeed is dead-lettered, described as such, and carried out once the cause is gone', async () => {
  let isVetoed = true
  const { drain, post, warnings, retry, store, rigsOf, phaseOf } = await guildWith('veto', async () => {
    if (isVetoed) throw new NonRetryableError('no second attempts today')
  })
  const writ = await post()
  await drain()
  expect(warnings.map(({ code }) => code)).toEqual(['EVENT_DEAD_LETTERED'])
  const described = await retry.describe(writ.id)
  expect(described).toMatchObject({ decision: 'leave', reason: expect.stringContaining('no second attempts today') })
  const [dead] = await store.deadEvents({ watcher: 'clockworks-retry' })
  expect(described.reason).toContain(`stacks.redeliver("${dead?.id}")`)
  expect(await store.watchers()).toMatchObject([{ name: 'clockworks-retry', behind: 0, dead: 1 }])
  isVetoed = false
  await store.redeliver(dead?.id ?? '')
  expect(await phaseOf(writ)).toBe('open')
  await drain()
  expect((await rigsOf(writ)).map(({ status }) => status)).toEqual(['stuck', 'stuck'])
})
