import { guild, type PluginSource } from 'millrace/guild'
import type { WritDoc } from 'millrace/guild/clerk'
import { postgresStacks, type StacksApi } from 'millrace/guild/stacks'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { spiderGuild } from './spider-guild.js'

let server: Awaited<ReturnType<typeof startPostgres>>
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(() => server.stop())

it('what an engine came to is recorded though the connection is cut while it is, and the engine does not run again', async () => {
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  onTestFinished(() => admin.end())
  let [cuts, runs] = [0, 0]
  const saboteur: PluginSource = {
    package: 'saboteur-apparatus',
    plugin: {
      apparatus: {
        requires: ['stacks', 'clerk', 'spider'],
        start: () =>
          guild()
            .apparatus<StacksApi>('stacks')
            .watch<WritDoc>('clerk', 'writs', async (event) => {
              if (event.type !== 'update' || event.entry.phase !== 'completed' || cuts === 2) return
              cuts += 1
              await admin.query(
                `select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and state = 'idle in transaction'`,
              )
              // Once it is the handler that notices, once whatever comes after it.
              if (cuts === 2) await guild().apparatus<StacksApi>('stacks').book('clerk', 'writs').get(event.entry.id)
            }),
      },
    },
  }
  const backend = postgresStacks({ connectionString: server.url, schema: 'settling', maxConnections: 4 })
  const made = await spiderGuild(
    { backend: () => backend, close: async () => undefined },
    {
      designs: {
        once: async () => {
          runs += 1
          return { status: 'completed', yields: { runs } }
        },
      },
      plugins: [saboteur],
    },
  )
  onTestFinished(() => made.g.shutdown())
  const writ = await made.post()
  await made.drain()
  expect(await made.clerk.show(writ.id)).toMatchObject({ phase: 'completed', resolution: '{"runs":1}' })
  expect([cuts, runs]).toEqual([2, 1])
  expect(made.warnings.map(({ code }) => code)).toEqual(['SETTLE_FAILED', 'SETTLE_FAILED'])
})
