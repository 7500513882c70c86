import { describe, expect, it } from 'vitest'
import { closingLine, failuresOf, tallyOf, total } from '../../scripts/lib/tally.mjs'

const file = (status: string, ...tests: string[]) => ({
  name: 'a.test.ts',
  status,
  assertionResults: tests.map((test) => ({ status: test })),
})

describe('the count of a test run', () => {
  it('counts every test of every file once', () => {
    const testResults = [file('passed', 'passed', 'skipped', 'passed'), file('failed', 'failed', 'passed', 'todo')]

    expect(tallyOf({ success: false, testResults })).toEqual({ passed: 3, failed: 1, skipped: 2 })
  })

  it('counts a file that does not load as one failure', () => {
    expect(tallyOf({ success: false, testResults: [file('failed')] })).toEqual({ passed: 0, failed: 1, skipped: 0 })
  })

  it('counts an error outside any test as one failure', () => {
    const testResults = [file('passed', 'passed')]

    expect(tallyOf({ success: false, testResults })).toEqual({ passed: 1, failed: 1, skipped: 0 })
  })

  it('counts a run that left no report as one failure', () => {
    expect(tallyOf(undefined)).toEqual({ passed: 0, failed: 1, skipped: 0 })
  })
})

describe('the failures of a test run', () => {
  it('names each failed test with the first line of its error', () => {
    const assertionResults = [
      { status: 'failed', fullName: 'adds', failureMessages: ['expected 3 to be 2\n  at sum.ts:4'] },
      { status: 'passed', fullName: 'subtracts' },
    ]

    expect(failuresOf({ success: false, testResults: [{ ...file('failed'), assertionResults }] })).toEqual([
      'a.test.ts > adds: expected 3 to be 2',
    ])
  })

  it('names a file that does not load', () => {
    const testResults = [{ ...file('failed'), message: 'Cannot find module' }]

    expect(failuresOf({ success: false, testResults })).toEqual(['a.test.ts: Cannot find module'])
  })

  it('says so when nothing in the report failed, or there is no report', () => {
    expect(failuresOf({ success: false, testResults: [file('passed', 'passed')] })).toEqual([
      'An error outside of any test: see above.',
    ])
    expect(failuresOf(undefined)).toEqual(['The run wrote no report.'])
  })
})

describe('the closing line', () => {
  it('adds the runs up, and names skipped tests only where there are any', () => {
    const fast = { passed: 10, failed: 0, skipped: 0 }

    expect(closingLine(fast)).toBe('tests: 10 passed, 0 failed')
    expect(closingLine(total([fast, { passed: 1, failed: 2, skipped: 3 }]))).toBe(
      'tests: 11 passed, 2 failed, 3 skipped',
    )
  })
})
