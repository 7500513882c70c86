import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'

/** A program whose handler always fails, with these options beside its work. */
function run(options: string, env: Readonly<Record<string, string>> = {}, redirect = '') {
  const program = `
    import { createWork, defineWork } from 'millrace'
    const fails = defineWork('fails', () => Promise.reject(new Error('the bank is away')), { retry: { attempts: 2, base: 1, jitter: 0 } })
    const w = createWork({ work: [fails], ${options} })
    await w.enqueue(fails(undefined)).result().catch(() => undefined)
    await w.stop()
    console.log('done')
  `
  const { NODE_ENV: _, ...inherited } = process.env
  const { stdout, stderr, status } = spawnSync('sh', ['-c', `"$NODE" --input-type=module -e "$PROGRAM" ${redirect}`], {
    cwd: root,
    encoding: 'utf8',
    env: { ...inherited, ...env, NODE: process.execPath, PROGRAM: program },
  })
  const lines = stderr
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')
    .replaceAll(/^\d{4}-\d\d-\d\dT[\d:.]+Z/gm, '<time>')
    .split('\n')
    .filter((line) => line !== '')
  return { stdout, lines, status }
}

const RETRY =
  '<time> WARN  millrace: fails <id> failed in attempt 1 of 2 and runs again in 1 ms (retryable, default): Error: the bank is away'
const DEAD =
  '<time> ERROR millrace: fails <id> is dead (exhausted) after attempt 2 (retryable, default): Error: the bank is away'

describe('a program that has no listener', () => {
  it('is told on stderr what fails, and nothing else', () => {
    expect(run('')).toEqual({ stdout: 'done\n', lines: [RETRY, DEAD], status: 0 })
  })

  it('is told of starts and stops with log: true, and of nothing with log: false, a listener, or in a test runner', () => {
    expect(run('log: true', { NODE_ENV: 'test' }).lines).toEqual([
      '<time> INFO  millrace: worker started: runs fails from queue default',
      RETRY,
      DEAD,
      '<time> INFO  millrace: worker stopped',
    ])
    expect(run('log: false').lines).toEqual([])
    expect(run('onEvent: () => undefined').lines).toEqual([])
    expect(run('', { NODE_ENV: 'test' }).lines).toEqual([])
  })

  it('goes on where stderr cannot be written', () => {
    expect(run('', {}, '2>&-')).toMatchObject({ stdout: 'done\n', status: 0 })
  })

  it('may give its own logger, which gets the facts first', () => {
    const { lines } = run(
      'log: { info() {}, warn() {}, error: (facts, text) => console.error(facts.event, facts.attempt, text) }',
    )
    expect(lines).toEqual([`dead 2 ${DEAD.replace('<time> ERROR millrace: ', '')}`])
  })
})
