import { createServer } from 'node:net'

/**
 * Below the range that the kernel takes for outgoing connections. A port from inside that range can be taken by a client
 * between a kill and a restart; a client that reconnects in a loop can even connect to itself and keep the server out.
 */
const LOWEST = 20_000
const HIGHEST = 32_000
const given = new Set<number>()

/** A free port of the loopback address. Another process may still take it first: the caller tries again. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST))
    if (given.has(port) || !(await canListen(port))) continue
    given.add(port)
    return port
  }
  throw new Error(`No free port between ${LOWEST} and ${HIGHEST} on 127.0.0.1 after 200 attempts.`)
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
