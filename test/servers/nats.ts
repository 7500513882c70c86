import { basename, dirname } from 'node:path'
import { LineSocket } from './line-socket.js'
import { type PrivateServer, startServer } from './private-server.js'
import { programPath } from './program.js'
import { ANSWER_MS, within } from './wait.js'

export interface NatsServerOptions {
  /** Further arguments of nats-server. */
  readonly args?: readonly string[]
}

/** A NATS server with JetStream, which keeps its streams in the server's directory. */
export function startNats(options: NatsServerOptions = {}): Promise<PrivateServer> {
  const file = programPath('nats-server')
  return startServer({
    kind: 'nats',
    endBy: 'SIGTERM',
    url: (port) => `nats://127.0.0.1:${port}`,
    command: (port, dataDir) => ({
      file,
      args: [
        ...['-a', '127.0.0.1', '-p', String(port), '-n', nameOf(dataDir), '-js', '-sd', dataDir],
        ...(options.args ?? []),
      ],
    }),
    // The name in INFO distinguishes our server from another that took the port.
    ping: async (port, dataDir) => (await natsInfo(port)).server_name === nameOf(dataDir),
    async flush(port) {
      for (const stream of await streamNames(port)) await natsRequest(port, `$JS.API.STREAM.DELETE.${stream}`)
    },
  })
}

const nameOf = (dataDir: string) => basename(dirname(dataDir))

/** The greeting of the server. */
export async function natsInfo(port: number): Promise<{ readonly server_name: string }> {
  const socket = await LineSocket.open(port)
  try {
    return infoOf(await within(ANSWER_MS, `INFO on port ${port}`, socket.line()))
  } finally {
    socket.close()
  }
}

/** One request over core NATS, answered with JSON. Rejects when nothing comes, and when JetStream answers with an error. */
export async function natsRequest(port: number, subject: string, body: unknown = {}): Promise<Record<string, unknown>> {
  const socket = await LineSocket.open(port)
  const inbox = `_INBOX.${process.pid}.${Math.random().toString(36).slice(2)}`
  const payload = JSON.stringify(body)
  try {
    return await within(
      ANSWER_MS,
      `${subject} on port ${port}`,
      (async () => {
        infoOf(await socket.line())
        socket.write(`CONNECT {"verbose":false,"pedantic":false}\r\nSUB ${inbox} 1\r\n`)
        socket.write(`PUB ${subject} ${inbox} ${Buffer.byteLength(payload)}\r\n${payload}\r\n`)
        for (;;) {
          const line = await socket.line()
          if (line === 'PING') socket.write('PONG\r\n')
          if (line.startsWith('-ERR')) throw new Error(`NATS answered ${line}`)
          if (!line.startsWith('MSG ')) continue
          const reply = JSON.parse(await socket.bytes(Number(line.split(' ').at(-1)))) as Record<string, unknown>
          if (reply['error'] !== undefined) throw new Error(`${subject}: ${JSON.stringify(reply['error'])}`)
          return reply
        }
      })(),
    )
  } finally {
    socket.close()
  }
}

async function streamNames(port: number): Promise<string[]> {
  const all: string[] = []
  for (;;) {
    const page = await natsRequest(port, '$JS.API.STREAM.NAMES', { offset: all.length })
    const names = (page['streams'] ?? []) as string[]
    all.push(...names)
    if (names.length === 0 || all.length >= Number(page['total'])) return all
  }
}

function infoOf(line: string): { readonly server_name: string } {
  if (!line.startsWith('INFO ')) throw new Error(`Not a NATS server: ${line}`)
  return JSON.parse(line.slice('INFO '.length)) as { server_name: string }
}
