import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runSteps } from '../../scripts/lib/steps.mjs'

let lines: string[] = []

beforeEach(() => {
  lines = []
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line))
})

afterEach(() => vi.restoreAllMocks())

const node = (name: string, script: string) => ({ name, command: process.execPath, args: ['-e', script] })

describe('steps', () => {
  it('print one line each when they pass, and keep their output to themselves', async () => {
    const outcomes = await runSteps([node('one', 'console.log("chatter")'), node('two', '')], { width: 2 })

    expect(outcomes.map(({ name, ok }) => ({ name, ok }))).toEqual([
      { name: 'one', ok: true },
      { name: 'two', ok: true },
    ])
    expect(lines.sort()).toEqual([expect.stringMatching(/^✓ one +\d+\.\d s$/), expect.stringMatching(/^✓ two/)])
  })

  it('print what they said when they fail, and let the others go on', async () => {
    const outcomes = await runSteps([
      node('bad', 'console.log("out"); console.error("why"); process.exitCode = 3'),
      node('good', ''),
    ])

    expect(outcomes.map(({ ok }) => ok)).toEqual([false, true])
    expect(lines[0]).toMatch(/^✗ bad/)
    expect(lines[1]).toContain('    out')
    expect(lines[1]).toContain('    why')
  })

  it('have the environment that they were given, or else ours', async () => {
    const script = 'process.exitCode = process.env.OF_THIS_STEP === "yes" ? 0 : 1'
    const outcomes = await runSteps([
      { ...node('given', script), env: { ...process.env, OF_THIS_STEP: 'yes' } },
      node('ours', script),
    ])

    expect(outcomes.map(({ ok }) => ok)).toEqual([true, false])
  })

  it('fail when their program is not there', async () => {
    const outcomes = await runSteps([{ name: 'missing', command: 'no-such-program-of-millrace', args: [] }])

    expect(outcomes[0]?.ok).toBe(false)
    expect(lines[1]).toContain('could not start')
  })

  it('get no standard input to wait on', async () => {
    const outcomes = await runSteps([node('asks', 'process.stdin.on("end", () => process.exit(0)).resume()')])

    expect(outcomes[0]?.ok).toBe(true)
  })
})
