import type { MaybePromise } from '../../core/time/time.js'
import { type Clauses, checkStanding, registerClauses, type Standing } from './clause.js'
import { inTestTime } from './in-real-time.js'
import { runnerFrom, type TestRunner } from './runner.js'
import type { TestTime, TimeOptions } from './time.js'

/** What every suite takes: a name, what the subject cannot do, and how its time moves. */
export interface SuiteOptions<Name extends string> extends Standing<Name>, TimeOptions {
  /** The name in titles and failures: `redis`. */
  readonly name: string
  /**
   * The functions of your test runner. Default: the globals `describe` and `it`, looked for when the suite is described.
   * Give them where your runner has no globals: `test: { describe, it }`.
   */
  readonly test?: TestRunner
}

/** The standing that follows from the options: without a clock to move, exact times cannot be asked for. */
export function standingOf(options: SuiteOptions<string>): Standing<string> {
  const { waived = {}, without = [], realTime = false } = options
  return { waived, without: realTime ? [...without, 'exact time'] : without }
}

/** One suite of one kind: checks the options, then registers each clause with a bench of its own. */
export function describeClauses<Bench>(
  suite: string,
  what: string,
  options: SuiteOptions<string>,
  clauses: Clauses<Bench>,
  onBench: (time: TestTime, use: (bench: Bench) => Promise<void>) => Promise<void>,
): void {
  const test = runnerFrom(options.test, suite)
  checkStanding(suite, options, Object.keys(clauses))
  test.describe(`${options.name}: ${what}`, () => {
    registerClauses(test, options.name, clauses, standingOf(options), (use) =>
      inTestTime(options, (time) => onBench(time, use)),
    )
  })
}

/** Opens, uses and closes, whatever happens in between. */
export async function using<T>(
  open: () => MaybePromise<T>,
  close: (opened: T) => MaybePromise<void> | undefined,
  use: (opened: T) => Promise<void>,
): Promise<void> {
  const opened = await open()
  try {
    await use(opened)
  } finally {
    await close(opened)
  }
}
