import { describe, expect, it } from 'vitest'
import { runTests } from './faulty-run.js'

const TESTS = ['test/source/codec-registry.test.ts']
const FILE = 'src/source/message/media-type.ts'
const FIND = '.trim().toLowerCase()'
const ONLY = ['a media type']

describe('a run of tests on a source with a fault in it', () => {
  it('shows the test that notices, and runs no other', async () => {
    const { failed, passed, broken } = await runTests(TESTS, ONLY, { file: FILE, find: FIND, replace: '.trim()' })
    expect(failed).toEqual([expect.stringContaining('is the part before the parameters')])
    expect({ passed, broken }).toEqual({ passed: [], broken: undefined })
  })

  it('passes when what was planted is no fault', async () => {
    const same = await runTests(TESTS, ONLY, { file: FILE, find: FIND, replace: '.toLowerCase().trim()' })
    expect(same).toEqual({ passed: [expect.stringContaining('a media type')], failed: [], broken: undefined })
  })

  it('is broken, and not a success, when the source does not compile or the line is not there', async () => {
    const unfinished = await runTests(TESTS, [], { file: FILE, find: FIND, replace: '.trim(' })
    expect(unfinished).toMatchObject({ failed: [], broken: expect.stringContaining('did not load') })
    const missing = await runTests(TESTS, [], { file: FILE, find: 'no such line', replace: '' })
    expect(missing).toMatchObject({ failed: [], broken: expect.stringContaining('not exactly one "no such line"') })
  })

  it('is broken when there is no such test, or no such file', async () => {
    expect((await runTests(TESTS, ['no such test'])).broken).toBe('no test of that name was run')
    expect((await runTests(['test/source/nothing.test.ts'], [])).broken).toBe('no test of that name was run')
  })
})
