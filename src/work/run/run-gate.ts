import { doublingDelay } from '../../core/retry/backoff.js'
import type { Ms } from '../../core/time/time.js'
import { type ItemSummary, summariesOf } from '../../ports/inspect.js'
import { type ClaimedItem, topOf } from '../../ports/item.js'
import { verdictOn } from '../define/condition.js'
import type { DependencyInput } from '../define/dependency.js'
import type { EngineContext } from '../engine-context.js'
import type { Outcome } from '../settle/outcome.js'
import { failureOf } from '../settle/outcome.js'
import { planFired } from '../settle/plan-children.js'

/** How long it is remembered that a gate has fired. */
const FIRED_TTL_MS = 86_400_000
const LONGEST_POLL_MS = 60_000

/**
 * Runs gates. What a gate has decided comes with its claim. Only a gate without a decision (its time is up, or a person made it
 * run) reads the items itself.
 */
export class GateRunner {
  readonly #context: EngineContext

  constructor(context: EngineContext) {
    this.#context = context
  }

  async outcome(item: ClaimedItem, input: DependencyInput): Promise<Outcome> {
    const { envelope, gate } = item
    const now = this.#context.now()
    try {
      const verdict = gate?.met === true ? true : await this.#verdict(item, input)
      if (verdict === true) {
        // It may be met before it is due. Without a delay it is due, whatever the clock of the process that enqueued it.
        const isDelayed = envelope.startAt > envelope.queueAt
        if (isDelayed && envelope.startAt > now) return { kind: 'waiting', delayMs: envelope.startAt - now }
        return await this.#fire(item, input)
      }
      const leftMs = (input.deadline ?? Infinity) - now
      // With a dead-letter queue, a dead member may be redriven: then only time decides.
      const isFinal = verdict === false && !(this.#context.o.given.dlq !== undefined && leftMs > 0 && leftMs < Infinity)
      if (isFinal) return dead(`dependency: cannot be satisfied [${input.on.join(', ')}]`)
      if (leftMs <= 0) return dead(`dependency: timed out waiting for [${input.on.join(', ')}]`)
      return { kind: 'waiting', delayMs: Math.min(leftMs, nextCheckMs(item, input)) }
    } catch (error) {
      this.#context.failed(error, 'queue')
      return { kind: 'waiting', delayMs: nextCheckMs(item, input) }
    }
  }

  async #fire(item: ClaimedItem, input: DependencyInput): Promise<Outcome> {
    if (!(await this.#mayFire(item, input))) return { kind: 'returned', contributions: [], children: [], gates: [] }
    return { kind: 'returned', ...planFired(this.#context.rules, input, item, this.#context.now()) }
  }

  /**
   * Over plain ports another engine may use the same store: the one that writes this key first fires the gate. The value is the
   * gate's id, so after a crash the next run of the gate continues.
   */
  async #mayFire({ envelope: { id } }: ClaimedItem, { key }: DependencyInput): Promise<boolean> {
    if (this.#context.ledger.atomic) return true
    const { store } = this.#context.ports
    const fired = `${this.#context.o.prefix}dep:${key}:fired`
    return (await store.setIfNotExists(fired, id, FIRED_TTL_MS)) || (await store.get(fired)) === id
  }

  async #verdict({ gate }: ClaimedItem, { on, members = on, config }: DependencyInput): Promise<boolean | undefined> {
    if (gate !== undefined && this.#context.o.given.dlq === undefined) return gate.met
    const views = await this.#read(members)
    return verdictOn(config, views)
  }

  /** A tree without children ends with the item at its top. */
  async #read(members: readonly string[]): Promise<readonly (ItemSummary | undefined)[]> {
    const { ledger } = this.#context
    const views = await summariesOf(ledger, members)
    const tops = members.map((member, i) => (views[i] === undefined ? topOf(member) : undefined))
    if (tops.every((top) => top === undefined)) return views
    const found = await summariesOf(
      ledger,
      tops.map((top, i) => top ?? members[i]!),
    )
    return views.map((view, i) => view ?? found[i])
  }
}

/** Longer each time, because it is unknown how long the wait will be. */
function nextCheckMs({ deliveries }: ClaimedItem, { poll }: DependencyInput): Ms {
  return doublingDelay(Math.max(0, deliveries - 1), { baseMs: poll, maxMs: LONGEST_POLL_MS })
}

function dead(reason: string): Outcome {
  return failureOf(reason, { class: 'poison', rule: 'dependency' }, 'abort')
}
