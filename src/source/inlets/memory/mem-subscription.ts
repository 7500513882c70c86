import type { Result } from '../../../core/stream/result.js'
import { DrainedError } from '../../../core/stream/stream-errors.js'
import type { At, Ms } from '../../../core/time/time.js'
import { ForeignCursorError, ForeignMessageError, SubscriptionClosedError } from '../../errors.js'
import type { Cursor, Message } from '../../message/message.js'
import type { Capabilities, CapabilityName, Subscription } from '../subscription.js'
import { MemCursor, MemMessage } from './mem-message.js'
import type { MemStream } from './mem-stream.js'

export interface MemSubscriptionOptions {
  readonly stream: MemStream
  readonly capabilities: ReadonlySet<CapabilityName>
  readonly leaseMs: Ms
  readonly redeliver: boolean
  readonly drainRedeliveries: boolean
  readonly groupId: string
  readonly onClose: (sub: MemSubscription) => void
}

type PartitionHook = (partitionKeys: readonly string[]) => void | Promise<void>

/** One of possibly several consumers of a memory inlet's queue. */
export class MemSubscription implements Subscription {
  readonly #o: MemSubscriptionOptions
  readonly #stream: MemStream
  readonly #can: Partial<Capabilities>
  readonly #assigned: PartitionHook[] = []
  readonly #revoked: PartitionHook[] = []
  #isClosed = false

  constructor(options: MemSubscriptionOptions) {
    this.#o = options
    this.#stream = options.stream
    this.#can = this.#allCapabilities()
  }

  async next({ signal }: { readonly signal: AbortSignal }): Promise<Message> {
    for (;;) {
      signal.throwIfAborted()
      const message = this.#take()
      if (message !== undefined) return message
      await this.#stream.changed(signal)
    }
  }

  // It settles before any timeout, so the signal is not read: a hopper creates it on the first read.
  async settle(message: Message, result: Result): Promise<void> {
    this.#stream.settle(this.#mine(message), result)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#o.onClose(this)
    this.#stream.wake()
  }

  capability<K extends CapabilityName>(name: K): Capabilities[K] | undefined {
    return this.#o.capabilities.has(name) ? this.#can[name] : undefined
  }

  /** @internal Calls the hooks when partitions came, or are about to go; resolves when all of them have returned. */
  async notify(what: 'assigned' | 'revoked', partitionKeys: readonly string[]): Promise<void> {
    for (const hook of what === 'assigned' ? this.#assigned : this.#revoked) await hook(partitionKeys)
  }

  /** Takes one if there is one; undefined says that it is worth waiting. */
  #take(): MemMessage | undefined {
    const { drainRedeliveries } = this.#o
    const message = this.#stream.take(this.#isClosed && !drainRedeliveries)
    if (message !== undefined) return message
    if (this.#isClosed && this.#stream.isExhausted(drainRedeliveries)) throw new DrainedError()
    return undefined
  }

  #mine(message: Message): MemMessage {
    if (message instanceof MemMessage && message.origin === this.#stream) return message
    throw new ForeignMessageError(message.subject)
  }

  #allCapabilities(): Partial<Capabilities> {
    return {
      seekable: {
        seekToTime: async (at: At) => this.#seek((log) => firstFrom(log, at)),
        seekToCursor: async (cursor: Cursor) => this.#seek(() => this.#positionAfter(cursor)),
        seekToStart: async () => this.#seek(() => 0),
        seekToEnd: async () => this.#seek((log) => log.length),
      },
      consumerGroups: {
        groupId: this.#o.groupId,
        onAssigned: (hook) => void this.#assigned.push(hook),
        onRevoked: (hook) => void this.#revoked.push(hook),
      },
      orderedDelivery: true,
      batched: {
        nextBatch: async (limit, options) => {
          const batch: Message[] = [await this.next(options)]
          while (batch.length < limit) {
            const message = this.#stream.take(this.#isClosed && !this.#o.drainRedeliveries)
            if (message === undefined) break
            batch.push(message)
          }
          return batch
        },
        settleBatch: async (messages, result) => {
          for (const message of messages) this.#stream.settle(this.#mine(message), result)
        },
      },
      lagReporter: { lag: async () => this.#stream.unsettled },
      leaseExtender: {
        leaseMs: this.#o.leaseMs,
        extend: async (message) => this.#stream.extend(this.#mine(message)),
        extendMany: async (messages) => messages.map((message) => this.#stream.extend(this.#mine(message))),
      },
      identity: true,
      releaser: { release: async (message) => this.#stream.release(this.#mine(message)) },
      pausable: {
        pause: (partition) => this.#stream.holdBack(partition),
        resume: (partition) => this.#stream.letGo(partition),
      },
      nakSupport: this.#o.redeliver ? 'native' : 'none',
    }
  }

  #seek(position: (log: MemStream['log']) => number): void {
    if (this.#isClosed) throw new SubscriptionClosedError('seek')
    this.#stream.seek(position(this.#stream.log))
  }

  #positionAfter(cursor: Cursor): number {
    const id = cursor.toString()
    // Ids of different inlets look alike; a stored one, which is only text, is taken at its word.
    const isForeign = cursor instanceof MemCursor && !cursor.isOf(this.#stream)
    const found = isForeign ? -1 : this.#stream.log.findIndex((record) => record.id === id)
    if (found < 0) throw new ForeignCursorError(id)
    return found + 1
  }
}

function firstFrom(log: MemStream['log'], at: At): number {
  const found = log.findIndex((record) => record.timestampMs >= at)
  return found < 0 ? log.length : found
}
