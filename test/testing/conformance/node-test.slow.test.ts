import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'

const from = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).href)

const program = `
  import { describe, it } from 'node:test'
  import { memoryStore } from ${from('backends/memory/index.ts')}
  import { describeStore } from ${from('testing/conformance/describe-ports.ts')}
  const test = { describe, it }
  describeStore({ name: 'right', test, open: (clock) => memoryStore({ clock }) })
  describeStore({
    name: 'wrong',
    test,
    without: ['compareAndSet', 'incrementOnce', 'getMany', 'setMany'],
    open: (clock) => ({ ...memoryStore({ clock }), setIfNotExists: () => true }),
  })
`

describe('a suite under the runner of Node', () => {
  const { stdout, status } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--test-reporter=tap', '--input-type=module', '--eval', program],
    // A runner that finds itself inside another one reports to that one instead.
    { encoding: 'utf8', env: { ...process.env, NODE_TEST_CONTEXT: undefined } },
  )

  it('passes for a store that keeps its obligations', () => {
    expect(stdout).toMatch(/^ok \d+ - right: store/m)
  })

  it('fails for one that does not, and says why', () => {
    expect(status).not.toBe(0)
    expect(stdout).toMatch(/^not ok \d+ - wrong: store/m)
    expect(stdout).toContain('wrong does not keep the clause')
    expect(stdout).toContain('Of any set of concurrent callers exactly one gets true')
  })

  it('shows what was skipped, with the reason', () => {
    expect(stdout).toMatch(/store: compareAndSet writes only over what was expected \(without compareAndSet\) # SKIP/)
  })
})
