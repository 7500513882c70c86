import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { checkImports } from '../../scripts/lib/import-rules.mjs'
import { root } from '../../scripts/lib/root.mjs'

const trees: string[] = []

function tree(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-imports-'))
  trees.push(folder)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

const problems = (files: Readonly<Record<string, string>>): string[] =>
  checkImports(tree(files)).violations.map(({ file, line, problem }) => `${file}:${line} ${problem}`)

afterEach(() => {
  for (const folder of trees.splice(0)) rmSync(folder, { recursive: true, force: true })
})

describe('an import that points up', () => {
  const spellings = {
    static: `import { work } from '../work/work.js'`,
    'for its effects only': `import '../work/work.js'`,
    'type-only': `import type { Work } from '../work/work.js'`,
    'of an inline type': `import { type Work } from '../work/work.js'`,
    dynamic: `export const load = () => import('../work/work.js')`,
    'dynamic, in a template': 'export const load = () => import(`../work/work.js`)',
    're-exported': `export { work } from '../work/work.js'`,
    're-exported whole': `export * from '../work/work.js'`,
    're-exported as a type': `export type { Work } from '../work/work.js'`,
    'inside a type': `export type Work = import('../work/work.js').Work`,
    'typeof, inside a type': `export type Work = typeof import('../work/work.js')`,
    'by import equals': `import work = require('../work/work.js')`,
    required: `export const work = require('../work/work.js')`,
  }

  for (const [spelling, line] of Object.entries(spellings)) {
    it(`is found when it is ${spelling}`, () => {
      const found = problems({ 'src/core/a.ts': `// first line\n${line}\n`, 'src/work/define/work.ts': 'export {}' })

      expect(found).toEqual([
        'src/core/a.ts:2 core must not import work ("../work/work.js"); it may import no other folder',
      ])
    })
  }

  it('is found in a deeper folder, and in a file of any TypeScript ending', () => {
    const found = problems({
      'src/source/loop/a.ts': `import '../../work/a.js'`,
      'src/ops/b.tsx': `import '../dashboard/b.js'`,
      'src/ports/c.mts': `import '../source/c.mjs'`,
    })

    expect(found).toHaveLength(3)
  })
})

describe('the layers', () => {
  it('let imports point down, and stay inside a folder', () => {
    const found = problems({
      'src/core/a.ts': `import './b.js'`,
      'src/ports/a.ts': `import '../core/a.js'`,
      'src/drivers/redis/a.ts': `import '../../ports/a.js'`,
      'src/backends/redis/a.ts': `import '../../drivers/redis/a.js'; import '../../ports/a.js'; import './lua/b.js'`,
      'src/source/a.ts': `import '../ports/a.js'; import './loop/a.js'`,
      'src/source/redis/a.ts': `import '../message.js'; import '../../drivers/redis/a.js'`,
      'src/work/a.ts': `import '../source/a.js'; import 'uuid'; import 'node:fs'`,
      'src/guild/clerk/a.ts': `import '../stacks/a.js'; import '../../work/a.js'`,
      'src/ops/a.ts': `import '../guild/clerk/a.js'`,
      'src/dashboard/a.ts': `import '../ops/a.js'`,
      'src/cli/a.ts': `import '../dashboard/a.js'; export const open = () => import('../backends/redis/a.js')`,
      'src/testing/a.ts': `import '../work/a.js'; import '../backends/memory/a.js'`,
      'src/index.ts': `import './work/a.js'; import './backends/memory/index.js'`,
    })

    expect(found).toEqual([])
  })

  it('keep engines and backends apart', () => {
    const found = problems({
      'src/work/a.ts': `import '../backends/memory/index.js'`,
      'src/source/a.ts': `import '../backends/memory/index.js'`,
      'src/backends/memory/a.ts': `import '../../source/a.js'`,
    })

    expect(found).toEqual([
      expect.stringMatching(/^src\/backends\/memory\/a\.ts:1 backends\/memory must not import source /),
      expect.stringMatching(/^src\/source\/a\.ts:1 source must not import backends\/memory /),
      expect.stringMatching(/^src\/work\/a\.ts:1 work must not import backends\/memory /),
    ])
  })

  it('keep one backend from another', () => {
    expect(problems({ 'src/backends/redis/a.ts': `import '../memory/a.js'` })).toEqual([
      expect.stringContaining('backends/redis must not import backends/memory'),
    ])
  })

  it('let nothing in src import testing', () => {
    expect(problems({ 'src/cli/a.ts': `import '../testing/a.js'` })).toHaveLength(1)
    expect(problems({ 'src/index.ts': `import './testing/index.js'` })).toHaveLength(1)
  })

  it('let the front door join the engine with the memory backend only', () => {
    expect(problems({ 'src/index.ts': `import './backends/redis/index.js'` })).toHaveLength(1)
  })

  it('keep what needs a driver away from the door of source', () => {
    expect(problems({ 'src/source/index.ts': `export { redisInlet } from './redis/index.js'` })).toHaveLength(1)
  })
})

describe('a way around the table', () => {
  it('is closed: the package by its own name', () => {
    expect(problems({ 'src/core/a.ts': `import 'millrace/testing'` })).toHaveLength(1)
    expect(problems({ 'src/core/a.ts': `import 'millrace'` })).toHaveLength(1)
  })

  it('is closed: a path out of src', () => {
    expect(problems({ 'src/core/a.ts': `import '../../test/helper.js'` })).toHaveLength(1)
    expect(problems({ 'src/core/a.ts': `import '/src/work/a.js'` })).toHaveLength(1)
  })

  it('is closed: a name that is computed', () => {
    expect(problems({ 'src/core/a.ts': 'export const load = (name: string) => import(name)' })).toHaveLength(1)
  })

  it('is closed: an import in a file that does not parse', () => {
    expect(problems({ 'src/core/a.ts': 'import { from' })).toEqual([expect.stringContaining('does not parse')])
  })
})

describe('a folder that the table does not know', () => {
  it('is refused, also when it imports nothing', () => {
    expect(problems({ 'src/utils/a.ts': 'export const a = 1' })).toEqual([
      expect.stringMatching(/^src\/utils\/a\.ts:1 src\/utils belongs to no layer/),
    ])
  })

  it('is refused as the target of an import', () => {
    expect(problems({ 'src/core/a.ts': `import '../utils/a.js'` })).toEqual([expect.stringContaining('src/utils')])
  })

  it('is refused as a file beside the layers or beside the backends', () => {
    expect(problems({ 'src/helpers.ts': '' })).toHaveLength(1)
    expect(problems({ 'src/backends/shared.ts': '' })).toHaveLength(1)
  })
})

describe('an example', () => {
  it('imports public names, not files of src', () => {
    const found = problems({
      'src/index.ts': '',
      'examples/good.ts': `import { createWork } from 'millrace'; import './part.js'`,
      'examples/bad.ts': `import { createWork } from '../src/index.js'`,
    })

    expect(found).toEqual([expect.stringMatching(/^examples\/bad\.ts:1 imports "..\/src\/index.js"/)])
  })
})

describe('a tree with nothing to check', () => {
  it('is an error, not a success', () => {
    expect(() => checkImports(tree({ 'src/readme.md': '' }))).toThrow(/nothing was checked/)
    expect(() => checkImports(tree({ 'examples/a.ts': '' }))).toThrow(/nothing was checked/)
  })
})

describe('the command', () => {
  const run = (folder: string) =>
    spawnSync(process.execPath, [join(root, 'scripts', 'imports.mjs'), folder], { encoding: 'utf8' })

  it('exits 0 on a good tree, and says how much it read', () => {
    const { status, stdout } = run(tree({ 'src/core/a.ts': '', 'src/ports/b.ts': `import '../core/a.js'` }))

    expect({ status, stdout }).toEqual({ status: 0, stdout: '2 files, 0 imports in the wrong direction\n' })
  })

  it('exits 1 on an upward import, and names file and line', () => {
    const { status, stderr } = run(tree({ 'src/core/a.ts': `import type { B } from '../ports/b.js'` }))

    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('src/core/a.ts:1 core must not') })
  })

  it('exits 1 on a tree without files', () => {
    expect(run(tree({})).status).toBe(1)
  })
})

describe('this repository', () => {
  it('points down only', () => {
    const { files, violations } = checkImports(root)

    expect(violations).toEqual([])
    expect(files).toBeGreaterThan(10)
  })
})
