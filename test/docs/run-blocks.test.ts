import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
// What the programs import, so that loading it is no part of the first one's time.
import 'millrace'
import 'millrace/ops'
import 'millrace/sqlite'
import 'millrace/testing'
import { root } from '../../scripts/lib/root.mjs'
import { type PageRun, runsOf } from './code-blocks.js'
import { pages, read } from './pages.js'

const runs = pages.flatMap((page) => runsOf(page, read(page)))

// They run here and not in processes of their own: forty times the start of Node and a compiler would be most of the check.
let folder = ''
beforeAll(() => {
  mkdirSync(join(root, '.cache'), { recursive: true })
  folder = mkdtempSync(join(root, '.cache', 'docs-run-'))
  mkdirSync(join(folder, 'data'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the programs in README and docs that say what they print', () => {
  it('are there, or nothing would be run', () => {
    expect(runs.length).toBeGreaterThan(10)
  })

  it.each(runs.map((run) => [run.at, run] as const))('%s prints that', { timeout: 120_000 }, async (_, run) => {
    expect(await printedBy(run)).toBe(run.output)
  })

  it('print something else when a page is wrong', async () => {
    const page = ['```ts run', 'console.log(await Promise.resolve(2))', '```', '```text', '1', '```'].join('\n')
    const [wrong] = runsOf('wrong.md', page)

    expect(await printedBy(wrong!)).toBe('2')
  })
})

/** What a program prints, in a folder of its own: a page may say `./data/work.db` as its reader would. */
async function printedBy({ name, text }: PageRun): Promise<string> {
  const file = join(folder, name)
  writeFileSync(file, text.replaceAll("'./data/", `'${folder}/data/${name}-`))
  const lines: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((...words: unknown[]) => {
    lines.push(format(...words))
  })
  try {
    await import(/* @vite-ignore */ file)
  } finally {
    log.mockRestore()
  }
  return lines.join('\n')
}
