import { memoryBackend } from '../../backends/memory/index.js'
import { overPlainPorts } from '../../backends/plain/over-plain-ports.js'
import type { Clock, Random } from '../../core/time/clock.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { Backend, Queue } from '../../ports/ports.js'
import { createWorkOn, type WorkSystem } from '../../work/create-work.js'
import type { AnyWorkBuilder } from '../../work/define/work.js'
import type { WorkSystemOptions } from '../../work/options.js'
import type { ScheduleConfig } from '../../work/schedule/config.js'
import type { Aim } from './aimed-crashes.js'
import { Chance } from './chance.js'
import type { History, ProcessHistory } from './history.js'
import { processClock } from './process-clock.js'
import type { QueueNames } from './queue-names.js'
import { type Ground, type RemoteBackend, remoteBackend } from './remote-backend.js'
import type { Owner } from './scheduler.js'
import { watchedSystem } from './watched-system.js'
import { watchedWork } from './watched-work.js'
import { Wire, type WireWorld } from './wire.js'
import type { SimulatedWorld } from './world.js'

/** One process of a simulated fleet, as handlers and tests see it. */
export interface SimulatedProcess {
  /** `p1`, `p2`, …; what is started in place of `p1` is `p1.2`. */
  readonly name: string
  readonly world: SimulatedWorld
  /** Its time, off by its own skew, and its timers. Handlers that wait must wait on it. */
  readonly clock: Clock
  /** Chance from the seed. */
  readonly random: Random
  /** Its work system. */
  readonly system: WorkSystem
  /** False once it crashed or was stopped. */
  readonly isAlive: boolean
  /** Its own end of the queue with this name, for work types that have their own queue. */
  queue(name: string): Queue
  /**
   * A call to something else than Millrace: a bank, a mail server. It takes time, may be lost before or after it happened,
   * and the process may die meanwhile. `happens` does its work before it returns.
   */
  call<T>(name: string, happens: () => MaybePromise<T>): Promise<T>
  /** Dies here and now: no answer reaches it any more. Return it from a handler to die in the middle of a run. */
  crash(): Promise<never>
  /** Stands still for so long, as under SIGSTOP, and then goes on. */
  pause(ms: Ms): void
}

/** What a process is made from. */
export interface ProcessMaker extends WireWorld {
  readonly seed: number
  readonly shared: Backend
  readonly ground: Ground
  readonly history: History
  readonly work: (process: SimulatedProcess) => readonly AnyWorkBuilder[]
  readonly system: (process: SimulatedProcess) => SimulatedSystemOptions
  readonly schedules: (process: SimulatedProcess) => readonly ScheduleConfig[]
  readonly queues: QueueNames
  /** Whether a crash is aimed at a run of this item that begins now. */
  readonly aimAt: (id: string, type: string) => Aim | undefined
}

/** Options of the systems in a simulated fleet: all but those that the simulation sets itself. */
export type SimulatedSystemOptions = Omit<
  WorkSystemOptions,
  | 'backend'
  | 'queue'
  | 'pubsub'
  | 'store'
  | 'clock'
  | 'now'
  | 'random'
  | 'generateId'
  | 'work'
  | 'autoStart'
  | 'keepAlive'
  | 'prefix'
>

export class Process implements SimulatedProcess, Owner {
  readonly name: string
  readonly world: SimulatedWorld
  readonly clock: Clock
  readonly random: Random
  readonly system: WorkSystem
  /** Its work types by name. */
  readonly builders = new Map<string, AnyWorkBuilder>()
  /** Resolves when it crashed or has stopped. */
  readonly gone: Promise<void>
  isDead = false
  pausedUntilMs: Ms = 0
  isStopping = false
  readonly #maker: ProcessMaker
  readonly #wire: Wire
  readonly #remote: RemoteBackend
  readonly #history: ProcessHistory
  readonly #stopDrainMs: Ms
  #go: () => void = () => undefined

  constructor(world: SimulatedWorld, maker: ProcessMaker, name: string) {
    this.world = world
    this.#maker = maker
    this.name = name
    const { scheduler, chance, history, journal } = maker
    const { clockSkewMs } = maker.faults()
    const skewMs = chance.between(-clockSkewMs, clockSkewMs)
    this.random = new Chance(`${maker.seed}/${name}`).random
    this.clock = processClock(scheduler, this, skewMs)
    this.gone = new Promise((resolve) => {
      this.#go = resolve
    })
    this.#wire = new Wire(maker, this)
    this.#remote = remoteBackend(maker.shared, maker.ground, this.#wire, history)
    const given = maker.system(this)
    this.#stopDrainMs = given.stopDrain ?? 5_000
    this.#history = { leaseMs: given.visibility ?? 30_000, awakeMs: scheduler.nowMs }
    history.processes.set(name, this.#history)
    const watcher = {
      name,
      history,
      journal,
      queueFor: (queue: Queue) => this.#queueFor(queue),
      began: (id: string, type: string) => this.#aimed(id, type),
    }
    for (const builder of maker.work(this)) this.builders.set(builder.type, watchedWork(builder, watcher))
    journal.write(name, `starts, its clock off by ${skewMs} ms`)
    const system = createWorkOn(
      { memoryBackend, overPlainPorts },
      {
        ...given,
        ...this.#remote.backend,
        clock: this.clock,
        random: this.random,
        work: [...this.builders.values()],
        keepAlive: false,
        onEvent: (event) => {
          if (event.kind === 'group-done') history.groupDone(event.groupId)
          given.onEvent?.(event)
        },
        onError: (error, phase) => {
          journal.write(name, `reports (${phase}): ${error instanceof Error ? error.message : String(error)}`)
          given.onError?.(error, phase)
        },
      },
    )
    this.system = watchedSystem(system, name, history)
    for (const schedule of maker.schedules(this)) this.system.schedule(schedule)
  }

  get isAlive(): boolean {
    return !this.isDead
  }

  get unanswered(): number {
    return this.#wire.unanswered
  }

  readonly queue = (name: string): Queue => {
    this.#maker.queues.used.add(name)
    return this.#remote.queue(name)
  }

  readonly call = <T>(name: string, happens: () => MaybePromise<T>): Promise<T> => this.#wire.call(name, happens)

  readonly crash = (): Promise<never> => {
    if (!this.isDead) this.#maker.journal.write(this.name, 'crashes')
    this.#leave()
    // A new one each time: one for all would keep every world alive that ever waited on it.
    return new Promise<never>(() => undefined)
  }

  readonly pause = (ms: Ms): void => {
    this.#maker.journal.write(this.name, `stands still for ${ms} ms`)
    this.pausedUntilMs = Math.max(this.pausedUntilMs, this.#maker.scheduler.nowMs + ms)
    this.#history.awakeMs = this.pausedUntilMs
  }

  /** Stops as for a deploy; resolves also when it crashes meanwhile. */
  async stop(): Promise<void> {
    this.isStopping = true
    this.#maker.journal.write(this.name, 'is asked to stop')
    this.#mustBeGone(this.#stopDrainMs + 1_000, true)
    await Promise.race([this.system.stop(), this.gone])
    if (!this.isDead) this.#maker.journal.write(this.name, 'has stopped')
    this.#leave()
  }

  /** Checked twice: a process that just woke up does everything overdue at the same instant, in any order. */
  #mustBeGone(inMs: Ms, isFirst: boolean): void {
    this.clock.after(inMs, () => {
      if (isFirst) this.#mustBeGone(1_000, false)
      else this.#maker.history.breaks('a shutdown ends in time', `${this.name} was asked to stop, and did not`)
    })
  }

  /** A run begins; returns what is to be called when its handler has ended. A crash may be aimed at it. */
  #aimed(id: string, type: string): () => void {
    const aim = this.#maker.aimAt(id, type)
    if (aim === 'at its end') return () => void this.crash()
    if (aim !== undefined) this.#maker.scheduler.schedule(aim.inMs, this, () => void this.crash())
    return () => undefined
  }

  #leave(): void {
    this.isDead = true
    this.#history.goneMs ??= this.#maker.scheduler.nowMs
    this.#wire.close()
    this.#go()
  }

  /** A type that was defined outside of the simulation brings its own queue: here another one stands for it. */
  #queueFor(queue: Queue): Queue {
    return this.#remote.nameOf(queue) === undefined ? this.queue(this.#maker.queues.standIn(queue)) : queue
  }
}
