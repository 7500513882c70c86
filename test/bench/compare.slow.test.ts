import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Figures } from '../../bench/lib/compare/figures.js'
import { typescriptProgram } from '../../scripts/lib/run-typescript.mjs'
import { drainRow, figuresOf } from './planted.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-compare-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The program as it ends on figures that were planted. */
function conclude(figures: Figures) {
  const file = join(folder, 'planted.json')
  writeFileSync(file, JSON.stringify(figures))
  const { command, args, env } = typescriptProgram('bench/compare.bench.ts', ['--again', file])
  return spawnSync(command, args, { env, encoding: 'utf8' })
}

describe('the comparative bench', () => {
  it('exits with 1 and a sentence when a floor is missed', () => {
    const { status, stderr } = conclude(figuresOf([drainRow([29, 29, 29], [10, 10, 10])]))

    expect(stderr).toContain('Redis, drain: ours is 2.90 of bullmq 6.7.0')
    expect(status).toBe(1)
  })

  it('exits with 1 when something went wrong, however fast it was', () => {
    const { status, stderr } = conclude(figuresOf([drainRow([90], [10])], { faults: ['An item was lost.'] }))

    expect(stderr).toContain('An item was lost.')
    expect(status).toBe(1)
  })

  it('exits with 0 when every floor is met', () => {
    const { status, stdout } = conclude(figuresOf([drainRow([30, 30, 30], [10, 10, 10])]))

    expect(stdout).toContain('| Redis, drain, /s |')
    expect(status).toBe(0)
  })
})
