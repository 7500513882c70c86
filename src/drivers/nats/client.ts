import type { Ms } from '../../core/time/time.js'

/** Headers of a message as the client has them. */
export interface NatsHeadersLike {
  /** The status of an answer without a message: 404, 408, 409, 503. 0: none. */
  readonly code: number
  readonly description?: string
  keys(): string[]
  values(name: string): string[]
  append(name: string, value: string): void
}

/** A message as the client has it. */
export interface NatsMessageLike {
  readonly subject: string
  readonly reply?: string
  readonly data: Uint8Array
  readonly headers?: NatsHeadersLike
}

/** As much of a connection as we use: that of `@nats-io/transport-node` fits. */
export interface NatsConnectionLike {
  readonly info?: { readonly version: string }
  publish(
    subject: string,
    payload?: Uint8Array | string,
    options?: { readonly reply?: string; readonly headers?: NatsHeadersLike },
  ): void
  request(
    subject: string,
    payload?: Uint8Array | string,
    options?: { readonly timeout: Ms; readonly headers?: NatsHeadersLike },
  ): Promise<NatsMessageLike>
  subscribe(
    subject: string,
    options: { readonly callback: (error: Error | null, message: NatsMessageLike) => void },
  ): { drain(): Promise<void> }
  status(): AsyncIterable<{ readonly type: string }>
  isClosed(): boolean
  close(): Promise<void>
}

/** Where the server is: one of these, or a connection of one's own. */
export interface NatsAddress {
  /** `nats://host:4222`, or several of one cluster. */
  readonly servers?: string | readonly string[]
  /** Options of `connect(...)` of `@nats-io/transport-node`: authentication, TLS, names. */
  readonly options?: Readonly<Record<string, unknown>>
  /** A connection that you made, and that you end. */
  readonly connection?: NatsConnectionLike
}
