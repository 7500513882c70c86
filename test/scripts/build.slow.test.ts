import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BuildError, build, ensureBuilt } from '../../scripts/lib/build.mjs'

const MANIFEST = {
  name: 'one',
  type: 'module',
  types: './dist/cjs/index.d.ts',
  exports: {
    '.': {
      import: { types: './dist/index.d.ts', default: './dist/index.js' },
      require: { types: './dist/cjs/index.d.ts', default: './dist/cjs/index.js' },
    },
  },
}

/** What a build of one module makes. */
const OF_INDEX = ['cjs/index.d.ts', 'cjs/index.js', 'cjs/package.json', 'index.d.ts', 'index.js']

let folder = ''

function write(name: string, text: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), text)
}

const built = (): string[] =>
  readdirSync(join(folder, 'dist'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(join(folder, 'dist'), join(entry.parentPath, entry.name)))
    .sort()

/** As if everything had been written a minute ago. */
function age(): void {
  const then = new Date(Date.now() - 60_000)
  for (const name of ['', ...readdirSync(folder, { recursive: true })])
    utimesSync(join(folder, String(name)), then, then)
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-build-'))
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    rootDir: 'src',
    declaration: true,
    types: [],
    skipLibCheck: true,
  }
  write('package.json', JSON.stringify(MANIFEST))
  write('tsconfig.json', '{}')
  write('tsconfig.build.json', JSON.stringify({ compilerOptions: { ...compilerOptions, noEmitOnError: true } }))
  const commonJs = { module: 'commonjs', moduleResolution: 'bundler', declaration: false }
  write('tsconfig.commonjs.json', JSON.stringify({ extends: './tsconfig.build.json', compilerOptions: commonJs }))
  write('src/index.ts', 'export const one: number = 1\n')
  write('src/sql/claim.sql', 'select 1;\n')
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('a build', () => {
  it('compiles modules, and carries everything else along', () => {
    build(folder)

    expect(built()).toEqual([...OF_INDEX, 'sql/claim.sql'])
    expect(readFileSync(join(folder, 'dist/sql/claim.sql'), 'utf8')).toBe('select 1;\n')
  })

  it('makes each module twice, as ES module and as CommonJS, with one set of declarations', () => {
    write('src/own.ts', 'export const here: string = import.meta.url\n')
    write('src/own.cjs', 'exports.here = __filename\n')
    write('src/index.ts', `export { here } from './own.js'\nexport default { one: 1 }\n`)
    write(
      'tsconfig.commonjs.json',
      JSON.stringify({
        extends: './tsconfig.build.json',
        compilerOptions: { module: 'commonjs', moduleResolution: 'bundler', declaration: false, noCheck: true },
      }),
    )
    build(folder)

    expect(built()).toEqual([...OF_INDEX, 'cjs/own.d.ts', 'cjs/own.js', 'own.js', 'sql/claim.sql'].sort())
    const require = createRequire(join(folder, 'package.json'))
    expect(require('./dist/cjs/index.js')).toEqual({
      here: join(realpathSync(folder), 'dist/cjs/own.js'),
      default: { one: 1 },
    })
    expect(readFileSync(join(folder, 'dist/index.d.ts'), 'utf8').split('\n')).toEqual([
      `export * from './cjs/index.js'`,
      `import door = require('./cjs/index.js')`,
      'declare const value: typeof door.default',
      'export default value',
      '',
    ])
  })

  it('is refused where a door does not lead to both', () => {
    write('package.json', JSON.stringify({ ...MANIFEST, exports: { '.': { default: './dist/index.js' } } }))
    expect(() => build(folder)).toThrow(/exports\["\."\] must be .*"require"/)
    write('package.json', JSON.stringify({ ...MANIFEST, types: './dist/index.d.ts' }))
    expect(() => build(folder)).toThrow(/"types" must lead to \.\/dist\/cjs\/index\.d\.ts/)
    expect(existsSync(join(folder, 'dist'))).toBe(false)
  })

  it('leaves programs that can be run: npx goes through a link that it made once', () => {
    write('package.json', JSON.stringify({ ...MANIFEST, bin: { one: 'dist/index.js' } }))
    build(folder)
    expect(statSync(join(folder, 'dist/index.js')).mode & 0o111).toBe(0o111)
  })

  it('leaves nothing of a file whose source is gone', () => {
    write('src/old.ts', 'export const old = 1\n')
    build(folder)
    rmSync(join(folder, 'src/old.ts'))

    build(folder)

    expect(built()).toEqual([...OF_INDEX, 'sql/claim.sql'])
    expect(readdirSync(join(folder, '.cache'))).toEqual([])
  })

  it('that fails says why and leaves the last good one in place', () => {
    build(folder)
    write('src/index.ts', 'export const one: string = 1\n')

    expect(() => build(folder)).toThrow(BuildError)
    expect(() => build(folder)).toThrow(/src\/index\.ts.*TS2322/)
    expect(readFileSync(join(folder, 'dist/cjs/index.d.ts'), 'utf8')).toContain('one: number')
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
