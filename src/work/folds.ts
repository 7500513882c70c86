import type { Clock } from '../core/clock.js'
import type { Ms } from '../core/time.js'
import type { CommitResult, GroupValue } from '../ports/settlement.js'
import type { Contribution } from './outcome.js'

/** How many groups are remembered at once. */
const MOST_REMEMBERED = 1_000

export interface FoldsOptions {
  /** A contribution raises the version by one, so that the value after it is known without another look. */
  readonly isCounted: boolean
  readonly read: (groupId: string) => Promise<GroupValue | undefined>
  readonly onError: (error: unknown) => void
  readonly clock: Clock
  /** How long a read may take. */
  readonly patienceMs: Ms
}

/** One fold on its way. */
export interface FoldUnderWay {
  /** What it folds on. */
  readonly on: GroupValue | undefined
  /** What the backend said to what came of it; undefined: nobody knows. Then it is the next one's turn. */
  answered(contributions: readonly Contribution[], result: CommitResult | undefined): void
}

/**
 * Keeps the neighbours of one group from folding against each other: in one process one after the other, each on what the one
 * before it has made of the value. Sent together, only the first of them would count and all others fold again, which costs
 * the square of their number. Where another process comes in between, the backend answers with the value to fold on.
 *
 * Nobody folds on what has not been answered: should that come to nothing while another process raises the version in its
 * place, the expectation would hold and the value would not.
 */
export class Folds {
  readonly #o: FoldsOptions
  readonly #known = new Map<string, GroupValue>()
  readonly #turns = new Map<string, Promise<void>>()

  constructor(options: FoldsOptions) {
    this.#o = options
  }

  /** The value as it was last known here, or as the backend knows it. */
  value(groupId: string): GroupValue | Promise<GroupValue | undefined> {
    return this.#known.get(groupId) ?? this.#read(groupId)
  }

  /** Waits for its turn. `heard`: what its run last heard of the value. */
  async begin(groupId: string, heard: GroupValue | undefined): Promise<FoldUnderWay> {
    const end = await this.#turn(groupId)
    const known = this.#known.get(groupId)
    const isNewer = known !== undefined && (heard === undefined || known.version > heard.version)
    return {
      on: isNewer ? known : this.#o.isCounted ? heard : ((await this.#read(groupId)) ?? heard),
      answered: ([contribution], result) => {
        if (result?.kind === 'applied') this.#applied(groupId, contribution)
        else this.#known.delete(groupId)
        end()
      },
    }
  }

  /**
   * A read that fails, or hangs until the lease is over, must not run the handler again: folded on nothing, the commit answers with the
   * value to fold on.
   */
  async #read(groupId: string): Promise<GroupValue | undefined> {
    try {
      return await this.#inTime(this.#o.read(groupId))
    } catch (error) {
      this.#o.onError(error)
      return undefined
    }
  }

  #inTime<T>(reading: Promise<T>): Promise<T | undefined> {
    const { clock, patienceMs } = this.#o
    return new Promise((resolve, reject) => {
      const cancel = clock.after(patienceMs, () => resolve(undefined))
      reading.finally(cancel).then(resolve, reject)
    })
  }

  #applied(groupId: string, contribution: Contribution | undefined): void {
    if (contribution?.expect === undefined || !this.#o.isCounted) return
    const { value, final, expect } = contribution
    this.#known.delete(groupId)
    this.#known.set(groupId, { value, final, version: expect + 1 })
    if (this.#known.size <= MOST_REMEMBERED) return
    const [oldest] = this.#known.keys()
    this.#known.delete(oldest!)
  }

  /** One after the other. Resolves with what ends the turn. */
  async #turn(groupId: string): Promise<() => void> {
    const before = this.#turns.get(groupId)
    let end!: () => void
    const own = new Promise<void>((resolve) => {
      end = resolve
    })
    this.#turns.set(groupId, own)
    await before
    return () => {
      if (this.#turns.get(groupId) === own) this.#turns.delete(groupId)
      end()
    }
  }
}
