import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { natsInfo, natsRequest, startNats } from './nats.js'
import { postgresQuery, startPostgres } from './postgres.js'
import type { PrivateServer } from './private-server.js'
import { isRunning } from './processes.js'
import { programPath } from './program.js'
import { redisCommand, startRedis } from './redis.js'
import { until, within } from './wait.js'

interface Kind {
  readonly name: PrivateServer['kind']
  start(): Promise<PrivateServer>
  ping(port: number): Promise<unknown>
  /** Makes something durable, and finds out whether it is there. */
  write(port: number): Promise<unknown>
  isThere(port: number): Promise<boolean>
}

const kinds: readonly Kind[] = [
  {
    name: 'redis',
    start: () => startRedis({ appendonly: true, appendfsync: 'always' }),
    ping: (port) => redisCommand(port, 'PING'),
    write: (port) => redisCommand(port, 'SET', 'k', 'v'),
    isThere: async (port) => (await redisCommand(port, 'GET', 'k')) === 'v',
  },
  {
    name: 'postgres',
    start: () => startPostgres(),
    ping: (port) => postgresQuery(port, 'select 1'),
    write: (port) =>
      postgresQuery(port, 'create schema s; create table s.t as select 7 as n; create table u as select 8'),
    isThere: async (port) => {
      const [row] = await postgresQuery(
        port,
        "select to_regclass('s.t') is not null or to_regclass('u') is not null as t",
      )
      return row?.['t'] === true
    },
  },
  {
    name: 'nats',
    start: () => startNats({}),
    ping: (port) => natsInfo(port),
    write: async (port) => {
      await natsRequest(port, '$JS.API.STREAM.CREATE.s', { name: 's', subjects: ['s.>'], storage: 'file' })
      await natsRequest(port, 's.a', { n: 7 })
    },
    isThere: async (port) => {
      const names = (await natsRequest(port, '$JS.API.STREAM.NAMES'))['streams'] as string[] | null
      if (!names?.includes('s')) return false
      const info = await natsRequest(port, '$JS.API.STREAM.INFO.s')
      return (info['state'] as { messages: number }).messages === 1
    },
  },
]

const open: PrivateServer[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.stop()))
})
const STANDARD_PORTS = [5432, 6379, 4222]

describe.each(kinds)('a private $name server', (kind) => {
  const start = async () => {
    const server = await kind.start()
    open.push(server)
    return server
  }

  it('answers on its own port as soon as it is handed out, and keeps a log', async () => {
    const server = await start()

    await kind.ping(server.port)

    expect(STANDARD_PORTS).not.toContain(server.port)
    expect(server.url).toContain(`127.0.0.1:${server.port}`)
    expect(server.log()).not.toBe('')
  })

  it('keeps its data, port and directory over a kill and a restart', async () => {
    const server = await start()
    await kind.write(server.port)
    const { pid, port } = server

    await server.kill()
    expect(isRunning(pid!)).toBe(false)
    expect(server.pid).toBeUndefined()
    await expect(kind.ping(port)).rejects.toThrow()
    await server.restart()

    expect(server.port).toBe(port)
    expect(server.pid).not.toBe(pid)
    expect(await kind.isThere(port)).toBe(true)
  })

  it('keeps its data over a restart by either signal', async () => {
    const server = await start()
    await kind.write(server.port)

    await server.restart('SIGKILL')
    await server.restart('SIGTERM')

    expect(await kind.isThere(server.port)).toBe(true)
  })

  it('does not answer while it is paused, and goes on when it is resumed', async () => {
    const server = await start()
    await kind.write(server.port)

    server.pause()
    // Real time: that nothing comes can only be waited for.
    await expect(within(1_000, 'a ping', kind.ping(server.port))).rejects.toThrow('no answer')
    server.resume()

    expect(await kind.isThere(server.port)).toBe(true)
  })

  it('is empty after a flush and takes new data', async () => {
    const server = await start()
    await kind.write(server.port)

    await server.flush()

    expect(await kind.isThere(server.port)).toBe(false)
    await kind.write(server.port)
    expect(await kind.isThere(server.port)).toBe(true)
  })

  it('runs beside another of its kind', async () => {
    const [one, two] = await Promise.all([start(), start()])
    await kind.write(one.port)

    expect(one.port).not.toBe(two.port)
    expect(await kind.isThere(one.port)).toBe(true)
    expect(await kind.isThere(two.port)).toBe(false)
  })

  it.each(['running', 'killed', 'paused'])(
    'leaves no process and no directory when it is stopped while %s',
    async (state) => {
      const server = await start()
      const pid = server.pid!
      expect(existsSync(server.dir)).toBe(true)
      if (state === 'killed') await server.kill()
      if (state === 'paused') server.pause()

      await server.stop()
      await server.stop()

      expect(isRunning(pid)).toBe(false)
      expect(existsSync(server.dir)).toBe(false)
    },
  )
})

describe('a process that is killed while its servers run', () => {
  it('leaves no process and no directory', async () => {
    const program = fileURLToPath(new URL('crash-parent.ts', import.meta.url))
    const parent = spawn(process.execPath, ['--import', 'tsx', program], { stdio: ['ignore', 'pipe', 'inherit'] })
    const said = await new Promise<string>((resolve) => parent.stdout.once('data', (data) => resolve(String(data))))
    const servers = JSON.parse(said) as { pid: number; dir: string }[]
    expect(servers.map(({ pid }) => isRunning(pid))).toEqual([true, true, true])
    expect(servers.map(({ dir }) => existsSync(dir))).toEqual([true, true, true])

    parent.kill('SIGKILL')

    await until(
      () => 'something is left of the servers',
      60_000,
      () => servers.every(({ pid, dir }) => !isRunning(pid) && !existsSync(dir)),
    )
  })
})

describe('a port that another process takes at the last moment', () => {
  it('is given up for another', async () => {
    const taken = await startRedis()
    open.push(taken)
    const { startServer } = await import('./private-server.js')
    let starts = 0

    const server = await startServer({
      kind: 'redis',
      endBy: 'SIGTERM',
      url: (port) => `redis://127.0.0.1:${port}`,
      // The first start is sent to the port of the other server: it fails to bind, while a ping there would answer.
      command: (port, dir) => {
        starts++
        const args = [
          '--port',
          String(starts === 1 ? taken.port : port),
          '--bind',
          '127.0.0.1',
          '--dir',
          dir,
          '--save',
          '',
        ]
        return { file: programPath('redis-server'), args }
      },
      ping: async (port, _dir, pid) =>
        ((await redisCommand(starts === 1 ? taken.port : port, 'INFO', 'server')) ?? '').includes(
          `process_id:${pid}\r`,
        ),
      flush: async () => {},
    })
    open.push(server)

    expect(starts).toBe(2)
    expect(await redisCommand(server.port, 'PING')).toBe('PONG')
  })
})
