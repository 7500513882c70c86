import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { references } from '../../scripts/lib/docs/reference.mjs'
import { LAYERS } from '../../scripts/lib/import-rules.mjs'
import { root } from '../../scripts/lib/root.mjs'
import { modulesOf, type PageModule } from './code-blocks.js'
import { exampleModules, isOfTheReader } from './doc-examples.js'
import { pages, read } from './pages.js'

const decisions = readdirSync(join(root, 'docs', 'decisions')).sort()

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

/** Whoever it is that `mine` names, `createWork` has no such option. */
const MISTAKEN_EXAMPLE = {
  name: 'example-mistaken.ts',
  text: "import { createWork } from 'millrace'\ncreateWork({ retries: mine })\n",
}

describe('the TypeScript in README, docs and doc comments', () => {
  const modules = pages.flatMap((page) => modulesOf(page, read(page)))
  const examples = exampleModules(references())

  it('is there, or nothing would be checked', () => {
    const names = modules.map((module) => module.name)
    expect(names).toEqual(expect.arrayContaining(['README.ts', 'docs-guide-streams.ts']))
    expect(examples.length).toBeGreaterThan(50)
  })

  // The compiler is a process of its own, on two cores that it shares.
  it('compiles, and a page with a mistake in it would not', { timeout: 120_000 }, () => {
    const page = ['# Title', '', '```ts', "import { ack } from 'millrace/source'", '```', '', '```ts', 'ack(5)', '```']
    const mistaken = modulesOf('mistaken.md', page.join('\n'))

    // One run for all of them. The error has the line of the page.
    const errors = compiled([...modules, ...examples, ...mistaken, MISTAKEN_EXAMPLE])
    expect(errors.filter((error) => !isOfTheReader(error))).toEqual([
      expect.stringMatching(/^example-mistaken\.ts\(2,14\): error TS2353/),
      expect.stringMatching(/^mistaken\.ts\(8,5\): error TS2554/),
    ])
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
  // Inside the repository, so that names of packages are found; and always the same folder, so that the compiler finds what it
  // noted the last time, and looks only at what has changed since.
  const folder = join(root, '.cache', 'docs-code')
  mkdirSync(folder, { recursive: true })
  const config = {
    extends: '../../tsconfig.json',
    compilerOptions: {
      noUnusedLocals: false,
      noUnusedParameters: false,
      incremental: true,
      tsBuildInfoFile: 'notes.tsbuildinfo',
    },
    // By name: what another run at the same time has written, or an older one left, is not ours.
    files: modules.map(({ name }) => name),
  }
  // A name of its own for each process, since two may check at once.
  const project = join(folder, `tsconfig-${process.pid}.json`)
  try {
    for (const { name, text } of modules) writeIfChanged(join(folder, name), text)
    writeFileSync(project, JSON.stringify(config))
    const compiler = join(root, 'node_modules', '.bin', 'tsc')
    const { stdout, error } = spawnSync(compiler, ['-p', project, '--pretty', 'false'], {
      cwd: folder,
      encoding: 'utf8',
    })
    if (error !== undefined) throw error
    // Mistakes in our sources are the business of another check.
    return stdout.split('\n').filter((line) => line !== '' && !line.startsWith('../'))
  } finally {
    rmSync(project, { force: true })
  }
}

function writeIfChanged(file: string, text: string): void {
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text)
}
