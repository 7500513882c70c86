import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { withTimeout } from '../../core/time/with-timeout.js'
import type { CommitResult, GroupValue } from '../../ports/settlement.js'
import type { Contribution } from './outcome.js'

/** How many groups are remembered. */
const MOST_REMEMBERED = 1_000

export interface AppendQueueOptions {
  /** A contribution raises the version by one, so the value after it is known without another read. */
  readonly isCounted: boolean
  readonly read: (groupId: string) => Promise<GroupValue | undefined>
  readonly onError: (error: unknown) => void
  readonly clock: Clock
  /** How long a read may take. */
  readonly timeoutMs: Ms
}

/** The turn of one append. */
export interface AppendTurn {
  /** What it folds on. */
  readonly on: GroupValue | undefined
  /** Ends the turn with the backend's answer; undefined: unknown. */
  answered(contributions: readonly Contribution[], result: CommitResult | undefined): void
}

/**
 * Orders the appends of one process to a group: one after the other, each on the value that the previous one has written. Sent
 * together, only the first would apply and all others fold again, which costs the square of their number. When another process
 * comes in between, the backend answers with the value to fold on.
 *
 * No append folds on a value that is not confirmed: if that write failed while another process raised the version, the version
 * would match and the value would not.
 */
export class AppendQueue {
  readonly #o: AppendQueueOptions
  readonly #known = new Map<string, GroupValue>()
  readonly #turns = new Map<string, Promise<void>>()

  constructor(options: AppendQueueOptions) {
    this.#o = options
  }

  /** The value that this process last wrote, or the backend's. */
  value(groupId: string): GroupValue | Promise<GroupValue | undefined> {
    return this.#known.get(groupId) ?? this.#read(groupId)
  }

  /** Waits for its turn. `lastKnown`: the value that its run has read. */
  async begin(groupId: string, lastKnown: GroupValue | undefined): Promise<AppendTurn> {
    const end = await this.#turn(groupId)
    const known = this.#known.get(groupId)
    const isNewer = known !== undefined && (lastKnown === undefined || known.version > lastKnown.version)
    return {
      on: isNewer ? known : this.#o.isCounted ? lastKnown : ((await this.#read(groupId)) ?? lastKnown),
      answered: ([contribution], result) => {
        if (result?.kind === 'applied') this.#applied(groupId, contribution)
        else this.#known.delete(groupId)
        end()
      },
    }
  }

  /**
   * A read that fails, or hangs until the lease lapses, must not run the handler again: folded on nothing, the commit answers with
   * the value to fold on.
   */
  async #read(groupId: string): Promise<GroupValue | undefined> {
    try {
      const { clock, timeoutMs, read } = this.#o
      return await withTimeout(clock, timeoutMs, read(groupId), () => undefined)
    } catch (error) {
      this.#o.onError(error)
      return undefined
    }
  }

  #applied(groupId: string, contribution: Contribution | undefined): void {
    if (contribution?.ifVersion === undefined || !this.#o.isCounted) return
    const { value, final, ifVersion } = contribution
    this.#known.delete(groupId)
    this.#known.set(groupId, { value, final, version: ifVersion + 1 })
    if (this.#known.size <= MOST_REMEMBERED) return
    const [oldest] = this.#known.keys()
    this.#known.delete(oldest!)
  }

  /** Resolves when it is this append's turn, with what ends the turn. */
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
