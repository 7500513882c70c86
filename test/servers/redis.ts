import { LineSocket } from './line-socket.js'
import { type PrivateServer, startServer } from './private-server.js'
import { programPath } from './program.js'
import { ANSWER_MS, within } from './wait.js'

export interface RedisServerOptions {
  /** Keep an append-only file, so that data survives a kill. Default: false, nothing is kept. */
  readonly appendonly?: boolean
  /** How often that file is flushed to disk. Default: `everysec`, as Redis has it. */
  readonly appendfsync?: 'always' | 'everysec' | 'no'
  /** Further arguments of redis-server. */
  readonly args?: readonly string[]
}

export function startRedis(options: RedisServerOptions = {}): Promise<PrivateServer> {
  const file = programPath('redis-server')
  return startServer({
    kind: 'redis',
    endBy: 'SIGTERM',
    url: (port) => `redis://127.0.0.1:${port}`,
    command: (port, dataDir) => ({
      file,
      args: [
        ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dataDir, '--daemonize', 'no', '--save', ''],
        ...['--appendonly', options.appendonly ? 'yes' : 'no', '--appendfsync', options.appendfsync ?? 'everysec'],
        // Redis rewrites its title and thereby loses the arguments; the janitor knows it by its directory.
        ...['--set-proc-title', 'no'],
        ...(options.args ?? []),
      ],
    }),
    async ping(port, _dataDir, pid) {
      if ((await redisCommand(port, 'PING')) !== 'PONG') return false
      return /^process_id:(\d+)/m.exec((await redisCommand(port, 'INFO', 'server')) ?? '')?.[1] === String(pid)
    },
    async flush(port) {
      await redisCommand(port, 'FLUSHALL', 'SYNC')
    },
  })
}

/** One command on a separate connection; a simple or bulk string as reply. Rejects when no answer comes. */
export async function redisCommand(port: number, ...words: string[]): Promise<string | undefined> {
  const socket = await LineSocket.open(port)
  try {
    socket.write(`*${words.length}\r\n${words.map((w) => `$${Buffer.byteLength(w)}\r\n${w}\r\n`).join('')}`)
    return await within(ANSWER_MS, `${words[0]} on port ${port}`, readReply(socket))
  } finally {
    socket.close()
  }
}

async function readReply(socket: LineSocket): Promise<string | undefined> {
  const line = await socket.line()
  const rest = line.slice(1)
  switch (line[0]) {
    case '+':
    case ':':
      return rest
    case '$':
      return rest === '-1' ? undefined : socket.bytes(Number(rest))
    default:
      throw new Error(`Redis answered ${line}`)
  }
}
