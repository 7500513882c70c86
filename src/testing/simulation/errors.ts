import { MillraceError } from '../../core/error.js'
import { type RepeatedItems, repeatedText } from './repeated-items.js'

/** What a simulated process gets instead of an answer when the simulation loses a call. */
export class SimulatedFaultError extends MillraceError {
  constructor(call: string, how: string) {
    super('SIMULATED_FAULT', `${call}: ${how} (simulated). Whether it happened is not known.`, { facts: { call, how } })
  }
}

/** A promise of Millrace, or your own, that did not hold: thrown inside the simulation, and reported with its seed. */
export class BrokenPromiseError extends MillraceError {
  readonly promise: string
  constructor(promise: string, what?: string) {
    super('BROKEN_PROMISE', `"${promise}" does not hold${what === undefined ? '' : `: ${what}`}`, {
      facts: { promise },
    })
    this.promise = promise
  }
}

/** The world never came to rest: something goes round without getting anywhere. */
export class SimulationStuckError extends BrokenPromiseError {
  constructor(what: string) {
    super('nothing spins', `${what}. Something is retried without a pause.`)
  }
}

/**
 * A seed under which a promise broke. The same seed with the same options replays exactly the same history; the end of it
 * is in the message, and `history` has more.
 */
export class SimulationError extends MillraceError {
  readonly seed: number
  /** The promise that broke, in words. */
  readonly promise: string
  /** What happened, one line per event, the last one last. */
  readonly history: readonly string[]
  /** The items of the seed whose handlers ran more than once until then. */
  readonly repeated: RepeatedItems

  constructor(seed: number, failure: unknown, history: readonly string[], repeated: RepeatedItems) {
    const promise = failure instanceof BrokenPromiseError ? failure.promise : 'the simulation runs without an error'
    const what = failure instanceof Error ? failure.message : String(failure)
    super(
      'SIMULATION_FAILED',
      `Seed ${seed}: ${what}\n${lastOf(history)}\nUntil then ${repeatedText(repeated)}.\nReplay it: simulate({ …, seed: ${seed} }).`,
      {
        cause: failure,
        facts: { seed, promise },
      },
    )
    this.seed = seed
    this.promise = promise
    this.history = history
    this.repeated = repeated
  }
}

const SHOWN = 40

function lastOf(history: readonly string[]): string {
  const left = history.length - SHOWN
  return [...(left > 0 ? [`  … ${left} earlier events in error.history`] : []), ...history.slice(-SHOWN)].join('\n')
}
