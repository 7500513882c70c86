import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Effect, Guard } from '../../ports/settlement.js'

/** A cancel that the backend took while a run had the item. */
interface Mark {
  readonly ms: Ms
  /** The last lease it had then. A later one must not run it. */
  readonly fence: number
}

/** The controls that the backend accepted: which items are cancelled, which types and queues are paused. */
export class ControlHistory {
  readonly #paused = new Set<string>()
  readonly #marks = new Map<string, Mark>()
  readonly #ended = new Set<string>()

  /** An effect happened. `fence` is that of the last lease of an item. */
  applied(effect: Effect, guard: Guard, fence: (id: string) => number | undefined, ms: Ms): void {
    switch (effect.do) {
      case 'pause':
        this.#paused.add(`${effect.what} ${effect.name}`)
        return
      case 'resume':
        this.#paused.delete(`${effect.what} ${effect.name}`)
        return
      case 'requestCancel':
        if (!this.#marks.has(effect.id)) this.#marks.set(effect.id, { ms, fence: fence(effect.id) ?? 0 })
        return
      case 'deadLetter':
        if (effect.ending === 'cancelled' && guard.by === 'status') this.#ended.add(effect.id)
        return
      case 'redrive':
        this.#marks.delete(effect.id)
        return
      default:
        return
    }
  }

  /** What is wrong with handing this out, if anything. */
  faultOfLease({ lease, envelope }: ClaimedItem): string | undefined {
    for (const held of [`queue ${lease.queue}`, `type ${envelope.type}`]) {
      if (this.#paused.has(held)) return `${lease.id} was handed out while ${held} was paused`
    }
    return undefined
  }

  /** What is wrong with running this, if anything. */
  faultOfStart(id: string, fence: number): string | undefined {
    const mark = this.#marks.get(id)
    if (mark === undefined || fence <= mark.fence) return undefined
    return `${id} was started under fence ${fence}, and had been cancelled under fence ${mark.fence}`
  }

  /** Whether a cancel explains this end. */
  wasCancelled(id: string): boolean {
    return this.#marks.has(id) || this.#ended.has(id)
  }

  /** When a run with this fence was asked to stop. */
  askedToStop(id: string, fence: number): Ms | undefined {
    const mark = this.#marks.get(id)
    return mark?.fence === fence ? mark.ms : undefined
  }
}
