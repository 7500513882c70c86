import type { Result } from '../../../src/core/stream/result.js'
import { DrainedError } from '../../../src/core/stream/stream-errors.js'
import type { Capabilities, CapabilityName, Subscription } from '../../../src/source/inlets/subscription.js'
import { Headers } from '../../../src/source/message/headers.js'
import type { Message } from '../../../src/source/message/message.js'

const utf8 = new TextDecoder()

/** The payload as text. */
export const textOf = (message: Message): string => utf8.decode(message.value)

/** `n` messages of one key, with the values 0 … n − 1. */
export const numbered = (n: number, key = 'k') => Array.from({ length: n }, (_, i) => ({ key, value: String(i) }))

/** Ids of a stream that a test can name: '1', '2', … */
export function counting(): () => string {
  let n = 0
  return () => String(++n)
}

/** A message by hand. */
export function messageOf(fields: Partial<Message> = {}): Message {
  return {
    key: null,
    value: new Uint8Array(),
    headers: Headers.empty,
    subject: 'orders',
    partitionKey: '',
    cursor: { toString: () => '1' },
    as: () => undefined,
    ...fields,
  }
}

/** A subscription that does what its script says; what is not scripted drains immediately and settles without an error. */
export function scripted(script: {
  readonly next?: (signal: AbortSignal) => Promise<Message>
  readonly settle?: (message: Message, result: Result, signal: AbortSignal) => Promise<void>
  readonly can?: Partial<Capabilities>
}): Subscription & { readonly settled: { readonly message: Message; readonly result: Result }[] } {
  const settled: { message: Message; result: Result }[] = []
  return {
    settled,
    next: async ({ signal }) => {
      if (script.next === undefined) throw new DrainedError()
      return script.next(signal)
    },
    settle: async (message, result, options) => {
      await script.settle?.(message, result, options.signal)
      settled.push({ message, result })
    },
    close: async () => undefined,
    capability: <K extends CapabilityName>(name: K) => script.can?.[name] as Capabilities[K] | undefined,
  }
}

/** Hands out what is listed, then drains. */
export function listed(messages: readonly Message[]): () => Promise<Message> {
  const left = [...messages]
  return async () => {
    const next = left.shift()
    if (next === undefined) throw new DrainedError()
    return next
  }
}

/** A promise with its handles, for handlers that a test holds. */
export function held<T = void>(): {
  readonly promise: Promise<T>
  release(value: T): void
  fail(error: unknown): void
} {
  let release: (value: T) => void = () => undefined
  let fail: (error: unknown) => void = () => undefined
  const promise = new Promise<T>((resolve, reject) => {
    release = resolve
    fail = reject
  })
  return { promise, release, fail }
}
