import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createWork, defineWork, PoisonError, type WorkSystemOptions } from 'millrace'
import { postgresBackend } from 'millrace/postgres'
import { redisBackend } from 'millrace/redis'
import { Client } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { startPostgres, startRedis } from '../servers/index.js'
import { postgresQuery } from '../servers/postgres.js'
import { millrace } from './fixtures.js'

const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
afterAll(() => Promise.all([postgres.stop(), redis.stop()]))

/** Two dead items, and one that no worker handles any more. */
async function leaveBehind(backend: NonNullable<WorkSystemOptions['backend']>): Promise<string[]> {
  const broken = defineWork('broken', (_: { n: number }) => {
    throw new PoisonError('no such thing')
  })
  const old = defineWork('old', (_: { n: number }, ctx) => ctx.result(1))
  const work = createWork({ backend, work: [broken] as const })
  const handles = await work.enqueueMany([broken({ n: 1 }), broken({ n: 2 })])
  await Promise.all(handles.map((one) => one.group()))
  await work.enqueue(old({ n: 3 }), { delay: 3_600_000 }).accepted()
  await work.stop()
  return handles.map(({ id }) => id)
}

describe('on PostgreSQL', () => {
  const address = ['--backend', postgres.url, '--schema', 'shop']
  const on = (...args: string[]) => millrace([...args, ...address])

  it('queries create nothing, migrate creates the tables, and then queries work', async () => {
    const before = await on('overview')
    expect(before).toMatchObject({ code: 3, out: '' })
    expect(before.err).toContain('There are no Millrace tables')
    expect(await on('writs')).toMatchObject({ code: 3, err: expect.stringContaining('no guild documents') })
    expect((await on('doctor')).out).toContain('There are no Millrace tables here')
    expect(await postgresQuery(postgres.port, "select from pg_namespace where nspname = 'shop'")).toEqual([])

    expect((await on('migrate', '--dry-run')).code).toBe(1)
    expect(await on('migrate')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^work: created tables, version \d+\n$/),
    })
    expect((await on('migrate', '--dry-run')).out).toBe('Nothing is pending.\n')

    const backend = postgresBackend({ connectionString: postgres.url, schema: 'shop' })
    const [id] = await leaveBehind(backend)
    await backend.close()
    expect((await on('overview')).out).toMatch(/default +broken /)
    expect((await on('explain', id!)).out).toContain('It died (aborted, poison)')
    expect((await on('redrive', 'type:broken', '--yes')).out).toBe('Redrove 2 items.\n')
    const doctor = await on('doctor', '--json')
    expect(doctor.code).toBe(1)
    expect(JSON.parse(doctor.out)).toMatchObject({
      server: expect.stringMatching(/^PostgreSQL \d+/),
      // The application has stopped cleanly: no worker runs what was redriven.
      findings: [{ code: 'queue-unserved' }, { code: 'queue-unserved' }],
    })
  })

  it('a question that a lock holds up ends in time, and says so', async () => {
    const backend = postgresBackend({ connectionString: postgres.url, schema: 'held' })
    await backend.migrate()
    await backend.close()
    const client = new Client({ connectionString: postgres.url })
    await client.connect()
    try {
      await client.query('begin; lock table held.item in access exclusive mode')
      const { code, out, err } = await millrace([
        'overview',
        '--timeout',
        '1s',
        '--backend',
        postgres.url,
        '--schema',
        'held',
      ])
      expect([code, out]).toEqual([3, ''])
      expect(err).toContain('did not answer within 1 s')
    } finally {
      await client.end()
    }
  })

  it('a wrong password is reported without being shown', async () => {
    const { code, out, err } = await millrace([
      'list',
      '--debug',
      '--backend',
      `postgres://postgres:geheim-wort@127.0.0.1:${postgres.port}/none`,
    ])
    expect([code, out]).toEqual([3, ''])
    expect(err).toContain('"none" does not exist')
    expect(err).not.toContain('geheim-wort')
  })
})

describe('a server that takes the call and never answers', () => {
  it.each(['postgres', 'redis'])('ends a migrate that asks a %s no later than its time limit', async (scheme) => {
    const mute = createServer((socket) => void socket.on('error', () => undefined)).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    try {
      const { port } = mute.address() as AddressInfo
      const { code, err } = await millrace([
        'migrate',
        '--timeout',
        '300ms',
        '--backend',
        `${scheme}://127.0.0.1:${port}`,
      ])
      expect(code).toBe(3)
      expect(err).toContain('300 ms')
    } finally {
      mute.close()
    }
  })
})

describe('on Redis', () => {
  it('shows, acts, and reports dangerous settings', async () => {
    const backend = redisBackend({ url: redis.url, prefix: 'shop' })
    const [id] = await leaveBehind(backend)
    await backend.close()
    const on = (...args: string[]) => millrace([...args, '--backend', redis.url, '--prefix', 'shop'])
    expect((await on('list', 'state:dead', '--json')).out).toContain(id!)
    expect((await on('discard', id!, '--yes')).out).toBe('Discarded 1 item.\n')
    const { code, out } = await on('doctor')
    expect(code).toBe(1)
    expect(out).toContain('The append-only file is off')
    expect(await on('migrate')).toMatchObject({ code: 0, out: expect.stringContaining('nothing to migrate') })
    expect(await on('writs')).toMatchObject({ code: 3, err: expect.stringContaining('keeps no documents on Redis') })
  })
})
