import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LAYERS } from '../../scripts/lib/import-rules.mjs'
import { root } from '../../scripts/lib/root.mjs'
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

  it('names files and folders that exist, and enough of them to find the way', () => {
    const named = [...new Set(read('ARCHITECTURE.md').match(/\bsrc\/[a-z0-9/.-]+[a-z0-9]/g))]

    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
    expect(named.filter((path) => path.endsWith('.ts')).length).toBeGreaterThan(30)
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

describe('the changelog', () => {
  it('has a place for what comes next', () => {
    expect(read('CHANGELOG.md')).toMatch(/^## \[Unreleased\]$/m)
  })
})

function cellOf(allowed: readonly string[] | 'anything'): string {
  if (allowed === 'anything') return 'anything'
  return allowed.length === 0 ? 'nothing' : allowed.map((name) => `\`${name}\``).join(', ')
}
