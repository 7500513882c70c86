import { classify } from '../core/classify.js'
import type { At } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { CommitResult, GroupValue, Settlement } from '../ports/settlement.js'
import type { Settling } from '../source/ledger-feed.js'
import { failureOf, type Refusal, refusedOutcome } from './failure-of.js'
import type { Folds, FoldUnderWay } from './folds.js'
import type { Contribution, Ran } from './outcome.js'
import type { Settled, Told } from './settle.js'

/** Turns the end of a run into what is to be written, as of this instant. Default: now. */
export type Settle = (ran: Ran, at?: At) => Settled

/** A run's settlement together with what it means, for whoever tells of it once it is durable. */
export class WorkSettling implements Settling {
  settlement: Settlement
  told: Told
  result?: CommitResult
  readonly ran: Ran
  /** The value itself, for the event; text travels in the settlement. */
  readonly value: unknown
  readonly #settle: Settle

  /** `at`: when its run ended, where that is just now. Default: the present, which counts for every later settlement of it. */
  constructor(ran: Ran, settle: Settle, value?: unknown, at?: At) {
    const { settlement, told } = settle(ran, at)
    this.settlement = settlement
    this.told = told
    this.ran = ran
    this.value = value
    this.#settle = settle
  }

  refused(refusal: Refusal): Settlement {
    return this.again({ ...this.ran, outcome: refusedOutcome(refusal) })
  }

  /** The same outcome of the same run, under a newer lease of its item. */
  under(item: Claimed): WorkSettling {
    return new WorkSettling({ ...this.ran, item }, this.#settle, this.value)
  }

  /** What came of the run is another thing than it seemed. */
  protected again(ran: Ran): Settlement {
    const { settlement, told } = this.#settle(ran)
    this.told = told
    return settlement
  }
}

/** The settlement of a run that adds to the value of its group: what it says is known only when it is sent. */
export class FoldedSettling extends WorkSettling {
  readonly #folded: (now: GroupValue | undefined) => Ran
  readonly #folds: Folds
  readonly #ownSettle: Settle
  #heard: GroupValue | undefined
  #isRefused = false
  #fold: FoldUnderWay | undefined
  #contributions: readonly Contribution[] = []

  /** Folded once at the beginning: an `append` that throws is a failure of its run like any other. */
  constructor(
    folded: (now: GroupValue | undefined) => Ran,
    settle: Settle,
    value: unknown,
    folds: Folds,
    known: GroupValue | undefined,
  ) {
    super(folded(known), settle, value)
    this.#folded = folded
    this.#folds = folds
    this.#ownSettle = settle
    this.#heard = known
  }

  override under(item: Claimed): WorkSettling {
    const folded = (now: GroupValue | undefined) => ({ ...this.#folded(now), item })
    return new FoldedSettling(folded, this.#ownSettle, this.value, this.#folds, this.#heard)
  }

  async prepare(): Promise<void> {
    if (this.#isRefused) return
    const fold = await this.#folds.begin(this.ran.item.envelope.groupId, this.#heard)
    this.#fold = fold
    this.#contributions = []
    try {
      const ran = this.#folded(fold.on)
      this.settlement = this.again(ran)
      if (ran.outcome.kind === 'returned') this.#contributions = ran.outcome.contributions
    } catch (error) {
      // An `append` that throws is a failure of its run, though it comes late.
      this.settlement = this.again({ ...this.ran, outcome: failureOf(error, classify(error)) })
    }
  }

  answered(result: CommitResult | undefined): void {
    this.#fold?.answered(this.#contributions, result)
    this.#fold = undefined
  }

  refold(now: GroupValue): Settlement {
    this.#heard = now
    return this.settlement
  }

  override refused(refusal: Refusal): Settlement {
    this.#isRefused = true
    return super.refused(refusal)
  }
}
