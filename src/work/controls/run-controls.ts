import type { Claimed } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import type { RunnerOptions } from '../runner.js'
import type { Shared } from '../shared.js'
import { HeldNow } from './held-now.js'
import { Overruns } from './overruns.js'
import { ProgressDesk } from './progress-desk.js'

export interface RunControlsOptions {
  readonly shared: Shared
  /** Its outcome is on its way to the backend. */
  readonly isSettling: (delivery: Delivery<Claimed>) => boolean
  /** It was cancelled before its turn had come. */
  readonly endUnstarted: (delivery: Delivery<Claimed>) => void
}

/** What goes on around the runs of one process beside the loop: cancels that are heard, progress, handlers that overrun. */
export class RunControls {
  readonly #shared: Shared
  readonly #overruns: Overruns
  readonly #heldNow: HeldNow
  readonly #progress: ProgressDesk

  constructor({ shared, isSettling, endUnstarted }: RunControlsOptions) {
    const { o, ledger, worker, recorder, registry } = shared
    const onError = (error: unknown) => shared.failed(error, 'queue')
    this.#shared = shared
    this.#overruns = new Overruns({ clock: o.clock, patienceMs: o.visibility, onError })
    this.#heldNow = new HeldNow({
      ledger,
      worker,
      leaseMs: o.visibility,
      held: () => recorder.active.deliveries(),
      isSettling,
      endUnstarted,
      onError,
    })
    this.#progress = new ProgressDesk({
      clock: o.clock,
      maxBytes: ledger.limits.maxItemBytes,
      codecOf: (type) => registry.codecOf(type, o.codec),
      send: (progress) => this.#heldNow.touch([...progress.keys()], progress),
      isSettling,
      onError,
    })
  }

  /** Hears of cancels, until closed. */
  open(): void {
    this.#heldNow.open()
  }

  close(): void {
    this.#heldNow.close()
  }

  /** What the runner asks for. */
  forRuns(): Pick<RunnerOptions, 'tracing' | 'cancelledWhy' | 'overran'> {
    const { tracing, ledger } = this.#shared
    return {
      tracing,
      cancelledWhy: async (id) => (await ledger.read([id]))[0]?.cancelled,
      overran: (item, handling) => this.#overruns.add(item, handling),
    }
  }

  progress(delivery: Delivery<Claimed>, value: unknown): void {
    this.#progress.tell(delivery, value)
  }

  /** When the place of a run is free that is over. Undefined: at once. */
  placeFree(item: Claimed): Promise<void> | undefined {
    return this.#overruns.placeFree(item)
  }
}
