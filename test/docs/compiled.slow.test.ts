import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMPILER_ARGS, compilerEnvironment } from '../../scripts/lib/compiler.mjs'
import { references } from '../../scripts/lib/docs/reference.mjs'
import { root } from '../../scripts/lib/root.mjs'
import { modulesOf, type PageModule } from './code-blocks.js'
import { exampleModules, isOfTheReader } from './doc-examples.js'
import { pages, read } from './pages.js'

/** Whatever `mine` names, `createWork` has no such option. */
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

  it('compiles, and a page with a mistake in it would not', () => {
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
    const { stdout, error } = spawnSync(compiler, ['-p', project, '--pretty', 'false', ...COMPILER_ARGS], {
      env: compilerEnvironment(),
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
