import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SlowProxy } from './slow-proxy.js'

const DELAY_MS = 60

/** A server that says back what it hears, and ends when it is told to. */
async function echoes(): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function through(delayMs: number): Promise<Socket> {
  const proxy = await SlowProxy.open({ port: await echoes(), delayMs })
  onTestFinished(() => proxy.close())
  const socket = connect({ port: proxy.port, host: '127.0.0.1' })
  await once(socket, 'connect')
  return socket
}

/** Everything that comes until the end. */
async function allOf(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of socket) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

describe('a connection through a slow proxy', () => {
  it('takes its time in both directions', async () => {
    const socket = await through(DELAY_MS)
    const sentAt = performance.now()
    socket.write('there and back')
    const [answer] = (await once(socket, 'data')) as [Buffer]

    // A timer may fire a millisecond early.
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(2 * DELAY_MS - 2)
    expect(String(answer)).toBe('there and back')
    socket.destroy()
  })

  it('delays what is sent and does not hold it up: much arrives as late as little, complete and in order', async () => {
    const socket = await through(DELAY_MS)
    const sent = Buffer.concat(Array.from({ length: 2_000 }, (_, i) => Buffer.alloc(1_000, i % 251)))
    const answer = allOf(socket)
    for (let from = 0; from < sent.length; from += 9_999) socket.write(sent.subarray(from, from + 9_999))
    socket.end()

    expect((await answer).equals(sent)).toBe(true)
  })

  it('takes the place of the server in an address', async () => {
    const proxy = await SlowProxy.open({ port: 1, delayMs: 1 })
    onTestFinished(() => proxy.close())

    expect(proxy.in('postgres://me@127.0.0.1:5999/postgres')).toBe(`postgres://me@127.0.0.1:${proxy.port}/postgres`)
    expect(proxy.in('redis://127.0.0.1:5999')).toBe(`redis://127.0.0.1:${proxy.port}`)
  })

  it('breaks when the server cannot be reached', async () => {
    const proxy = await SlowProxy.open({ port: 1, delayMs: 1 })
    onTestFinished(() => proxy.close())
    const socket = connect({ port: proxy.port, host: '127.0.0.1' })
    socket.on('error', () => {})

    await once(socket, 'close')
  })
})
