import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'
import { typescriptProgram } from '../../scripts/lib/run-typescript.mjs'

function run(file: string) {
  const { command, args, env } = typescriptProgram(file)
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: 'utf8', timeout: 60_000 })
  return { status, stdout, stderr }
}

describe('an example, run as a program on the built package', () => {
  it('quick-start retries once and prints the result', () => {
    expect(run('examples/quick-start.ts')).toEqual({
      status: 0,
      stdout: 'Hello, Ada, on attempt 2.\n',
      stderr: '',
    })
  })

  it('classify-and-retry shows classes, times and a call that gets through', () => {
    const { status, stdout, stderr } = run('examples/classify-and-retry.ts')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/an order with a negative total +poison +explicit/)
    expect(stdout).toMatch(/HTTP 429 +retryable +http-429 +5000 ms/)
    expect(stdout).toMatch(/a wrapped cause +poison/)
    expect(stdout).toMatch(/^ +5 +4000 to 8000 ms +7500 to 15000 ms$/m)
    expect(stdout).toMatch(/attempt 2 timed out; 3 attempts left/)
    expect(stdout).toMatch(/attempt 3 got through\.\n$/)
  })
})

describe('npm start', () => {
  const start = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, 'scripts', 'start.mjs'), ...args], { encoding: 'utf8', timeout: 60_000 })

  it('runs the example, and with --once ends by itself', () => {
    const { status, stdout } = start('--once')

    expect(status).toBe(0)
    expect(stdout).toContain('got through')
  })

  it('says what it takes when it is given something else', () => {
    const { status, stderr } = start('--ones')

    expect(status).toBe(1)
    expect(stderr).toContain('does not know "--ones"')
  })
})
