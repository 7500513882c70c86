import type { Ledger } from '../../src/ports/ledger.js'
import type { CommitResult, Settlement } from '../../src/ports/settlement.js'

/**
 * Stands between engine and ledger, and counts what passes: what is claimed, what is settled, and so what is held. It changes
 * nothing and waits for nothing.
 */
export class LedgerWatch {
  /** The token of the lease of each item that is claimed and not settled. */
  readonly #held = new Map<string, string>()
  readonly #onCommit: () => void
  #target: { readonly ended: number; readonly reached: () => void } | undefined
  readonly dead: Record<string, number> = {}
  mostHeld = 0
  done = 0
  lapses = 0
  stale = 0
  /** When the last item ended. */
  lastAt = 0

  constructor(onCommit: () => void) {
    this.#onCommit = onCommit
  }

  get ended(): number {
    return Object.values(this.dead).reduce((a, b) => a + b, this.done)
  }

  over(ledger: Ledger): Partial<Ledger> {
    return {
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        for (const { lease, lapses } of reply.items) {
          this.#held.set(lease.id, lease.token)
          if (lapses > 0) this.lapses += 1
        }
        this.mostHeld = Math.max(this.mostHeld, this.#held.size)
        return reply
      },
      commit: async (batch) => {
        const results = await ledger.commit(batch)
        for (const [i, settlement] of batch.entries()) this.#settled(settlement, results[i]!)
        this.#onCommit()
        if (this.#target !== undefined && this.ended >= this.#target.ended) this.#target.reached()
        return results
      },
    }
  }

  /** Resolves with whether that many items have ended before the time is over. */
  reach(ended: number, withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const answer = (isReached: boolean) => {
        clearTimeout(timer)
        this.#target = undefined
        resolve(isReached)
      }
      const timer = setTimeout(() => answer(false), withinMs)
      this.#target = { ended, reached: () => answer(true) }
      if (this.ended >= ended) answer(true)
    })
  }

  #settled({ guard, effects }: Settlement, { kind }: CommitResult): void {
    if (guard.by !== 'lease' || (kind !== 'applied' && kind !== 'repeated' && kind !== 'stale')) return
    const { id, token } = guard.lease
    const isOurs = this.#held.get(id) === token
    if (isOurs) this.#held.delete(id)
    if (kind === 'stale') {
      this.stale += 1
      return
    }
    // The reply to an earlier commit may have been lost; it counts once.
    if (!isOurs) return
    for (const effect of effects) {
      if (effect.do === 'complete') this.done += 1
      else if (effect.do === 'deadLetter') this.dead[effect.ending] = (this.dead[effect.ending] ?? 0) + 1
      else continue
      this.lastAt = performance.now()
    }
  }
}
