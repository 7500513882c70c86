import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

interface Pair {
  readonly client: Socket
  readonly server: Socket
  /** The client has asked something since its next reply was condemned. */
  hasAsked: boolean
}

/** Sits between one process and its server, and fails as networks do. It does not read what it passes on. */
export class CuttingProxy {
  readonly #listener: Server
  readonly #pairs = new Set<Pair>()
  #onSwallowed: (() => void) | undefined
  #isSilent = false

  private constructor(targetPort: number) {
    this.#listener = createServer((client) => this.#join(client, connect(targetPort, '127.0.0.1')))
  }

  static async open(targetPort: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(targetPort)
    await new Promise<void>((resolve) => proxy.#listener.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port
  }

  /** Cuts every connection, whatever is under way on it. */
  cut(): void {
    for (const pair of this.#pairs) this.#part(pair)
  }

  /** Lets the next request through, keeps its reply to itself, and cuts that connection. Then `done` is called. */
  swallowNextReply(done: () => void): void {
    for (const pair of this.#pairs) pair.hasAsked = false
    this.#onSwallowed = done
  }

  /** Passes nothing on any more, in both directions, until `speak`. Connections stay open. */
  fallSilent(): void {
    this.#isSilent = true
    for (const { client, server } of this.#pairs) {
      client.pause()
      server.pause()
    }
  }

  /** Ends a silence. What was under way is cut: its outcome is unknown. */
  speak(): void {
    this.#isSilent = false
    this.cut()
  }

  close(): void {
    this.#onSwallowed = undefined
    this.#listener.close()
    this.cut()
  }

  #join(client: Socket, server: Socket): void {
    const pair: Pair = { client, server, hasAsked: false }
    this.#pairs.add(pair)
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => this.#part(pair))
      socket.on('close', () => this.#part(pair))
    }
    client.on('data', (bytes) => {
      pair.hasAsked = true
      server.write(bytes)
    })
    server.on('data', (bytes) => {
      if (this.#onSwallowed === undefined || !pair.hasAsked) client.write(bytes)
      else {
        const done = this.#onSwallowed
        this.#onSwallowed = undefined
        this.#part(pair)
        done()
      }
    })
    if (this.#isSilent) {
      client.pause()
      server.pause()
    }
  }

  #part(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return
    // Not `resetAndDestroy`: it waits for what is still to be written, and leaves a socket open whose reset fails.
    pair.client.destroy()
    pair.server.destroy()
  }
}
