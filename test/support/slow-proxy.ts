import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from '../servers/free-port.js'

/**
 * A TCP connection to far away: what is sent through it arrives `delayMs` later, in each direction, complete and in order. The
 * bandwidth is not limited.
 */
export class SlowProxy {
  readonly port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(port: number, server: Server) {
    this.port = port
    this.#server = server
  }

  /** Listens on a free port of the loopback address and passes everything on to `port`. */
  static async open(to: { readonly port: number; readonly delayMs: number }): Promise<SlowProxy> {
    const port = await freePort()
    // A direction that ends does not end the other one: its last words are still on their way.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
      const far = connect({ port: to.port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
      proxy.#keep(near)
      proxy.#keep(far)
      passOn(near, far, to.delayMs)
      passOn(far, near, to.delayMs)
    })
    const proxy = new SlowProxy(port, server)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host: '127.0.0.1' }, resolve)
    })
    return proxy
  }

  /** The address with this proxy in place of its server. */
  in(url: string): string {
    const address = new URL(url)
    address.port = String(this.port)
    return address.href
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    // What breaks here is closed below, where both ends hear of it.
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
  }
}

/** Timers of one duration fire in the order in which they were set: so nothing overtakes. */
function passOn(from: Socket, to: Socket, delayMs: number): void {
  const later = (what: () => void) => setTimeout(what, delayMs)
  from.on('data', (data) => later(() => void (to.destroyed || to.write(data))))
  from.once('end', () => later(() => void to.end()))
  from.once('close', () => later(() => void to.destroy()))
}
