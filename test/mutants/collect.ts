import type { TestRunner } from '../../src/testing/conformance/runner.js'

/** What became of every clause that a suite registered. */
export interface Report {
  readonly passed: readonly string[]
  readonly skipped: readonly string[]
  readonly failed: readonly { readonly clause: string; readonly error: Error }[]
}

/**
 * Describes a suite with a runner that only collects, then runs what it collected, one after the other: all of it, or the
 * clauses that `only` names.
 */
export async function collect(
  describeSuite: (test: TestRunner) => void,
  only: (clause: string) => boolean = () => true,
): Promise<Report> {
  const tests: { readonly name: string; readonly body: () => Promise<void> }[] = []
  const skipped: string[] = []
  const it = Object.assign((name: string, body: () => Promise<void>) => void tests.push({ name, body }), {
    skip: (name: string) => void skipped.push(name),
  })
  describeSuite({ describe: (_name, body) => body(), it })
  const passed: string[] = []
  const failed: { clause: string; error: Error }[] = []
  for (const { name, body } of tests.filter(({ name }) => only(name))) {
    try {
      await body()
      passed.push(name)
    } catch (error) {
      failed.push({ clause: name, error: error as Error })
    }
  }
  return { passed, skipped, failed }
}

export const failedClauses = (report: Report): string[] => report.failed.map(({ clause }) => clause)
