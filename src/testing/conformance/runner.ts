import { MillraceError } from '../../core/error.js'

/**
 * The two functions of a test runner that a suite needs. Those of vitest, jest, mocha, `node:test` and Bun all fit, so the
 * suites depend on none of them.
 */
export interface TestRunner {
  describe(name: string, body: () => void): unknown
  readonly it: ((name: string, body: () => Promise<void>) => unknown) & {
    skip(name: string, body: () => Promise<void>): unknown
  }
}

/** The runner to use: the one that was given, else the globals that jest, mocha or vitest (`globals: true`) put there. */
export function runnerFrom(given: TestRunner | undefined, suite: string): TestRunner {
  if (given !== undefined) return given
  // Looked up when a suite is described, not on import: `millrace/testing` is also used where there is no runner at all.
  const { describe, it } = globalThis as unknown as Partial<TestRunner>
  if (typeof describe === 'function' && typeof it === 'function' && typeof it.skip === 'function')
    return { describe, it }
  throw new MillraceError(
    'NO_TEST_RUNNER',
    `${suite}() found no global describe() and it(). Pass them: ${suite}({ …, test: { describe, it } }), ` +
      "imported from 'vitest', '@jest/globals' or 'node:test'.",
  )
}
