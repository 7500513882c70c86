import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { postgresBackend } from '../../src/backends/postgres/index.js'
import { redisBackend } from '../../src/backends/redis/index.js'
import { sqliteBackend } from '../../src/backends/sqlite/index.js'
import { memoryBackend } from '../../src/index.js'
import { temporaryFile } from '../drivers/sqlite/temporary.js'
import { startPostgres, startRedis, startRedisCluster } from '../servers/index.js'

const [postgres, redis, cluster] = await Promise.all([
  startPostgres({ settings: { fsync: 'off' } }),
  startRedis(),
  startRedisCluster(),
])
afterAll(async () => {
  await Promise.all([postgres.stop(), redis.stop(), cluster.stop()])
})

const program = fileURLToPath(new URL('program.child.ts', import.meta.url))

interface Line {
  readonly warning?: string
  readonly message?: string
  readonly end?: boolean
}

/** Runs the program to its end. */
async function run(kind: string, address: string, story: string, count = 0) {
  const child = spawn(
    process.execPath,
    ['--no-warnings', '--import', 'tsx', program, kind, address, story, String(count)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number | null]
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
  return {
    code,
    hasEnded: lines.some(({ end }) => end === true),
    warnings: lines.filter(({ warning }) => warning !== undefined),
  }
}

const places = {
  memory: {
    address: async () => `${temporaryFile()}.queue`,
    count: (file: string) => countOn(memoryBackend({ queue: { file } })),
  },
  sqlite: { address: async () => temporaryFile(), count: (file: string) => countOn(sqliteBackend({ file })) },
  postgres: {
    address: async () => {
      await postgres.flush()
      return postgres.url
    },
    count: (connectionString: string) => countOn(postgresBackend({ connectionString })),
  },
  redis: {
    address: async () => {
      await redis.flush()
      return redis.url
    },
    count: (url: string) => countOn(redisBackend({ url })),
  },
}

async function countOn(backend: {
  readonly queue: { size(): number | Promise<number> }
  close(): Promise<void>
}): Promise<number> {
  const size = await backend.queue.size()
  await backend.close()
  return size
}

describe.each(Object.entries(places))('a program on %s that does not await what it enqueues', (kind, place) => {
  it.each(['stop, close', 'close', 'stop', 'neither'])('loses none of it before its end: %s', async (story) => {
    const address = await place.address()

    const { code, hasEnded, warnings } = await run(kind, address, story, 2_500)

    expect({ code, hasEnded, warnings }).toEqual({ code: 0, hasEnded: true, warnings: [] })
    expect(await place.count(address)).toBe(2_500)
  })

  it('is warned once, with the number, of what did not fit into the buffer', async () => {
    const address = await place.address()

    const { warnings } = await run(kind, address, 'stop, close', 12_000)

    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ warning: 'MILLRACE_ENQUEUE_LOST' })
    expect(warnings[0]?.message).toMatch(/^2000 enqueued items were not accepted.*BUFFER_FULL/)
    expect(await place.count(address)).toBe(10_000)
  })
})

const served = [
  ['sqlite', async () => temporaryFile()],
  ['postgres', async () => postgres.url],
  ['redis', async () => redis.url],
  ['cluster', async () => cluster.nodes.map(({ port }) => `redis://127.0.0.1:${port}`).join(',')],
] as const

describe.each(served)('a worker on %s that has stopped', (kind, address) => {
  it('does not keep its process alive, though its backend is open', async () => {
    expect(await run(kind, await address(), 'work, stop')).toEqual({ code: 0, hasEnded: true, warnings: [] })
  })
})

describe.each(served)('a worker on %s that ends with its process', (kind, address) => {
  it('is warned of if it ran nothing and was not stopped', async () => {
    const { code, hasEnded, warnings } = await run(kind, await address(), 'idle')

    expect({ code, hasEnded }).toEqual({ code: 0, hasEnded: true })
    expect(warnings).toEqual([
      { warning: 'MILLRACE_WORKER_EXITED', message: expect.stringMatching(/"greet".*keepAlive: true/) },
    ])
  })
})

describe('a worker that ends with its process', () => {
  it.each(['work', 'idle, stop', 'idle, ended before exit', 'idle, alive: false', 'idle, process.exit'])(
    'is not warned of where that was meant: %s',
    async (story) => {
      expect(await run('sqlite', temporaryFile(), story)).toEqual({ code: 0, hasEnded: true, warnings: [] })
    },
  )
})

/** Takes connections and never says a word. */
async function silentServer(): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return portOf(server)
}

/** Where nothing listens. */
async function closedPort(): Promise<number> {
  const server = createServer()
  const port = await portOf(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { readonly port: number }).port
}

const unreachable = [
  ['sqlite', async () => '/dev/null/no-directory.db', 'SQLITE_OPEN'],
  ['postgres', async () => `postgres://app@127.0.0.1:${await closedPort()}/app`, 'ECONNREFUSED'],
  ['redis', async () => `redis://127.0.0.1:${await closedPort()}`, 'ECONNREFUSED'],
] as const

describe.each(unreachable)('a program on %s whose backend cannot be reached', (kind, address, reason) => {
  it('gets one warning of that, and one with the number of its enqueues', async () => {
    const { code, warnings } = await run(kind, await address(), 'stop, close', 17)

    expect(code).toBe(0)
    const codes = warnings.map(({ warning }) => warning)
    expect(new Set(codes).size).toBe(codes.length)
    expect(warnings.some(({ message = '' }) => message.includes(reason))).toBe(true)
    expect(warnings.some(({ message = '' }) => message.includes('17 enqueue'))).toBe(true)
  })
})

describe('a program that enqueues twice within a minute, and whose backend cannot be reached', () => {
  it.each(['twice', 'twice, close'])('is warned of the later losses as it ends: %s', async (story) => {
    const { code, hasEnded, warnings } = await run('sqlite', '/dev/null/no-directory.db', story, 1)

    expect({ code, hasEnded }).toEqual({ code: 0, hasEnded: true })
    const lost = warnings.filter(({ warning }) => warning === 'MILLRACE_ENQUEUE_LOST')
    expect(lost.map(({ message }) => message?.split(' ', 1)[0])).toEqual(['1', '100'])
  })
})

describe.each(['postgres', 'redis'])('a program on %s whose server takes connections and does not answer', (kind) => {
  it('ends all the same, and says how many enqueues were given up', async () => {
    const port = await silentServer()

    const { code, hasEnded, warnings } = await run(kind, `${kind}://app@127.0.0.1:${port}/0`, 'stop, close', 17)

    expect({ code, hasEnded }).toEqual({ code: 0, hasEnded: true })
    expect(warnings).toHaveLength(1)
    expect(warnings[0]?.message).toMatch(/ENQUEUES_UNANSWERED.*17 enqueues within 5000 ms/)
  })
})
