import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BuildError, build, ensureBuilt } from '../../scripts/lib/build.mjs'

let folder = ''

function write(name: string, text: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), text)
}

const built = (): string[] =>
  readdirSync(join(folder, 'dist'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)
    .sort()

/** As if everything had been written a minute ago. */
function age(): void {
  const then = new Date(Date.now() - 60_000)
  for (const name of ['', ...readdirSync(folder, { recursive: true })])
    utimesSync(join(folder, String(name)), then, then)
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-build-'))
  const compilerOptions = { module: 'nodenext', target: 'es2023', rootDir: 'src', declaration: true, types: [] }
  write('package.json', '{ "type": "module" }')
  write('tsconfig.json', '{}')
  write('tsconfig.build.json', JSON.stringify({ compilerOptions: { ...compilerOptions, noEmitOnError: true } }))
  write('src/index.ts', 'export const one: number = 1\n')
  write('src/sql/claim.sql', 'select 1;\n')
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('a build', () => {
  it('compiles modules, and carries everything else along', () => {
    build(folder)

    expect(built()).toEqual(['claim.sql', 'index.d.ts', 'index.js'])
    expect(readFileSync(join(folder, 'dist/sql/claim.sql'), 'utf8')).toBe('select 1;\n')
  })

  it('leaves programs that can be run: npx goes through a link that it made once', () => {
    write('package.json', '{ "type": "module", "bin": { "one": "dist/index.js" } }')
    build(folder)
    expect(statSync(join(folder, 'dist/index.js')).mode & 0o111).toBe(0o111)
  })

  it('leaves nothing of a file whose source is gone', () => {
    write('src/old.ts', 'export const old = 1\n')
    build(folder)
    rmSync(join(folder, 'src/old.ts'))

    build(folder)

    expect(built()).toEqual(['claim.sql', 'index.d.ts', 'index.js'])
    expect(readdirSync(join(folder, '.cache'))).toEqual([])
  })

  it('that fails says why and leaves the last good one in place', () => {
    build(folder)
    write('src/index.ts', 'export const one: string = 1\n')

    expect(() => build(folder)).toThrow(BuildError)
    expect(() => build(folder)).toThrow(/src\/index\.ts.*TS2322/)
    expect(readFileSync(join(folder, 'dist/index.d.ts'), 'utf8')).toContain('one: number')
  })
})

describe('a build that is asked for only if needed', () => {
  it('happens when there is none, and not again while nothing changed', () => {
    age()

    expect([ensureBuilt(folder), ensureBuilt(folder)]).toEqual([true, false])
  })

  it('happens after a source was written, and after one was removed', () => {
    write('src/extra.ts', 'export const extra = 1\n')
    age()
    ensureBuilt(folder)
    age()

    write('src/index.ts', 'export const two: number = 2\n')
    expect(ensureBuilt(folder)).toBe(true)

    age()
    rmSync(join(folder, 'src/extra.ts'))
    expect(ensureBuilt(folder)).toBe(true)
    expect(existsSync(join(folder, 'dist/extra.js'))).toBe(false)
  })
})
