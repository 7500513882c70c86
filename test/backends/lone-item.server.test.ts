import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresBackend } from '../../src/backends/postgres/index.js'
import { redisBackend } from '../../src/backends/redis/index.js'
import { createWork, defineWork } from '../../src/index.js'
import type { Ports } from '../../src/ports/ports.js'
import { startPostgres, startRedis } from '../servers/index.js'
import type { PrivateServer } from '../servers/private-server.js'
import { ANSWER_MS, until } from '../servers/wait.js'

const servers: PrivateServer[] = []
let postgres: PrivateServer
let redis: PrivateServer

beforeAll(async () => {
  postgres = await startPostgres({ settings: { fsync: 'off' } })
  servers.push(postgres)
  redis = await startRedis()
  servers.push(redis)
})
afterAll(() => Promise.all(servers.map((server) => server.stop())))

const ITEMS = 5

/**
 * What a lone item asks of the server, from its enqueue until its outcome is written, on a system that is at rest: the least of several,
 * since what a worker does every few seconds may fall beside any one of them.
 */
async function callsOfLoneItem(ports: Ports, calls: string[]): Promise<string[]> {
  const errors: unknown[] = []
  const noop = defineWork('noop', (_n: number) => {})
  let written = 0
  const work = createWork({
    ...ports,
    work: [noop],
    // Neither a poll nor a heartbeat is meant here.
    pollInterval: 60_000,
    visibility: 600_000,
    onError: (error) => errors.push(error),
    onEvent: ({ kind }) => {
      if (kind === 'succeeded') written += 1
    },
  })
  const perItem: string[][] = []
  try {
    // The first ones make connections, tables and numbers.
    for (let i = 0; i < ITEMS + 3; i += 1) {
      calls.length = 0
      await work.add(noop(i))
      await until(
        () => `the outcome of item ${i} is written`,
        ANSWER_MS,
        () => written === i + 1,
      )
      // What nobody waits for would come now.
      await new Promise((resolve) => setTimeout(resolve, 50))
      perItem.push([...calls])
    }
  } finally {
    await work.stop()
  }
  expect(errors).toEqual([])
  return perItem.slice(3).reduce((least, one) => (one.length < least.length ? one : least))
}

describe('a lone item on an idle system', () => {
  it('takes three statements on PostgreSQL: one that adds it, one that claims it, one that ends it', async () => {
    const calls: string[] = []
    class Counting extends pg.Client {
      // biome-ignore lint/suspicious/noExplicitAny: `query` has a dozen forms, all of which are passed on.
      override query(...args: any[]): any {
        const [{ name, text } = args[0]] = args
        calls.push(/^millrace_(\w+)_/.exec(name ?? '')?.[1] ?? text)
        return super.query(...(args as Parameters<pg.Client['query']>))
      }
    }
    const pool = new pg.Pool({ connectionString: postgres.url, Client: Counting as never })
    const backend = postgresBackend({ pool })

    const least = await callsOfLoneItem(backend, calls)
    await backend.close()
    await pool.end()

    expect(least).toEqual(['add', 'claim', 'end'])
  })

  it('takes three scripts on Redis', async () => {
    const calls: string[] = []
    const client = new Redis(redis.url, { autoResendUnfulfilledCommands: false })
    const send = client.sendCommand.bind(client)
    client.sendCommand = (command, stream) => {
      calls.push(command.name)
      return send(command, stream)
    }
    const backend = redisBackend({ client })

    const least = await callsOfLoneItem(backend, calls)
    await backend.close()
    client.disconnect()

    expect(least).toEqual(['evalsha', 'evalsha', 'evalsha'])
  })
})
