import { afterEach, expect } from 'vitest'
import {
  type AnyWorkBuilder,
  createWork,
  type MemoryBackend,
  type MemoryQueue,
  memoryBackend,
  type Ports,
  type Queue,
  type Store,
  type WorkEvent,
  type WorkSystem,
  type WorkSystemOptions,
} from '../../src/index.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

/** The ways a system can stand on its ports. Every scenario holds on all of them. */
export const GROUNDS = ['native', 'wrapped', 'minimal'] as const
export type Ground = (typeof GROUNDS)[number]

/** Ports as a user might write them: the required members only, all of them asynchronous. */
function minimal({ queue, pubsub, store }: Ports): Ports {
  const later =
    <A extends unknown[], R>(fn: (...args: A) => R) =>
    async (...args: A): Promise<Awaited<R>> =>
      await fn(...args)
  return {
    queue: {
      push: later(queue.push),
      pop: later(queue.pop),
      heartbeat: later(queue.heartbeat),
      ack: later(queue.ack),
      fail: later(queue.fail),
    } as Queue,
    pubsub: { publish: later(pubsub.publish), subscribe: pubsub.subscribe },
    store: {
      get: later(store.get),
      set: later(store.set),
      setIfNotExists: later(store.setIfNotExists),
    } as Store,
  }
}

export interface World<Defs extends readonly AnyWorkBuilder[]> {
  readonly w: WorkSystem<Defs>
  readonly clock: FakeClock
  readonly mem: MemoryBackend
  readonly queue: MemoryQueue
  readonly events: WorkEvent[]
  readonly errors: { readonly error: unknown; readonly phase: string }[]
  /** Moves time, a little at a time, until the promise is settled. */
  until<T>(promise: PromiseLike<T>, withinMs?: number): Promise<T>
  /** Another system on the same ports. */
  another<D extends readonly AnyWorkBuilder[]>(options: WorkSystemOptions & { readonly work?: D }): WorkSystem<D>
}

const opened: { stop(): Promise<void>; clock: FakeClock }[] = []

afterEach(async () => {
  for (const { stop, clock } of opened.splice(0)) {
    const stopped = stop()
    await clock.advance(6_000)
    await stopped
  }
})

const FAST = { pollInterval: 5, visibility: 5_000, heartbeat: 2_000 } as const

/** A system on a fake clock, on this ground, with everything it says recorded. */
export function world<const Defs extends readonly AnyWorkBuilder[]>(
  ground: Ground,
  options: WorkSystemOptions & { readonly work?: Defs } = {},
  ports?: (plain: Ports) => Ports,
): World<Defs> {
  const clock = new FakeClock()
  const mem = memoryBackend({ clock })
  const events: WorkEvent[] = []
  const errors: { error: unknown; phase: string }[] = []
  const base: Ports =
    ground === 'native' ? mem : ground === 'wrapped' ? { ...mem, store: { ...mem.store } } : minimal(mem)
  const grounded: Partial<Ports> | { backend: MemoryBackend } =
    ports !== undefined ? ports(base) : ground === 'native' ? { backend: mem } : base
  const make = <D extends readonly AnyWorkBuilder[]>(given: WorkSystemOptions & { readonly work?: D }) => {
    const system = createWork({
      ...FAST,
      random: () => 0,
      ...grounded,
      clock,
      onEvent: (event: WorkEvent) => events.push(event),
      onError: (error: unknown, phase: string) => errors.push({ error, phase }),
      ...given,
    } as WorkSystemOptions & { readonly work?: D })
    opened.push({ stop: system.stop, clock })
    return system as unknown as WorkSystem<D>
  }
  const w = make(options)
  if (ports === undefined) expect(w.capabilities.atomic).toBe(ground === 'native')
  return {
    w,
    clock,
    mem,
    queue: mem.queue,
    events,
    errors,
    until: (promise, withinMs = 60_000) => until(clock, promise, withinMs),
    another: make,
  }
}

/** Moves time until the promise is settled; fails when that takes longer than it may. */
export async function until<T>(clock: FakeClock, promise: PromiseLike<T>, withinMs = 60_000): Promise<T> {
  let isSettled = false
  const watched = Promise.resolve(promise).then(
    (value) => {
      isSettled = true
      return value
    },
    (error) => {
      isSettled = true
      throw error
    },
  )
  watched.catch(() => undefined)
  const endAt = clock.now() + withinMs
  await clock.settle()
  while (!isSettled) {
    const dueAt = clock.nextDueAt()
    if (dueAt === undefined || dueAt > endAt) throw new Error(`not settled within ${withinMs} ms`)
    await clock.advance(Math.max(0, dueAt - clock.now()))
  }
  return watched
}

/** A promise and its two ends. */
export function gate<T = void>() {
  let open!: (value: T) => void
  let fail!: (error: unknown) => void
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { promise, open, fail }
}

/** A hand-written body, as another producer might push it. */
export function body(over: Record<string, unknown> = {}): string {
  return JSON.stringify({
    id: 'x',
    type: 'noop',
    groupId: 'g',
    input: 'null',
    queueAt: 0,
    startAt: 0,
    attempt: 1,
    priority: 0,
    retry: { attempts: 1 },
    ...over,
  })
}
