import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LAYERS } from '../../scripts/lib/import-rules.mjs'
import { root } from '../../scripts/lib/root.mjs'
import { modulesOf, type PageModule } from './code-blocks.js'

const read = (file: string) => readFileSync(join(root, file), 'utf8')

const decisions = readdirSync(join(root, 'docs', 'decisions')).sort()

const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true })
    .map((name) => `docs/${String(name)}`)
    .filter((name) => name.endsWith('.md')),
]

describe('the README', () => {
  it('shows the very program that is run as examples/quick-start.ts', () => {
    const [, program] = /```ts\n([\s\S]*?)```/.exec(read('README.md')) ?? []

    expect(program).toBe(read('examples/quick-start.ts'))
  })

  it('keeps that program to about a dozen lines', () => {
    const lines = read('examples/quick-start.ts').split('\n')

    expect(lines.filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(14)
  })
})

describe('ARCHITECTURE.md', () => {
  it('has the table of layers that is checked', () => {
    const rows = [...read('ARCHITECTURE.md').matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)]
      .map(([, key = '', cell = '']) => [key, cell] as const)
      .filter(([, cell]) => /^(`|nothing$|anything$)/.test(cell))

    expect(Object.fromEntries(rows)).toEqual(
      Object.fromEntries(Object.entries(LAYERS).map(([key, allowed]) => [key, cellOf(allowed)])),
    )
  })
})

describe('the decisions', () => {
  it('are numbered from 1 without a gap', () => {
    expect(decisions.map((name) => name.slice(0, 5))).toEqual(
      decisions.map((_, index) => `${String(index + 1).padStart(4, '0')}-`),
    )
  })

  it.each(decisions)('%s has the five parts', (name) => {
    const text = read(`docs/decisions/${name}`)

    expect(text).toMatch(new RegExp(`^# ${Number(name.slice(0, 4))}\\. \\S`))
    expect(text).toMatch(/^\*\*Status:\*\* (proposed|accepted|superseded by \[)/m)
    expect(text.match(/^## .+$/gm)).toEqual(['## Context', '## Decision', '## Alternatives', '## Consequences'])
  })
})

describe.each(pages)('%s', (page) => {
  const text = read(page)

  it('links to files that exist', () => {
    const missing = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(join(root, dirname(page), target)))

    expect(missing).toEqual([])
  })

  it('names scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const named = [...text.matchAll(/\bnpm run ([a-z]+)/g)].map(([, name = '']) => name)

    expect(named.filter((name) => !(name in scripts))).toEqual([])
  })
})

describe('the TypeScript in docs', () => {
  const modules = pages.filter((page) => page.startsWith('docs/')).flatMap((page) => modulesOf(page, read(page)))

  it('is there, or nothing would be checked', () => {
    expect(modules.map((module) => module.name)).toContain('docs-guide-streams.ts')
  })

  // The compiler is a process of its own, on two cores that it shares.
  it('compiles, and a page with a mistake in it would not', { timeout: 120_000 }, () => {
    const page = ['# Title', '', '```ts', "import { ack } from 'millrace/source'", '```', '', '```ts', 'ack(5)', '```']
    const mistaken = modulesOf('mistaken.md', page.join('\n'))

    // One run for both. The error has the line of the page.
    expect(compiled([...modules, ...mistaken])).toEqual([expect.stringMatching(/^mistaken\.ts\(8,5\): error TS2554/)])
  })
})

describe('the changelog', () => {
  it('has a place for what comes next', () => {
    expect(read('CHANGELOG.md')).toMatch(/^## \[Unreleased\]$/m)
  })
})

function cellOf(allowed: readonly string[] | 'anything'): string {
  if (allowed === 'anything') return 'anything'
  return allowed.length === 0 ? 'nothing' : allowed.map((name) => `\`${name}\``).join(', ')
}

/** What the compiler says about them. Unused names are fine in a page; everything else is as strict as in our sources. */
function compiled(modules: readonly PageModule[]): string[] {
  mkdirSync(join(root, '.cache'), { recursive: true })
  // Inside the repository, so that names of packages are found.
  const folder = mkdtempSync(join(root, '.cache', 'docs-'))
  try {
    for (const { name, text } of modules) writeFileSync(join(folder, name), text)
    const config = {
      extends: '../../tsconfig.json',
      compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
      include: ['*.ts'],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const { stdout, error } = spawnSync(
      join(root, 'node_modules', '.bin', 'tsc'),
      ['-p', folder, '--pretty', 'false'],
      {
        cwd: folder,
        encoding: 'utf8',
      },
    )
    if (error !== undefined) throw error
    // Mistakes in our sources are the business of another check.
    return stdout.split('\n').filter((line) => line !== '' && !line.startsWith('../'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
