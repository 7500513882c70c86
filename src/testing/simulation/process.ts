import { memoryBackend } from '../../backends/memory/index.js'
import type { Clock, Random } from '../../core/clock.js'
import type { Maybe, Ms } from '../../core/time.js'
import type { Backend, Queue } from '../../ports/ports.js'
import { createWorkOn, type WorkSystem } from '../../work/create-work.js'
import type { ScheduleConfig } from '../../work/schedule/config.js'
import type { WorkSystemOptions } from '../../work/system-options.js'
import type { AnyWorkBuilder } from '../../work/work.js'
import { Chance } from './chance.js'
import { type FarBackend, farBackend, type Ground } from './far-backend.js'
import type { History, ProcessHistory } from './history.js'
import { processClock } from './process-clock.js'
import type { QueueNames } from './queue-names.js'
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
  /** Its own end of the queue with this name, for work types that have a queue of their own. */
  queue(name: string): Queue
  /**
   * A call to something else than Millrace: a bank, a mail server. It takes time, may be lost before or after it happened,
   * and the process may die meanwhile. `happens` does its work before it returns.
   */
  call<T>(name: string, happens: () => Maybe<T>): Promise<T>
  /** Dies here and now: nothing that it waits for ever comes. Return it from a handler to die in the middle of a run. */
  crash(): Promise<never>
  /** Stands still for so long, as under SIGSTOP, and then goes on. */
  pause(ms: Ms): void
}

/** What a process is made from. */
export interface ProcessMaker extends WireWorld {
  readonly seed: number
  readonly near: Backend
  readonly ground: Ground
  readonly history: History
  readonly work: (process: SimulatedProcess) => readonly AnyWorkBuilder[]
  readonly system: (process: SimulatedProcess) => SimulatedSystemOptions
  readonly schedules: (process: SimulatedProcess) => readonly ScheduleConfig[]
  readonly queues: QueueNames
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
  readonly #far: FarBackend
  readonly #told: ProcessHistory
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
    this.#far = farBackend(maker.near, maker.ground, this.#wire, history)
    const given = maker.system(this)
    this.#stopDrainMs = given.stopDrain ?? 5_000
    this.#told = { leaseMs: given.visibility ?? 30_000, awakeMs: scheduler.nowMs }
    history.processes.set(name, this.#told)
    const watcher = { name, history, journal, queueFor: (queue: Queue) => this.#queueFor(queue) }
    for (const builder of maker.work(this)) this.builders.set(builder.type, watchedWork(builder, watcher))
    journal.write(name, `starts, its clock off by ${skewMs} ms`)
    const system = createWorkOn(memoryBackend, {
      ...given,
      ...this.#far.backend,
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
    })
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
    return this.#far.queue(name)
  }

  readonly call = <T>(name: string, happens: () => Maybe<T>): Promise<T> => this.#wire.call(name, happens)

  readonly crash = (): Promise<never> => {
    if (!this.isDead) this.#maker.journal.write(this.name, 'crashes')
    this.#leave()
    // A new one each time: one for all would keep every world alive that ever waited on it.
    return new Promise<never>(() => undefined)
  }

  readonly pause = (ms: Ms): void => {
    this.#maker.journal.write(this.name, `stands still for ${ms} ms`)
    this.pausedUntilMs = Math.max(this.pausedUntilMs, this.#maker.scheduler.nowMs + ms)
    this.#told.awakeMs = this.pausedUntilMs
  }

  /** Stops as for a deploy; whoever waits for it learns of a crash meanwhile, too. */
  async stop(): Promise<void> {
    this.isStopping = true
    this.#maker.journal.write(this.name, 'is told to stop')
    this.#mustBeGone(this.#stopDrainMs + 1_000, true)
    await Promise.race([this.system.stop(), this.gone])
    if (!this.isDead) this.#maker.journal.write(this.name, 'has stopped')
    this.#leave()
  }

  /** Looked at twice: a process that just woke up does everything that is overdue at once, in any order. */
  #mustBeGone(inMs: Ms, isFirst: boolean): void {
    this.clock.after(inMs, () => {
      if (isFirst) this.#mustBeGone(1_000, false)
      else this.#maker.history.breaks('a shutdown ends in time', `${this.name} was told to stop, and did not`)
    })
  }

  #leave(): void {
    this.isDead = true
    this.#told.goneMs ??= this.#maker.scheduler.nowMs
    this.#wire.close()
    this.#go()
  }

  /** A type that was defined outside of the simulation brings its own queue: here another one stands for it. */
  #queueFor(queue: Queue): Queue {
    return this.#far.nameOf(queue) === undefined ? this.queue(this.#maker.queues.standIn(queue)) : queue
  }
}
