import { expect, onTestFinished } from 'vitest'
import type { MemoryBackend, MemoryQueue } from '../../src/backends/memory/index.js'
import { type Clock, sleepOn } from '../../src/core/time/clock.js'
import { createWork, memoryBackend, type WorkEvent, type WorkSystem, type WorkSystemOptions } from '../../src/index.js'
import { ownedBy } from '../../src/ports/find-ledger.js'
import type { Backend, Ports, Queue, Store } from '../../src/ports/ports.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import type { AnyWorkType } from '../../src/types.js'
import { backendUnderTest } from './grounds/ground.js'

/** The ways a system can run on the memory backend. */
type MemoryGround = 'native' | 'wrapped' | 'minimal'

/** A real backend, when these scenarios run on one: a vitest project names it in the environment. */
const REAL = await backendUnderTest()
export const isOnMemory = REAL === undefined

/** The ways a system can run on its ports. Every scenario holds on all of them. */
export type Ground = MemoryGround | 'real'
export const GROUNDS: readonly Ground[] = REAL === undefined ? ['native', 'wrapped', 'minimal'] : ['real']
/** The grounds where only the three plain ports are known: their scenarios have no meaning on a real backend. */
export const PLAIN_GROUNDS: readonly ('wrapped' | 'minimal')[] = REAL === undefined ? ['wrapped', 'minimal'] : []

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

/** Ports that are no backend's own objects, as copies or wrappers are. */
export function plain({ queue, pubsub, store }: Ports): Ports {
  return { queue: { ...queue }, pubsub: { ...pubsub }, store: { ...store } }
}

export interface World<Defs extends readonly AnyWorkType[]> {
  readonly w: WorkSystem<Defs>
  readonly clock: FakeClock
  readonly ports: Ports
  /** The queue as any producer knows it. */
  readonly queue: Queue
  /** The memory backend beneath; only where the ground is one. */
  readonly mem: MemoryBackend
  readonly memoryQueue: MemoryQueue
  /** How many items are dead; `undefined` where the ground does not know. */
  dead(): Promise<number | undefined>
  /** How many the queue holds. */
  size(): Promise<number>
  readonly events: WorkEvent[]
  readonly errors: { readonly error: unknown; readonly phase: string }[]
  /** Moves time, a little at a time, until the promise is settled. */
  until<T>(promise: PromiseLike<T>, withinMs?: number): Promise<T>
  /** Another system on the same ports. */
  another<D extends readonly AnyWorkType[]>(options: WorkSystemOptions & { readonly work?: D }): WorkSystem<D>
}

/**
 * Few scenarios need the poll: notifications and due times wake a system. It is as rare as the scenarios allow, since each second
 * of fake time costs that many polls, and a poll of a server is a real round trip.
 */
const FAST = { pollInterval: isOnMemory ? 100 : 250, visibility: 5_000, heartbeat: 2_000 } as const

/** A system on a fake clock, on this ground, with everything it says recorded. */
export function world<const Defs extends readonly AnyWorkType[]>(
  ground: Ground,
  options: WorkSystemOptions & { readonly work?: Defs } = {},
  ports?: (plain: Ports) => Ports,
): World<Defs> {
  const { clock, base, mem, backend } = prepare(ground)
  const events: WorkEvent[] = []
  const errors: { error: unknown; phase: string }[] = []
  const grounded: Partial<Ports> | { backend: Backend } =
    ports !== undefined ? ports(base) : backend !== undefined ? { backend } : base
  const make = <D extends readonly AnyWorkType[]>(given: WorkSystemOptions & { readonly work?: D }) => {
    const system = createWork({
      ...FAST,
      random: () => 0,
      ...grounded,
      clock,
      onEvent: (event: WorkEvent) => events.push(event),
      onError: (error: unknown, phase: string) => errors.push({ error, phase }),
      ...given,
    } as WorkSystemOptions & { readonly work?: D })
    // Not a hook of this module: where files share their modules, it would be there for the first of them only.
    onTestFinished(async () => {
      const stopped = system.stop()
      await clock.advance(6_000)
      await stopped
    })
    return system as unknown as WorkSystem<D>
  }
  const w = make(options)
  if (ports === undefined) expect(w.capabilities.atomic).toBe(backend !== undefined)
  return {
    w,
    clock,
    ports: base,
    queue: base.queue,
    get mem() {
      return onMemory(mem)
    },
    get memoryQueue() {
      return onMemory(mem).queue
    },
    dead: async () => (ground === 'minimal' ? undefined : mem === undefined ? deadOf(base) : mem.queue.dead.length),
    size: async () => await (mem ?? base).queue.size!(),
    events,
    errors,
    until: (promise, withinMs = 60_000) => until(clock, promise, withinMs),
    another: make,
  }
}

interface Prepared {
  readonly clock: FakeClock
  readonly base: Ports
  /** The whole backend, where the system may use its ledger. */
  readonly backend?: Backend
  readonly mem?: MemoryBackend
}

function prepare(ground: Ground): Prepared {
  if (ground === 'real') {
    const { clock, backend, close } = REAL!.open()
    onTestFinished(close)
    return { clock, base: backend, backend }
  }
  const clock = new FakeClock()
  const mem = memoryBackend({ clock })
  switch (ground) {
    case 'native':
      return { clock, base: mem, backend: mem, mem }
    case 'wrapped':
      return { clock, base: { ...mem, store: { ...mem.store } }, mem }
    case 'minimal':
      return { clock, base: minimal(mem), mem }
  }
}

function onMemory(mem: MemoryBackend | undefined): MemoryBackend {
  if (mem === undefined) throw new Error('this scenario inspects the memory backend, but runs on another one')
  return mem
}

/** Dead items, as the ledger counts them. */
async function deadOf(ports: Ports): Promise<number> {
  const found = ownedBy(ports, [])
  if (!('open' in found)) throw new Error(`no ledger: the ${found.foreign} is foreign`)
  const { items } = await found.open({ prefix: 'work:' }).inspect!.list({ state: 'dead', limit: 1_000 })
  return items.length
}

/** The clock of a process that dies: from then on none of its timers fires any more. */
export function mortal(clock: FakeClock): { readonly clock: Clock; die(): void } {
  let isDead = false
  const after: Clock['after'] = (ms, run) => (isDead ? () => undefined : clock.after(ms, () => isDead || run()))
  return {
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after,
      sleep: (ms, signal) => sleepOn(after, ms, signal),
    },
    die: () => {
      isDead = true
      // What is registered last is called first: a system that is dead could not be stopped.
      onTestFinished(() => {
        isDead = false
      })
    },
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
