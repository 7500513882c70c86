import { connect, type Socket } from 'node:net'

/** A TCP connection read line by line (CRLF) or by length: enough to speak RESP and NATS without a client library. */
export class LineSocket {
  readonly #socket: Socket
  #buffered = Buffer.alloc(0)
  #failed: Error | undefined
  #wake: (() => void) | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (data) => {
      this.#buffered = Buffer.concat([this.#buffered, data])
      this.#wake?.()
    })
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('connection closed')))
  }

  static open(port: number): Promise<LineSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new LineSocket(socket))
      })
    })
  }

  write(text: string): void {
    this.#socket.write(text)
  }

  async line(): Promise<string> {
    for (;;) {
      const end = this.#buffered.indexOf('\r\n')
      if (end >= 0) return this.#take(end, 2)
      await this.#more()
    }
  }

  /** `length` bytes and the CRLF behind them. */
  async bytes(length: number): Promise<string> {
    while (this.#buffered.length < length + 2) await this.#more()
    return this.#take(length, 2)
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(length: number, skip: number): string {
    const text = this.#buffered.toString('utf8', 0, length)
    this.#buffered = this.#buffered.subarray(length + skip)
    return text
  }

  #more(): Promise<void> {
    if (this.#failed !== undefined) return Promise.reject(this.#failed)
    return new Promise((resolve, reject) => {
      this.#wake = () => {
        this.#wake = undefined
        if (this.#failed !== undefined) reject(this.#failed)
        else resolve()
      }
    })
  }

  #fail(error: Error): void {
    this.#failed ??= error
    this.#wake?.()
  }
}
