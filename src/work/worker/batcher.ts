import type { Doer } from '../../core/doer/doer.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Deliveries, Delivery } from '../../source/loop/delivery.js'

/** Gathers the items of one batched type until there are enough, or until the first has waited long enough. */
export class Batcher {
  readonly doer: Doer
  /** How many items make a batch. */
  readonly size: number
  readonly #hasRoom: () => boolean
  readonly #maxWaitMs: Ms
  readonly #clock: Clock
  readonly #full: (batch: Deliveries<ClaimedItem>) => void
  #gathered: Delivery<ClaimedItem>[] = []
  #cancel: (() => void) | undefined

  constructor(
    doer: Doer,
    hasRoom: () => boolean,
    { size, maxWait }: { readonly size: number; readonly maxWait: Ms },
    clock: Clock,
    full: (batch: Deliveries<ClaimedItem>) => void,
  ) {
    this.doer = doer
    this.#hasRoom = hasRoom
    this.size = size
    this.#maxWaitMs = maxWait
    this.#clock = clock
    this.#full = full
  }

  /** How many more it takes. None while its doer has no room: a batch that cannot run should not grow. */
  available(): number {
    return this.#hasRoom() ? this.size - this.#gathered.length : 0
  }

  add(delivery: Delivery<ClaimedItem>): void {
    this.#gathered.push(delivery)
    if (this.#gathered.length >= this.size) this.flush()
    else this.#cancel ??= this.#clock.after(this.#maxWaitMs, () => this.flush())
  }

  /** Runs what there is. */
  flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const [first, ...rest] = this.#gathered
    this.#gathered = []
    if (first !== undefined) this.#full([first, ...rest])
  }
}
