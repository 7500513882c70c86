/** A word of a command. Lists are flattened, so that a call with many words does not spread them over the stack. */
export type Word = string | number | Uint8Array | readonly (string | number | Buffer)[]

/**
 * As much of a client as we use: `ioredis` fits (`Redis` and `Cluster`), and so does whatever has the same methods
 * (`iovalkey`). Replies are text.
 */
export interface RedisClientLike {
  readonly status: string
  /** Its socket, where it has one. */
  readonly stream?: { destroy(): unknown }
  /** What it was made with: it shows whether it sends again what was not answered. */
  readonly options?: object
  eval(source: string, keys: number, ...words: Word[]): Promise<unknown>
  evalsha(sha: string, keys: number, ...words: Word[]): Promise<unknown>
  /** The same with replies as bytes. Streams need them, since a value may be no text. */
  evalBuffer?(source: string, keys: number, ...words: Word[]): Promise<unknown>
  evalshaBuffer?(sha: string, keys: number, ...words: Word[]): Promise<unknown>
  /** Reading and writing streams without a script. */
  xread?(...words: (string | number)[]): Promise<unknown>
  xrangeBuffer?(key: string, from: string, to: string, count: 'COUNT', most: number): Promise<unknown>
  xlen?(key: string): Promise<number>
  xadd?(key: string, ...fields: (string | Buffer)[]): Promise<unknown>
  info(section: string): Promise<string>
  publish(channel: string, message: string): Promise<unknown>
  subscribe(...channels: string[]): Promise<unknown>
  unsubscribe(...channels: string[]): Promise<unknown>
  ping(): Promise<unknown>
  duplicate(): RedisClientLike
  connect(): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
  on(event: 'ready' | 'close' | 'end' | 'connect' | 'reconnecting' | '+subscriber', listener: () => void): unknown
  on(event: '+node', listener: (node: RedisClientLike) => void): unknown
  off(event: 'error', listener: (error: Error) => void): unknown
  off(event: 'ready' | 'close' | 'end', listener: () => void): unknown
}

/** Where the server is: one of these, or a client of one's own. */
export interface RedisAddress {
  /** `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
  readonly url?: string
  /** Options of `new Redis(...)` of ioredis: host, port, tls, `sentinels` and `name` for Sentinel. */
  readonly options?: Readonly<Record<string, unknown>>
  /** The nodes of a Redis Cluster to begin with, and options of `new Redis.Cluster(...)`. */
  readonly cluster?: {
    readonly nodes: readonly (string | { readonly host?: string; readonly port?: number })[]
    readonly options?: Readonly<Record<string, unknown>>
  }
  /**
   * A client that you made, and that you end. A second connection, to listen on, is made with its `duplicate()`. Make it with
   * `autoResendUnfulfilledCommands: false` (a Cluster: `retryDelayOnFailover: 0`): one that sends again what was not answered
   * may claim, count or push twice. `onError` is warned of it.
   */
  readonly client?: RedisClientLike
}
