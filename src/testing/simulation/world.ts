import { memoryBackend } from '../../backends/memory/index.js'
import type { Clock, Random } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { ItemView } from '../../ports/inspect.js'
import type { ScheduleRecord } from '../../ports/ledger.js'
import type { Backend } from '../../ports/ports.js'
import type { GroupValue } from '../../ports/settlement.js'
import type { WorkSystem } from '../../work/create-work.js'
import { UnknownTypeError } from '../../work/define/registry.js'
import type { Work, WorkInstanceOptions } from '../../work/define/work.js'
import { AimedCrashes } from './aimed-crashes.js'
import { BackendState } from './backend-state.js'
import { Chance } from './chance.js'
import { BrokenPromiseError } from './errors.js'
import { type Faults, NO_FAULTS, weatherOf } from './faults.js'
import { History, type SimulatedRun } from './history.js'
import { Journal } from './journal.js'
import type { ResolvedSimulation } from './options.js'
import { Process, type ProcessMaker, type SimulatedProcess } from './process.js'
import { processClock } from './process-clock.js'
import { QueueNames } from './queue-names.js'
import type { ResolvedScenario } from './scenario.js'
import { Scheduler } from './scheduler.js'

/** A simulated world, as its scenario sees it. */
export interface SimulatedWorld {
  readonly seed: number
  /** True time, without skew. Waiting on it lets the world go on. */
  readonly clock: Clock
  /** Chance from the seed, for your own decisions. */
  readonly random: Random
  /** Things go wrong now. Afterwards there is peace, in which everything must come to rest. */
  readonly isTroubled: boolean
  /** The living processes. */
  readonly processes: readonly SimulatedProcess[]
  /**
   * Enqueues at some process, and at another one when that fails or dies, until the work is accepted: a producer that does
   * not give up. Resolves with the item's id.
   */
  enqueue(work: Work, options?: WorkInstanceOptions): Promise<string>
  /** The same for work of a type that the fleet knows, by its name. */
  enqueue(type: string, input: unknown, options?: WorkInstanceOptions): Promise<string>
  /**
   * Asks the system of some process for something that may be done twice, and another one when that fails or dies, until it
   * is answered: an operator who cancels, pauses or resumes, and does not give up.
   */
  ask<T>(call: (system: WorkSystem) => Promise<T>): Promise<T>
  /** Work of a type that the fleet knows, to be enqueued at a process of your choice. */
  work(type: string, input: unknown): Work
  /** Where an item stands, as the backend itself knows it. */
  item(id: string): Promise<ItemView | undefined>
  /** The value of a group, and how many of its items are open. */
  group(id: string): Promise<(GroupValue & { readonly open: number }) | undefined>
  /** When a schedule fires next, as the fleet has agreed. */
  schedule(name: string): Promise<ScheduleRecord | undefined>
  /** Every run of a handler so far, in the order in which they began for each item. */
  runs(): readonly SimulatedRun[]
  /** Fails the simulation with these words unless `holds`. */
  expect(holds: boolean, promise: string): void
}

/** One world of one seed: its time, its backend, its fleet and the trouble it is in. */
export class World implements SimulatedWorld {
  readonly seed: number
  readonly clock: Clock
  readonly random: Random
  readonly scheduler: Scheduler
  readonly journal: Journal
  readonly history: History
  readonly backendState: BackendState
  readonly crashes = { count: 0 }
  readonly #o: ResolvedSimulation
  readonly #parts: Omit<ProcessMaker, 'work' | 'system' | 'schedules'>
  #maker: ProcessMaker | undefined
  readonly #weather: Faults
  readonly #aimed: AimedCrashes
  readonly #slots: Process[] = []
  #isTroubled = true
  #awayUntilMs: Ms = 0

  constructor(options: ResolvedSimulation, seed: number) {
    this.#o = options
    this.seed = seed
    const chance = new Chance(`${seed}/world`)
    this.random = new Chance(`${seed}/setup`).random
    this.scheduler = new Scheduler(new Chance(`${seed}/order`).random, options.maxEvents)
    this.clock = processClock(this.scheduler, undefined, 0)
    const now = () => this.scheduler.nowMs
    this.journal = new Journal(now)
    this.history = new History(options.ground, now)
    this.#weather = weatherOf(options.faults, chance)
    this.#aimed = new AimedCrashes(this.#weather, new Chance(`${seed}/aim`))
    const shared: Backend = options.backend?.(this.clock) ?? memoryBackend({ clock: this.clock })
    const queues = new QueueNames()
    this.#parts = {
      seed,
      scheduler: this.scheduler,
      journal: this.journal,
      chance,
      history: this.history,
      shared,
      queues,
      ground: options.ground,
      faults: () => (this.#isTroubled ? this.#weather : NO_FAULTS),
      isTroubled: () => this.#isTroubled,
      underWay: { count: 0 },
      aimAt: (id, type) => (this.#isTroubled ? this.#aimed.at(id, type) : undefined),
      isBackendAway: () => this.#awayUntilMs > this.scheduler.nowMs,
    }
    this.backendState = new BackendState(shared, options.ground, queues, this.clock)
  }

  get isTroubled(): boolean {
    return this.#isTroubled
  }

  get processes(): readonly Process[] {
    return this.#slots.filter((process) => process.isAlive)
  }

  /** Starts the fleet, and the trouble. */
  begin(scenario: ResolvedScenario): void {
    this.#maker = { ...this.#parts, work: scenario.work, system: scenario.system, schedules: scenario.schedules }
    for (let slot = 0; slot < this.#o.processes; slot += 1) this.#start(slot, 1)
    const { crashesPerMinute, restartsPerMinute, pausesPerMinute, outagesPerMinute } = this.#weather
    this.#again(crashesPerMinute, () => {
      if (!this.#aimed.takes()) void this.#anyProcess()?.crash()
    })
    this.#again(restartsPerMinute, () => void this.#anyProcess()?.stop())
    this.#again(pausesPerMinute, () =>
      this.#anyProcess()?.pause(this.#parts.chance.between(1, this.#weather.longestPauseMs)),
    )
    this.#again(outagesPerMinute, () => {
      const ms = this.#parts.chance.between(1, this.#weather.longestOutageMs)
      this.journal.write('server', `cannot be reached for ${ms} ms`)
      this.#awayUntilMs = this.scheduler.nowMs + ms
    })
  }

  /** From now on nothing goes wrong. */
  calm(): void {
    this.#isTroubled = false
    this.#awayUntilMs = 0
    this.journal.write('world', 'calms down')
  }

  /** Nothing of it goes on. */
  end(): void {
    for (const process of this.#slots) process.isDead = true
  }

  /** No call from troubled times is in flight or unanswered, and no process stands still. */
  get isSettled(): boolean {
    const { nowMs } = this.scheduler
    if (this.#parts.underWay.count > 0) return false
    return this.processes.every(({ unanswered, pausedUntilMs }) => unanswered === 0 && pausedUntilMs <= nowMs)
  }

  readonly enqueue = (first: Work | string, second?: unknown, third?: WorkInstanceOptions): Promise<string> => {
    if (typeof first === 'string') return this.#insist(this.work(first, second), third)
    return this.#insist(first, second as WorkInstanceOptions | undefined)
  }

  readonly ask = async <T>(call: (system: WorkSystem) => Promise<T>): Promise<T> => {
    for (;;) {
      const process = this.#parts.chance.pick(this.processes.filter(({ isStopping }) => !isStopping))
      if (process !== undefined) {
        const answer = call(process.system).then(
          (value) => ({ value }),
          () => undefined,
        )
        const answered = await Promise.race([answer, process.gone.then(() => undefined)])
        if (answered !== undefined) return answered.value
      }
      await this.clock.sleep(this.#parts.chance.between(1, 500))
    }
  }

  readonly work = (type: string, input: unknown): Work => {
    const builders = this.#slots[0]?.builders
    const builder = builders?.get(type)
    if (builder === undefined) throw new UnknownTypeError(type, [...(builders?.keys() ?? [])])
    return builder(input)
  }

  async #insist(given: Work, options: WorkInstanceOptions | undefined): Promise<string> {
    for (let work = given; ; work = this.#sameOrNew(given)) {
      const process = this.#parts.chance.pick(this.processes.filter(({ isStopping }) => !isStopping))
      if (process !== undefined) {
        const receipt = process.system.enqueue(work, options).accepted()
        const accepted = await Promise.race([
          receipt.then(() => true).catch(() => false),
          process.gone.then(() => false),
        ])
        if (accepted) return work.id
      }
      await this.clock.sleep(this.#parts.chance.between(1, 500))
    }
  }

  /** The same work: an enqueue that is repeated does nothing twice. On plain ports that is not certain, and new work is. */
  #sameOrNew(work: Work): Work {
    return this.#o.ground === 'native' ? work : this.work(work.type, work.input)
  }

  readonly item = async (id: string): Promise<ItemView | undefined> => (await this.backendState.ledger.read([id]))[0]

  readonly group = async (id: string) => (await this.backendState.ledger.groups([id]))[0]

  readonly schedule = async (name: string) => (await this.backendState.ledger.schedules?.([name]))?.[0]

  readonly runs = (): readonly SimulatedRun[] => [...this.history.items.values()].flatMap(({ runs }) => runs)

  readonly expect = (holds: boolean, promise: string): void => {
    if (!holds) throw new BrokenPromiseError(promise)
  }

  /** A process in this place, and another one whenever it is gone. */
  #start(slot: number, generation: number): void {
    const process = new Process(this, this.#maker!, generation === 1 ? `p${slot + 1}` : `p${slot + 1}.${generation}`)
    this.#slots[slot] = process
    void process.gone.then(() => {
      if (!process.isStopping) this.crashes.count += 1
      const restartMs = this.#isTroubled ? this.#parts.chance.between(10, 15_000) : this.#parts.chance.between(10, 500)
      this.scheduler.schedule(restartMs, undefined, () => this.#start(slot, generation + 1))
    })
  }

  #anyProcess(): Process | undefined {
    return this.#parts.chance.pick(this.processes)
  }

  #again(perMinute: number, happens: () => void): void {
    this.scheduler.schedule(this.#parts.chance.untilNext(perMinute), undefined, () => {
      if (!this.#isTroubled) return
      happens()
      this.#again(perMinute, happens)
    })
  }
}
