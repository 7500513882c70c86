import type { Ms } from '../core/time/time.js'
import type { DeadLetterSink, PulledWork, PushOptions, Queue, Store } from './ports.js'

/** A queue with every optional power, that answers later: what a backend with a server or a file gives. */
export interface FullQueue extends Queue {
  push(body: string, options?: PushOptions): Promise<void>
  pop(max: number, visibility: Ms): Promise<PulledWork[]>
  heartbeat(pulled: PulledWork, visibility: Ms): Promise<boolean>
  ack(pulled: PulledWork): Promise<void>
  fail(pulled: PulledWork, delay?: Ms, note?: string): Promise<void>
  deadLetter(body: string, error: string): Promise<void>
  size(): Promise<number>
  pushMany(bodies: readonly { readonly body: string; readonly options?: PushOptions }[]): Promise<void>
  ackMany(pulled: readonly PulledWork[]): Promise<void>
  heartbeatMany(pulled: readonly PulledWork[], visibility: Ms): Promise<readonly boolean[]>
  start(pulled: readonly PulledWork[]): Promise<readonly boolean[]>
  readonly deadLetters: DeadLetterSink
}

/** A store with every optional power, that answers later. */
export interface FullStore extends Store {
  get(key: string): Promise<string | undefined>
  set(key: string, value: string, ttl?: Ms): Promise<void>
  delete(key: string): Promise<void>
  setIfNotExists(key: string, value: string, ttl?: Ms): Promise<boolean>
  increment(key: string, by: number, ttl?: Ms): Promise<number>
  incrementOnce(
    counter: string,
    marker: string,
    by: number,
    ttl?: Ms,
  ): Promise<{ readonly value: number; readonly applied: boolean }>
  compareAndSet(key: string, expected: string | undefined, next: string, ttl?: Ms): Promise<boolean>
  getMany(keys: readonly string[]): Promise<readonly (string | undefined)[]>
  setMany(entries: readonly { readonly key: string; readonly value: string; readonly ttl?: Ms }[]): Promise<void>
}
