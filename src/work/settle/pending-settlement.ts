import { classify } from '../../core/failure/classify.js'
import type { At } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { CommitResult, GroupValue, Settlement } from '../../ports/settlement.js'
import type { PendingSettlement } from '../../source/feeds/ledger-feed.js'
import type { AppendQueue, AppendTurn } from './append-queue.js'
import type { Contribution, FinishedRun } from './outcome.js'
import { failureOf, type Refusal, refusedOutcome } from './outcome.js'
import type { OutcomeSummary, RunSettlement } from './settle.js'

/** Turns the end of a run into what is to be written, as of this instant. Default: now. */
export type Settle = (ran: FinishedRun, at?: At) => RunSettlement

/** A run's settlement that is not written yet, with its summary for events, counters and waiters. */
export class RunPendingSettlement implements PendingSettlement {
  settlement: Settlement
  summary: OutcomeSummary
  result?: CommitResult
  readonly ran: FinishedRun
  /** The value itself, for the event; text travels in the settlement. */
  readonly value: unknown
  readonly #settle: Settle

  /** `at`: when its run ended, if that was just now. Default: now. */
  constructor(ran: FinishedRun, settle: Settle, value?: unknown, at?: At) {
    const { settlement, summary } = settle(ran, at)
    this.settlement = settlement
    this.summary = summary
    this.ran = ran
    this.value = value
    this.#settle = settle
  }

  refused(refusal: Refusal): Settlement {
    return this.again({ ...this.ran, outcome: refusedOutcome(refusal) })
  }

  /** The same outcome of the same run, under a newer lease of its item. */
  under(item: ClaimedItem): RunPendingSettlement {
    return new RunPendingSettlement({ ...this.ran, item }, this.#settle, this.value)
  }

  /** Settles the run again, with another outcome. */
  protected again(ran: FinishedRun): Settlement {
    const { settlement, summary } = this.#settle(ran)
    this.summary = summary
    return settlement
  }
}

/** The settlement of a run that appends to the value of its group: its contribution is known only when it is sent. */
export class AppendPendingSettlement extends RunPendingSettlement {
  readonly #folded: (now: GroupValue | undefined) => FinishedRun
  readonly #appends: AppendQueue
  readonly #ownSettle: Settle
  #known: GroupValue | undefined
  #isRefused = false
  #turn: AppendTurn | undefined
  #contributions: readonly Contribution[] = []

  /** Folded once at the beginning: an `append` that throws is a failure of its run like any other. */
  constructor(
    folded: (now: GroupValue | undefined) => FinishedRun,
    settle: Settle,
    value: unknown,
    appends: AppendQueue,
    known: GroupValue | undefined,
  ) {
    super(folded(known), settle, value)
    this.#folded = folded
    this.#appends = appends
    this.#ownSettle = settle
    this.#known = known
  }

  override under(item: ClaimedItem): RunPendingSettlement {
    const folded = (now: GroupValue | undefined) => ({ ...this.#folded(now), item })
    return new AppendPendingSettlement(folded, this.#ownSettle, this.value, this.#appends, this.#known)
  }

  async prepare(): Promise<void> {
    if (this.#isRefused) return
    const fold = await this.#appends.begin(this.ran.item.envelope.groupId, this.#known)
    this.#turn = fold
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
    this.#turn?.answered(this.#contributions, result)
    this.#turn = undefined
  }

  refold(now: GroupValue): Settlement {
    this.#known = now
    return this.settlement
  }

  override refused(refusal: Refusal): Settlement {
    this.#isRefused = true
    return super.refused(refusal)
  }
}
