import { setImmediate as realSetImmediate } from 'node:timers'
import { MillraceError } from '../core/error.js'
import { numberOption, OptionError, optionsObject } from '../core/options.js'
import type { Ms } from '../core/time/time.js'
import { Hopper } from '../source/hopper/hopper.js'
import type { HopperOptions } from '../source/hopper/hopper-options.js'
import { noCounts, type RunSummary } from '../source/hopper/run-summary.js'
import { MemInlet, type MemInletOptions } from '../source/inlets/memory/mem-inlet.js'
import type { MemMessageSpec } from '../source/inlets/memory/mem-message.js'
import type { LedgerCounts, SettlementLog } from '../source/inlets/memory/settlement-log.js'
import type { Subscription } from '../source/inlets/subscription.js'
import type { BatchHandler, Handler } from '../source/middleware/handler.js'
import { same } from './conformance/check.js'
import { FakeClock } from './fake-clock.js'

/** Options of {@link Harness}. All optional. */
export interface HarnessOptions {
  /** Options of the hopper under test, or a hopper that you made with the same `clock`. */
  readonly hopper?: Omit<HopperOptions, 'clock'> | Hopper
  /** Options of the inlet it consumes, or an inlet that you made with the same `clock`. */
  readonly inlet?: Omit<MemInletOptions, 'clock'> | MemInlet
  /** Queued once the inlet is made. */
  readonly messages?: readonly MemMessageSpec[]
  /** The clock of both. Default: a new one. */
  readonly clock?: FakeClock
  /** How much of the processor's time a run may take: a busy machine does not make it late. Default 5000. */
  readonly watchdogMs?: Ms
}

/** A run did not come to its end, however far the clock was moved. */
export class HarnessStuckError extends MillraceError {
  constructor(watchdogMs: Ms, advancedMs: Ms) {
    super(
      'HARNESS_STUCK',
      `The run did not end within ${watchdogMs} ms of processor time; the fake clock was moved by ${advancedMs} ms meanwhile. ` +
        'Search for a handler that never returns, or that waits for something outside the fake clock.',
      { facts: { watchdogMs, advancedMs } },
    )
  }
}

/**
 * Runs a handler over a few messages as a hopper would, in no time: the clock moves on by itself whenever nothing else can
 * happen. The subscription is closed before the run, so the run ends when all messages are settled.
 *
 * @example
 * ```ts
 * const harness = new Harness({ messages: [{ value: 'good' }, { value: 'bad' }] })
 * await harness.run((_ctx, message) => (message.value[0] === 0x67 ? ack() : term(new Error('bad'))))
 * harness.assertCounts({ acked: 1, term: 1 })
 * ```
 */
export class Harness {
  readonly clock: FakeClock
  readonly hopper: Hopper
  readonly inlet: MemInlet
  readonly #watchdogMs: Ms

  constructor(options?: HarnessOptions) {
    const given = optionsObject('harness', options, ['hopper', 'inlet', 'messages', 'clock', 'watchdogMs'])
    const isMade = isHopper(given.hopper) || isInlet(given.inlet)
    if (isMade && given.clock === undefined) {
      throw new OptionError(
        'harness.clock',
        'the FakeClock of the hopper and inlet that are given ready-made',
        undefined,
      )
    }
    this.clock = given.clock ?? new FakeClock()
    const { clock } = this
    this.hopper = isHopper(given.hopper) ? given.hopper : new Hopper({ ...given.hopper, clock })
    let ids = 0
    // Ids that a test can name, the same in each run.
    const nextId = () => String(++ids)
    this.inlet = isInlet(given.inlet) ? given.inlet : new MemInlet({ nextId, ...given.inlet, clock })
    this.inlet.queue(...(given.messages ?? []))
    this.#watchdogMs = numberOption('harness.watchdogMs', given.watchdogMs, { above: 0, default: 5_000 })
  }

  get ledger(): SettlementLog {
    return this.inlet.ledger
  }

  /** Consumes everything that is queued. Rejects when the run does, or does not end. */
  run(handler: Handler): Promise<RunSummary> {
    return this.#drained((sub) => this.hopper.run(sub, handler))
  }

  /** The same for a handler of batches. */
  runBatch(handler: BatchHandler): Promise<RunSummary> {
    return this.#drained((sub) => this.hopper.runBatch(sub, handler))
  }

  /** Fails unless the settlements are exactly these; what is not named must be 0. */
  assertCounts(expected: Partial<LedgerCounts>): void {
    same(this.ledger.counts(), { ...noCounts(), ...expected }, 'the settlements')
  }

  /** Fails unless there were exactly so many settlements. */
  assertSettled(expected: number): void {
    same(this.ledger.length, expected, 'the number of settlements')
  }

  async #drained(run: (sub: Subscription) => Promise<RunSummary>): Promise<RunSummary> {
    const sub = await this.inlet.subscribe()
    await sub.close()
    return this.#drive(run(sub))
  }

  /** Moves the clock from timer to timer until the run has ended. */
  async #drive<T>(running: Promise<T>): Promise<T> {
    const startedAt = this.clock.monotonic()
    let hasEnded = false
    const isLate = watchdog(this.#watchdogMs)
    const end = () => {
      hasEnded = true
    }
    running.then(end, end)
    while (!hasEnded) {
      if (isLate()) throw new HarnessStuckError(this.#watchdogMs, this.clock.monotonic() - startedAt)
      await this.clock.settle()
      if (hasEnded) break
      const nextAt = this.clock.nextDueAt()
      // Without a timer the handler waits for something real: leave it the event loop.
      if (nextAt === undefined) await new Promise<void>((resolve) => realSetImmediate(resolve))
      // Whole steps: the distance to a timer at a fraction of a millisecond may round to less than it is, forever.
      else await this.clock.advance(Math.max(1, Math.ceil(nextAt - this.clock.now())))
    }
    return running
  }
}

/** Whether the process has computed for so long. A run that waits for nothing it can name spins, so this ends it, too. */
function watchdog(ms: Ms): () => boolean {
  const from = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(from)
    return (user + system) / 1_000 >= ms
  }
}

// Not by their classes: they may be of another copy of the package. Options have no methods.
const isHopper = (given: HarnessOptions['hopper']): given is Hopper => given !== undefined && 'runBatch' in given
const isInlet = (given: HarnessOptions['inlet']): given is MemInlet => given !== undefined && 'subscribe' in given
