import fc from 'fast-check'
import { memoryBackend } from 'millrace'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.js'
import { flagsOf } from '../../src/cli/input/parse.js'
import { Bench } from './support.js'

// A demonstration runs for seconds, and a live overview until it is stopped: both have their own tests.
const commands = COMMANDS.filter(({ name }) => name !== 'demo')
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 10 }),
  fc.constantFrom(
    '',
    '-',
    '--',
    'queue',
    'type',
    'state:dead',
    'type:x',
    'before:2h',
    'a:b',
    '0',
    '-1',
    '1e9',
    '5m',
    '{"status":503}',
    '{',
    '\u001b[2J',
    '../../x',
    '%s',
    '__proto__',
  ),
)
const wordOf = (name: string) => {
  const command = commands.find((one) => one.name === name)
  const flags = Object.entries(flagsOf(command)).filter(([flag]) => flag !== 'watch')
  const long = fc.constantFrom(
    ...flags.map(([flag]) => `--${flag}`),
    '--nonsense',
    '--stat',
    '-n',
    '-y',
    '-x',
    '--no-json',
  )
  const valued = fc.tuple(long, text).map(([flag, value]) => `${flag}=${value}`)
  return fc.oneof({ weight: 3, arbitrary: text }, { weight: 4, arbitrary: long }, { weight: 2, arbitrary: valued })
}
const line = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .constantFrom(...commands.map(({ name }) => name))
      .chain((name) => fc.array(wordOf(name), { maxLength: 5 }).map((words) => [name, ...words])),
  },
  { weight: 1, arbitrary: fc.array(text, { maxLength: 4 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(wordOf('list'), fc.constantFrom(...commands.map(({ name }) => name)), wordOf('list'))
      .map((words) => [...words]),
  },
)

describe('whatever is typed', () => {
  it('ends with a code of the table, and never with a stack trace or a control character', async () => {
    const backend = memoryBackend({ clock: new FakeClock() })
    await fc.assert(
      fc.asyncProperty(line, async (args) => {
        fc.pre(
          !args.includes('demo') && !args.includes('--debug') && !args.some((arg) => /^--watch|^-[a-z]*w/.test(arg)),
        )
        const bench = new Bench({ backend, clock: new FakeClock() })
        const { code, out, err } = await bench.said(...args)
        expect([0, 1, 2, 3]).toContain(code)
        expect(`${out}${err}`).not.toMatch(/\n\s+at /)
        expect(`${out}${err}`).not.toContain('\u001b')
        expect(err).not.toMatch(/is not a function|undefined \(reading|unreachable/)
        // What went wrong is said, and a program finds nothing where the answer should be.
        if (code >= 2 && args.length > 0 && out === '') expect(err).not.toBe('')
        if (
          code === 0 &&
          args.includes('--json') &&
          !/^(millrace|Usage|\d)/.test(out) &&
          !args.includes('--help') &&
          !args.includes('-h')
        )
          expect(() => JSON.parse(out)).not.toThrow()
      }),
      { numRuns: 1_000 },
    )
  })
})
