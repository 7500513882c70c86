import type { At } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import type { EngineContext } from '../engine-context.js'
import { type Route, route } from '../run/route.js'
import type { Outcome } from '../settle/outcome.js'
import type { UnwrittenOutcomes } from '../settle/unwritten-outcomes.js'

/** Decides where a delivery goes: by its item, by what this process has run already, and by the `accept` option. */
export class DeliveryRouter {
  readonly #context: EngineContext
  readonly #unwritten: UnwrittenOutcomes
  /** Deliveries that ended before their run. */
  readonly #ends = new WeakMap<Delivery<ClaimedItem>, Outcome>()
  /** The backend's time at the last claim. */
  #claimedAt: At = Number.NEGATIVE_INFINITY

  constructor(context: EngineContext, unwritten: UnwrittenOutcomes) {
    this.#context = context
    this.#unwritten = unwritten
  }

  claimed(now: At): void {
    this.#claimedAt = now
  }

  /** Where a delivery goes that was just claimed. */
  route(delivery: Delivery<ClaimedItem>): Route {
    const { registry, o, lending } = this.#context
    const { envelope } = delivery.item
    // Its handler has run already: only the outcome has to be written.
    const kept = this.#unwritten.of(delivery.item)
    if (kept !== undefined) return { kind: 'end', outcome: kept.ran.outcome }
    const way = this.#routeItem(delivery.item)
    if (way.kind === 'end') this.#ends.set(delivery, way.outcome)
    if (way.kind !== 'run') return way
    const back: Route = { kind: 'back', afterMs: o.pollInterval }
    if (lending.isClosedTo(envelope.type)) return back
    const { accept } = o.given
    if (accept === undefined) return way
    const { id, type, groupId, attempt } = envelope
    let input: unknown
    try {
      input = registry.codecOf(type, o.codec).parse(envelope.input)
    } catch {
      return way // The run dead-letters an input that it cannot decode, with the reason.
    }
    return accept({ id, type, groupId, attempt, input }) === false ? back : way
  }

  /** Sends a delivery back to the queue instead of running it. */
  putBack(delivery: Delivery<ClaimedItem>): void {
    this.#ends.set(delivery, { kind: 'waiting', delayMs: this.#context.o.pollInterval })
  }

  /** The outcome of a delivery that is not to run. It may have waited, and expired meanwhile. */
  endOf(delivery: Delivery<ClaimedItem>): Outcome | undefined {
    const ended = this.#ends.get(delivery)
    if (ended !== undefined) return ended
    const way = this.#routeItem(delivery.item)
    return way.kind === 'end' ? way.outcome : undefined
  }

  #routeItem(item: ClaimedItem): Route {
    const { registry, ledger } = this.#context
    const isKnown = registry.find(item.envelope.type) !== undefined
    const known = isKnown ? 'known' : ledger.atomic ? 'not asked for' : 'unknown'
    // Our own time may be a little behind that by which the backend found the item expired. Most have no deadline to compare it with.
    const now = item.envelope.deadline === undefined ? this.#claimedAt : Math.max(this.#context.now(), this.#claimedAt)
    return route(item, known, now)
  }
}
