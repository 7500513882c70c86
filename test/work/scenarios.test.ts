import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'

/**
 * What the work engine is to do is numbered: scenarios (S), types (T), and weaknesses of `@ayepi/work` that are not to come
 * back (W). A comment above a test, or above a planted fault, has the numbers that it shows.
 */
const SCENARIOS = [
  ...[range(1, 16), range(20, 25), range(30, 46), range(50, 64), range(70, 90), range(95, 102), range(110, 125)]
    .flat()
    .map((n) => `S${String(n).padStart(2, '0')}`),
  ...range(1, 21).map((n) => `T${n}`),
  ...range(1, 32).map((n) => `W${n}`),
]

const EXCEPTIONS: Readonly<Record<string, string>> = {
  T18: 'says that a plain return does not compile: here it is the result',
  W17: 'is about an adapter for SQS, and there is none here',
}

/** Where these numbers mean the work engine: other layers number theirs alike. */
const FOLDERS = [
  'test/work',
  'test/ports',
  'test/backends/plain',
  'test/backends/memory',
  'test/mutants/work',
  'test/examples',
]
const FILES: Readonly<Record<string, RegExp>> = {
  'test/core/codec.test.ts': /^(S2[0-5]|W21)$/,
  'test/core/backoff.test.ts': /^S64$/,
  'test/core/adaptive-delay.test.ts': /^S124$/,
  'test/core/doer/bounded.test.ts': /^S125$/,
  'test/core/doer/rate-limited.test.ts': /^S125$/,
}

describe('every scenario of the work engine', () => {
  const shown = new Map<string, string[]>()
  const show = (file: string, numbers: readonly string[]) => {
    for (const number of numbers) shown.set(number, [...(shown.get(number) ?? []), file])
  }
  for (const folder of FOLDERS) for (const file of filesIn(folder)) show(file, numbersOf(file))
  for (const [file, own] of Object.entries(FILES))
    show(
      file,
      numbersOf(file).filter((number) => own.test(number)),
    )
  const types = textOf('test/types/work.test-d.ts')
  show(
    'test/types/work.test-d.ts',
    [...types.matchAll(/^export [\w ]+ t(\d+)/gim)].map(([, n]) => `T${n}`),
  )

  it('is covered by a test or a planted fault, or is left out for a reason', () => {
    expect(SCENARIOS.filter((number) => !shown.has(number) && !(number in EXCEPTIONS))).toEqual([])
  })

  it('is left out only while nothing covers it', () => {
    expect(Object.keys(EXCEPTIONS).filter((number) => shown.has(number))).toEqual([])
  })

  it('has a known number', () => {
    const known = new Set(SCENARIOS)
    const unknown = [...shown].filter(([number]) => !known.has(number)).map(([number, by]) => `${number}: ${by}`)
    expect(unknown).toEqual([])
  })
})

/** The numbers above tests and faults: `// S61 W1`. */
function numbersOf(file: string): string[] {
  const notes = textOf(file).matchAll(/(?<=^\s*\/\/ )[SW]\d{1,3}(?:,? [SW]\d{1,3})*$/gm)
  return [...notes].flatMap(([numbers]) => numbers.split(/,? /))
}

function filesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') || file.endsWith('faults.ts'))
    .map((file) => join(folder, file))
}

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, n) => from + n)
}
