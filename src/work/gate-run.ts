import type { Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { ItemSummary } from '../ports/ledger.js'
import { summariesOf } from '../ports/summaries.js'
import { topOf } from '../ports/tree.js'
import { verdictOn } from './condition.js'
import type { DependencyInput } from './dependency.js'
import { failureOf } from './failure-of.js'
import type { Outcome } from './outcome.js'
import { planFired } from './plan.js'
import type { Shared } from './shared.js'

/** How long it is remembered that a gate has fired. */
const FIRED_TTL_MS = 86_400_000
const LONGEST_LOOK_MS = 60_000

/**
 * Runs gates. What a gate has decided comes with its claim; only a gate that comes without a decision (its time is up, or
 * somebody put it back to work) looks at the items itself.
 */
export class GateRun {
  readonly #s: Shared

  constructor(shared: Shared) {
    this.#s = shared
  }

  async outcome(item: Claimed, input: DependencyInput): Promise<Outcome> {
    const { envelope, gate } = item
    const now = this.#s.now()
    try {
      const verdict = gate?.met === true ? true : await this.#verdict(item, input)
      if (verdict === true) {
        // It may be met before it is due. One that was asked for without a delay is due, whatever clock its process went by.
        const isDelayed = envelope.startAt > envelope.queueAt
        if (isDelayed && envelope.startAt > now) return { kind: 'waiting', delayMs: envelope.startAt - now }
        return await this.#fire(item, input)
      }
      const leftMs = (input.deadline ?? Infinity) - now
      // A member that died may be redriven, where dead letters are: then only time decides.
      const isFinal = verdict === false && !(this.#s.o.given.dlq !== undefined && leftMs > 0 && leftMs < Infinity)
      if (isFinal) return dead(`dependency: cannot be satisfied [${input.on.join(', ')}]`)
      if (leftMs <= 0) return dead(`dependency: timed out waiting for [${input.on.join(', ')}]`)
      return { kind: 'waiting', delayMs: Math.min(leftMs, lookAgainMs(item, input)) }
    } catch (error) {
      this.#s.failed(error, 'queue')
      return { kind: 'waiting', delayMs: lookAgainMs(item, input) }
    }
  }

  async #fire(item: Claimed, input: DependencyInput): Promise<Outcome> {
    if (!(await this.#mayFire(item, input))) return { kind: 'returned', contributions: [], children: [], gates: [] }
    return { kind: 'returned', ...planFired(this.#s.rules, input, item, this.#s.now()) }
  }

  /**
   * Over plain ports another engine may serve the same store: whoever writes this key first fires the gate. Under the gate's
   * own id, so that a run which died after it is resumed by the next.
   */
  async #mayFire({ envelope: { id } }: Claimed, { key }: DependencyInput): Promise<boolean> {
    if (this.#s.ledger.atomic) return true
    const { store } = this.#s.ports
    const fired = `${this.#s.o.prefix}dep:${key}:fired`
    return (await store.setIfNotExists(fired, id, FIRED_TTL_MS)) || (await store.get(fired)) === id
  }

  async #verdict({ gate }: Claimed, { on, members = on, config }: DependencyInput): Promise<boolean | undefined> {
    if (gate !== undefined && this.#s.o.given.dlq === undefined) return gate.met
    const views = await this.#read(members)
    return verdictOn(config, views)
  }

  /** A tree that nothing was queued below ends with the item at its top. */
  async #read(members: readonly string[]): Promise<readonly (ItemSummary | undefined)[]> {
    const { ledger } = this.#s
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

/** Longer each time, because nothing says how long it will take. */
function lookAgainMs({ deliveries }: Claimed, { poll }: DependencyInput): Ms {
  return Math.min(LONGEST_LOOK_MS, poll * 2 ** Math.min(30, Math.max(0, deliveries - 1)))
}

function dead(reason: string): Outcome {
  return failureOf(reason, { class: 'poison', rule: 'dependency' }, 'abort')
}
