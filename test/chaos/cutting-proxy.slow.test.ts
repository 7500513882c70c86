import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CuttingProxy } from './cutting-proxy.js'

/** A server that answers every question with the same words, a proxy before it, and a client behind that. */
async function connected() {
  const asked: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      asked.push(String(bytes))
      socket.write(`${bytes}!`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy = await CuttingProxy.open((server.address() as AddressInfo).port)
  onTestFinished(() => {
    proxy.close()
    server.close()
  })
  return { proxy, asked, client: await clientOf(proxy) }
}

async function clientOf(proxy: CuttingProxy) {
  const socket = connect(proxy.port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, 'connect')
  return { socket, closed }
}

async function ask(socket: Socket, question: string): Promise<string> {
  socket.write(question)
  const [bytes] = await once(socket, 'data')
  return String(bytes)
}

describe('a proxy that fails as networks do', () => {
  it('passes on what it is given', async () => {
    const { client } = await connected()

    expect(await ask(client.socket, 'a')).toBe('a!')
    expect(await ask(client.socket, 'b')).toBe('b!')
  })

  it('cuts connections in the middle, and takes new ones', async () => {
    const { proxy, client } = await connected()
    await ask(client.socket, 'a')
    proxy.cut()
    await client.closed

    expect(client.socket.destroyed).toBe(true)
    expect(await ask((await clientOf(proxy)).socket, 'b')).toBe('b!')
  })

  it('keeps a reply to itself once the server has done what it was asked', async () => {
    const { proxy, client, asked } = await connected()
    await ask(client.socket, 'a')
    let swallowed = 0
    proxy.swallowNextReply(() => {
      swallowed += 1
    })
    const received: string[] = []
    client.socket.on('data', (bytes) => received.push(String(bytes)))
    client.socket.write('b')
    await client.closed

    expect({ asked, received, swallowed }).toEqual({ asked: ['a', 'b'], received: [], swallowed: 1 })
    expect(await ask((await clientOf(proxy)).socket, 'c')).toBe('c!')
  })

  it('passes on what the server sends unasked when a reply is to be lost', async () => {
    const { proxy, client } = await connected()
    await ask(client.socket, 'a')
    const other = await clientOf(proxy)
    proxy.swallowNextReply(() => {})
    other.socket.write('b')
    await other.closed

    expect(await ask(client.socket, 'c')).toBe('c!')
  })

  it('falls silent with its connections open, and cuts them when it speaks again', async () => {
    const { proxy, client } = await connected()
    await ask(client.socket, 'a')
    proxy.fallSilent()
    const answers: string[] = []
    client.socket.on('data', (bytes) => answers.push(String(bytes)))
    client.socket.write('b')
    await sleep(100)

    expect({ answers, isOpen: !client.socket.destroyed }).toEqual({ answers: [], isOpen: true })
    proxy.speak()
    await client.closed
    expect(await ask((await clientOf(proxy)).socket, 'c')).toBe('c!')
  })
})
