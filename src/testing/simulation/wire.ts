import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { Chance } from './chance.js'
import { copied } from './copied.js'
import { SimulatedFaultError } from './errors.js'
import type { Faults } from './faults.js'
import type { Journal } from './journal.js'
import type { Owner, Scheduler } from './scheduler.js'

/** What all wires of a world have in common. */
export interface WireWorld {
  readonly scheduler: Scheduler
  readonly journal: Journal
  readonly chance: Chance
  /** The faults of this moment. */
  readonly faults: () => Faults
  readonly isTroubled: () => boolean
  /** Calls that were sent while there was trouble and have not happened yet. */
  readonly underWay: { count: number }
  /** No process reaches the backend. */
  readonly isBackendAway: () => boolean
}

/** How a call is written down, and whether it may arrive twice. */
export interface CallNotes<T> {
  readonly asked?: string
  readonly answered?: (value: T) => string
  readonly mayRepeat?: boolean
  /** It happens all the time, and is worth a line only for what it brings. */
  readonly isRoutine?: boolean
}

/**
 * The way of one process to the backend and back. A call and its reply are two events: in
 * between the process may die, the reply may be lost, and all other processes go on.
 */
export class Wire {
  readonly #world: WireWorld
  readonly #owner: Owner & { readonly name: string }
  /** Calls that were sent while there was trouble, and may take their time: nothing is at rest before them. */
  unanswered = 0
  readonly #subscriptions = new Set<() => void>()

  constructor(world: WireWorld, owner: Owner & { readonly name: string }) {
    this.#world = world
    this.#owner = owner
  }

  /** The process at this end. */
  get process(): string {
    return this.#owner.name
  }

  /** Calls `execute` at the backend. `execute` does its work before it returns; only its answer may be a promise. */
  call<T>(name: string, execute: () => MaybePromise<T>, notes: CallNotes<T> = {}): Promise<T> {
    const { scheduler, journal, chance, faults, isBackendAway, isTroubled, underWay } = this.#world
    const owner = this.#owner
    return new Promise((resolve, reject) => {
      // A dead process sends nothing and receives nothing.
      if (owner.isDead) return
      journal.write(owner.name, `→ ${name}${notes.asked === undefined ? '' : ` ${notes.asked}`}`, notes.isRoutine)
      const wasTroubled = isTroubled()
      if (wasTroubled) this.unanswered += 1
      const arrives = (ms: Ms, what: string, tell: () => void) => {
        scheduler.schedule(ms, owner, () => {
          if (wasTroubled) this.unanswered -= 1
          journal.write(owner.name, what, notes.isRoutine)
          tell()
        })
      }
      const fail = (how: string) =>
        arrives(this.#replyTimeout(), `✗ ${name}: ${how}`, () => reject(new SimulatedFaultError(name, how)))
      if (isBackendAway()) return fail('the backend could not be reached')
      if (chance.flip(faults().lostRequests)) return fail('the request was lost')
      const diesWithSender = chance.flip(0.5)
      // What is in flight happens also when its sender is gone.
      if (wasTroubled) underWay.count += 1
      const happens = () => {
        if (wasTroubled) underWay.count -= 1
        if (owner.isDead && diesWithSender) return
        this.#execute(name, execute, notes).then(
          (value) => {
            if (chance.flip(faults().lostReplies)) fail('the reply was lost')
            else arrives(this.#latency(), `← ${name}`, () => resolve(value))
          },
          (error) => arrives(this.#latency(), `← ${name}`, () => reject(error)),
        )
      }
      scheduler.schedule(this.#latency(), undefined, happens)
      if (notes.mayRepeat === true && chance.flip(faults().repeatedCommits)) {
        underWay.count += 1
        scheduler.schedule(this.#latency() + chance.between(0, 2_000), undefined, () => {
          underWay.count -= 1
          this.#execute(`${name} again`, execute, notes).catch(() => undefined)
        })
      }
    })
  }

  /** A subscription at the backend, which ends with the process at the latest. */
  listen(subscribe: () => () => void): () => void {
    if (this.#owner.isDead) return () => undefined
    const off = subscribe()
    this.#subscriptions.add(off)
    return () => {
      this.#subscriptions.delete(off)
      off()
    }
  }

  /** The process is gone. */
  close(): void {
    for (const off of this.#subscriptions) off()
    this.#subscriptions.clear()
  }

  /** A notification from the backend to the process: it may be late, lost, or come twice. */
  notify(name: string, hear: () => void): void {
    const { scheduler, journal, chance, faults } = this.#world
    const owner = this.#owner
    const times = chance.flip(faults().lostNotifications) ? 0 : chance.flip(faults().repeatedNotifications) ? 2 : 1
    for (let i = 0; i < times; i += 1) {
      scheduler.schedule(this.#latency(), owner, () => {
        journal.write(owner.name, `! ${name}`)
        hear()
      })
    }
  }

  async #execute<T>(name: string, execute: () => MaybePromise<T>, notes: CallNotes<T>): Promise<T> {
    const value = copied(await execute())
    const answer = notes.answered?.(value) ?? ''
    const what = `${name} of ${this.#owner.name}${answer === '' ? '' : `: ${answer}`}`
    this.#world.journal.write('server', what, answer === '' && notes.isRoutine)
    return value
  }

  #latency(): Ms {
    const { chance, faults } = this.#world
    const { slowCalls, slowestMs } = faults()
    if (chance.flip(slowCalls)) return chance.between(50, Math.max(50, slowestMs))
    return chance.flip(0.5) ? 0 : chance.between(1, 8)
  }

  /** How long a driver waits before it gives a call up. */
  #replyTimeout(): Ms {
    return this.#world.chance.flip(0.7) ? this.#world.chance.between(1, 200) : this.#world.chance.between(200, 10_000)
  }
}
