import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'

const bench = (...args: string[]) =>
  spawnSync(process.execPath, [join(root, 'scripts', 'bench.mjs'), ...args], { encoding: 'utf8' })

describe('npm run bench', () => {
  it('lists what there is', () => {
    const { status, stdout } = bench('--list')

    expect(status).toBe(0)
    expect(stdout).toContain('  compare\n')
  })

  it('refuses a name that does not exist, and lists those that do', () => {
    const { status, stderr } = bench('no-such-bench-of-millrace')

    expect(status).toBe(1)
    expect(stderr).toContain('There is no bench "no-such-bench-of-millrace".')
  })
})
