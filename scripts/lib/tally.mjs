/**
 * How many tests ended how.
 * @typedef {{ readonly passed: number, readonly failed: number, readonly skipped: number }} Tally
 */

/**
 * The part of vitest's JSON report that is counted.
 * @typedef {object} Report
 * @property {boolean} success
 * @property {readonly FileReport[]} testResults
 */

/**
 * @typedef {object} FileReport
 * @property {string} name
 * @property {string} status
 * @property {string} [message]
 * @property {readonly { status: string, fullName?: string, failureMessages?: readonly string[] }[]} assertionResults
 */

/**
 * Counts one run. A run that failed never counts as free of failures: a file that does not load, an error that nobody
 * caught, and a report that was never written (`undefined`) are one failure each.
 * @param {Report | undefined} report
 * @returns {Tally}
 */
export function tallyOf(report) {
  if (report === undefined) return { passed: 0, failed: 1, skipped: 0 }
  let passed = 0
  let failed = 0
  let skipped = 0
  for (const file of report.testResults) {
    const failedBefore = failed
    for (const { status } of file.assertionResults) {
      if (status === 'passed') passed += 1
      else if (status === 'failed') failed += 1
      else skipped += 1
    }
    if (file.status === 'failed' && failed === failedBefore) failed += 1
  }
  if (!report.success && failed === 0) failed = 1
  return { passed, failed, skipped }
}

/**
 * The failed tests of one run, each with the first line of its error: the end of a long log is often all that is kept.
 * @param {Report | undefined} report
 * @returns {string[]}
 */
export function failuresOf(report) {
  if (report === undefined) return ['The run wrote no report.']
  const failures = []
  for (const file of report.testResults) {
    const failed = file.assertionResults.filter(({ status }) => status === 'failed')
    for (const test of failed) failures.push(failure(`${file.name} > ${test.fullName}`, test.failureMessages?.[0]))
    if (file.status === 'failed' && failed.length === 0) failures.push(failure(file.name, file.message))
  }
  if (!report.success && failures.length === 0) failures.push('An error outside of any test: see above.')
  return failures
}

/**
 * @param {string} where
 * @param {string | undefined} message
 */
function failure(where, message) {
  const firstLine = (message ?? '').split('\n', 1)[0]
  return firstLine === '' ? where : `${where}: ${firstLine}`
}

/**
 * @param {readonly Tally[]} tallies
 * @returns {Tally}
 */
export function total(tallies) {
  const sum = { passed: 0, failed: 0, skipped: 0 }
  for (const tally of tallies) {
    sum.passed += tally.passed
    sum.failed += tally.failed
    sum.skipped += tally.skipped
  }
  return sum
}

/**
 * The last line of `npm test`, for people and for programs that read it.
 * @param {Tally} tally
 */
export function closingLine({ passed, failed, skipped }) {
  return `tests: ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
