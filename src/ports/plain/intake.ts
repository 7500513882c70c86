import type { Ms } from '../../core/time.js'
import type { ClaimAsk } from '../ledger.js'
import type { PulledWork } from '../ports.js'
import { outcomeOf } from './call.js'
import type { Desk } from './desk.js'
import type { PlainQueue } from './plain-queue.js'

export interface Arrival {
  readonly queue: PlainQueue
  readonly pulled: PulledWork
  /** Monotonic time at which the queue answered: its lease counts from there. */
  readonly heardMs: Ms
}

export interface Pulled {
  readonly arrivals: readonly Arrival[]
  readonly failed: readonly { readonly queue: string; readonly error: unknown }[]
  /** A queue gave as much as it was asked for, or has more at hand. */
  readonly isFull: boolean
}

/** One queue's side of the intake: at most one pop under way, and what came too late for the claim that asked. */
interface Mouth {
  readonly queue: PlainQueue
  under: Promise<void> | undefined
  isAwaited: boolean
  arrivals: Arrival[]
  failed: { readonly error: unknown } | undefined
  isFull: boolean
}

/**
 * Pops all queues at once. A claim waits for them, but once one has answered the others get only a moment: what a slow
 * queue brings later is handed out by the next claim, which its arrival asks for. So neither an error nor slowness of one
 * queue keeps work of the others waiting.
 */
export class Intake {
  readonly #desk: Desk
  readonly #mouths = new Map<string, Mouth>()

  constructor(desk: Desk) {
    this.#desk = desk
  }

  async pull(from: ClaimAsk['from'], leaseMs: Ms): Promise<Pulled> {
    const asked = from.flatMap(({ queue, max }) => {
      const known = this.#desk.queues.get(queue)
      return known === undefined || !(max > 0) ? [] : [{ mouth: this.#mouth(known), max }]
    })
    for (const { mouth, max } of asked) this.#ask(mouth, max, leaseMs)
    await this.#answered(asked.map(({ mouth }) => mouth))
    const taken = asked.map(({ mouth, max }) => take(mouth, max))
    const unknown = from.filter(({ queue }) => !this.#desk.queues.has(queue))
    return {
      arrivals: taken.flatMap(({ arrivals }) => arrivals),
      failed: [
        ...taken.flatMap(({ queue, failed }) => (failed === undefined ? [] : [{ queue, error: failed.error }])),
        ...unknown.map(({ queue }) => ({ queue, error: new RangeError(`there is no queue "${queue}" here`) })),
      ],
      isFull: taken.some(({ isFull }) => isFull),
    }
  }

  #mouth(queue: PlainQueue): Mouth {
    const known = this.#mouths.get(queue.name)
    if (known !== undefined) return known
    const made: Mouth = { queue, under: undefined, isAwaited: false, arrivals: [], failed: undefined, isFull: false }
    this.#mouths.set(queue.name, made)
    return made
  }

  #ask(mouth: Mouth, max: number, leaseMs: Ms): void {
    mouth.isAwaited = true
    // What came late is handed out first; and a queue that has not answered is not asked again.
    if (mouth.under !== undefined || mouth.arrivals.length > 0) return
    const { queue } = mouth
    mouth.under = outcomeOf(queue.pop(max, leaseMs)).then((outcome) => {
      mouth.under = undefined
      if (!outcome.ok) {
        mouth.failed = { error: outcome.error }
        return
      }
      const heardMs = this.#desk.clock.monotonic()
      mouth.arrivals = outcome.value.map((pulled) => ({ queue, pulled, heardMs }))
      mouth.isFull = mouth.arrivals.length >= queue.full(max)
      if (!mouth.isAwaited && mouth.arrivals.length > 0) this.#late(mouth, leaseMs)
    })
  }

  /** Resolves when all have answered, or a moment after the first has. */
  async #answered(mouths: readonly Mouth[]): Promise<void> {
    const under = mouths.flatMap(({ under }) => under ?? [])
    const all = Promise.all(under)
    if (under.length === mouths.length && under.length > 1) await Promise.race(under)
    if (mouths.length > 1) await this.#orSlow(all)
    else await all
    for (const mouth of mouths) mouth.isAwaited = false
  }

  async #orSlow(all: Promise<unknown>): Promise<void> {
    let cancel: () => void = () => undefined
    const slow = new Promise<void>((resolve) => {
      cancel = this.#desk.clock.after(this.#desk.options.slowMs, resolve)
    })
    await Promise.race([all, slow])
    cancel()
  }

  /** Nobody may ask again: then the queue gets them back well before their leases run out. */
  #late(mouth: Mouth, leaseMs: Ms): void {
    const { clock, bell } = this.#desk
    const late = mouth.arrivals
    clock.after(leaseMs / 3, () => {
      const left = mouth.arrivals.filter((arrival) => late.includes(arrival))
      mouth.arrivals = mouth.arrivals.filter((arrival) => !late.includes(arrival))
      for (const { queue, pulled } of left)
        queue.fail(pulled).catch((error: unknown) => this.#desk.report(error, 'queue'))
    })
    bell.ring(mouth.queue.name)
  }
}

function take(mouth: Mouth, max: number) {
  const arrivals = mouth.arrivals.slice(0, max)
  mouth.arrivals = mouth.arrivals.slice(max)
  const { failed } = mouth
  const isFull = mouth.arrivals.length > 0 || (arrivals.length > 0 && mouth.isFull)
  mouth.failed = undefined
  return { queue: mouth.queue.name, arrivals, failed, isFull }
}
