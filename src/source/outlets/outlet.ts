import type { HeadersInit } from '../message/headers.js'

/** What is published, under a name of its own. */
export interface OutletMessage {
  /** Names it: publishing it again under the same id is harmless. Consumers see it as the header `message-id`. */
  readonly id: string
  readonly value: string | Uint8Array
  /** The routing key: messages of one key keep their order. */
  readonly key?: string
  readonly headers?: HeadersInit
}

/** Where messages are published: the other end of an inlet. */
export interface Outlet {
  /** Resolves when it is durable. An id that was published before is not published again, for as long as the outlet remembers ids. */
  publish(message: OutletMessage): Promise<void>
  close(): Promise<void>
}
