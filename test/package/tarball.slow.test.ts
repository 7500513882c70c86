import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { doors } from '../../scripts/lib/doors.mjs'
import { npm } from '../../scripts/lib/packages.mjs'
import { root } from '../../scripts/lib/root.mjs'
import { namesOf } from './door-names.js'
import { type FromNpm, fromNpm } from './from-npm.js'
import { FLOOR, NODES, nodeOf } from './other-node.js'

const bin = (name: string) => join(root, 'node_modules', '.bin', name)

/** A process that has not ended by then never will. */
const HANGS_MS = 240_000

/** Values of every kind whose types a program that emits declarations has to name. */
const EXPORTED_WORK = `
import * as m from 'millrace'
export const add = m.defineWork('add', (i: { a: number; b: number }, ctx) => ctx.result(i.a + i.b))
export const many = m.defineBatchWork('many', { size: 10, maxWait: 1, run: (ids: readonly string[], { ok }) => ids.map((id) => ok(id.length)) })
export const both = m.dependency({ on: ['a', 'b'], queue: [] })
export const system = m.createWork({ work: [add, many], autoStart: false })
export const capabilities = system.capabilities
export const handle = system.enqueue(add({ a: 1, b: 2 }))
export const batched = system.enqueue('many', 'x')
export const listed = system.list()
export const rated = m.rateLimitedDoer({ limit: 1, window: 1000 })
export const doers = [m.balancedDoer({ max: 2 }), m.unlimitedDoer()]
export const memory = [m.memoryBackend(), m.memoryQueue(), m.memoryPubSub(), m.memoryStore()] as const
export const metrics = m.createMetrics()
export const series = metrics.list()
export const cron = m.parseCron('0 0 * * *')
export const delay = m.adaptiveDelay()
export const verdict = m.classify(new Error('no'))
export const attempts = m.preview({})
export const defaults = m.getDefaultRetryOptions()
`

/** The last compiler that still has `moduleResolution: node10`. */
const OLD_TYPESCRIPT = '5.9.3'

/** What a CommonJS application does, in the words of one: it prints the file that it got, and the result of its work. */
const COMMONJS_APPLICATION = `
import assert from 'node:assert'
import { createWork, defineWork, type Backend, MillraceError, PoisonError } from 'millrace'
import clerk from 'millrace/guild/clerk'
import { sqliteBackend, type SqliteBackendOptions } from 'millrace/sqlite'
import { decoded, jsonCodec } from 'millrace/source'

const options: SqliteBackendOptions = { file: ':memory:' }
export const backends: (() => Backend)[] = [() => sqliteBackend(options)]
const add = defineWork('add', (input: { a: number; b: number }) => input.a + input.b)
// @ts-expect-error: the input is typed, here too.
if (process.argv.length > 99) add({ a: 1 })

async function main(): Promise<void> {
  assert(clerk.apparatus !== undefined && typeof decoded === 'function' && jsonCodec() !== undefined)
  assert(new PoisonError('no') instanceof MillraceError)
  const work = createWork({ work: [add] })
  const sum: number = await work.enqueue(add({ a: 1, b: 2 })).result()
  await work.stop()
  console.log(require.resolve('millrace').split(/[\\\\/]/).slice(-3).join('/'), sum)
}
void main()
`

const JEST_TEST = `
const { createWork, defineWork, getDefaultRetryOptions, PoisonError, setDefaultRetryOptions } = require('millrace')
const { FakeClock } = require('millrace/testing')

test('work runs', async () => {
  const add = defineWork('add', (input) => input.a + input.b)
  const work = createWork({ work: [add] })
  expect(await work.enqueue(add({ a: 1, b: 2 })).result()).toBe(3)
  await work.stop()
})

test('every door opens', () => {
  for (const door of DOORS) expect(typeof require(door)).toBe('object')
  expect(new FakeClock().now()).toEqual(expect.any(Number))
})

test('modules that are loaded anew are a second copy, which agrees with the first', () => {
  setDefaultRetryOptions({ attempts: 7 })
  jest.resetModules()
  const again = require('millrace')
  expect(again.createWork).not.toBe(createWork)
  expect(again.getDefaultRetryOptions()).toEqual(getDefaultRetryOptions())
  expect(new PoisonError('no')).toBeInstanceOf(again.PoisonError)
})

test.each([
  ['millrace/postgres', 'postgresBackend', { connectionString: 'postgres://127.0.0.1:1/none' }, 'pg'],
  ['millrace/redis', 'redisBackend', { url: 'redis://127.0.0.1:1' }, 'ioredis'],
])('%s looks for its driver as CommonJS does', async (door, name, options, driver) => {
  const backend = require(door)[name](options)
  const error = await backend.store.get('x').catch((error) => error)
  expect(error).toMatchObject({ code: 'DRIVER_MISSING', cause: { code: 'MODULE_NOT_FOUND' } })
  expect(error.message).toContain('npm install ' + driver)
  await backend.close()
})

test.each([
  ['millrace/source/redis', 'RedisStreamInlet', { url: 'redis://127.0.0.1:1', stream: 's', group: 'g' }],
  ['millrace/source/nats', 'JetStreamInlet', { servers: 'nats://127.0.0.1:1', stream: 's', durable: 'd' }],
])('%s looks for its driver as CommonJS does', async (door, name, options) => {
  const inlet = new (require(door)[name])(options)
  const error = await inlet.subscribe().catch((error) => error)
  expect(error).toMatchObject({ code: 'DRIVER_MISSING', cause: { code: 'MODULE_NOT_FOUND' } })
  await inlet.close()
})
`

let folder = ''
let tarball = ''
let packed: readonly string[] = []

/** Packs what the build made, and installs it into a folder that has nothing else. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-package-'))
  const pack = quietNpm(['pack', '--json', '--pack-destination', folder], root)
  const [{ filename, files }] = JSON.parse(pack) as [{ filename: string; files: { path: string }[] }]
  tarball = join(folder, filename)
  packed = files.map((file) => file.path).sort()
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  quietNpm(['install', '--no-audit', '--no-fund', tarball], folder)
  for (const program of ['probe.mjs', 'two-builds.mjs'])
    copyFileSync(join(root, 'test', 'package', program), join(folder, program))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function quietNpm(args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = npm(args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed: ${String(stderr)}`)
  return String(stdout)
}

describe('the packed tarball', () => {
  it('has what the sources make, and nothing else', () => {
    expect(packed).toEqual(expectedFiles())
  })

  it('does not know where it was built', () => {
    const telling = packed
      .filter((file) => file.startsWith('dist/'))
      .filter((file) => readFileSync(join(folder, 'node_modules', 'millrace', file), 'utf8').includes(root))

    expect(telling).toEqual([])
  })

  it('is clean for publint', async () => {
    const bytes = readFileSync(tarball)
    const { messages, pkg } = await publint({
      pack: { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) },
      strict: true,
    })

    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([])
  })

  it('resolves to the right types everywhere, by attw', () => {
    const { status, stdout } = spawnSync(bin('attw'), [tarball, '--no-emoji'], {
      encoding: 'utf8',
    })

    expect(status, stdout).toBe(0)
  })
})

describe('the types of the installed package', () => {
  const resolutions = {
    nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
    bundler: { module: 'esnext', moduleResolution: 'bundler' },
  }

  for (const [name, options] of Object.entries(resolutions)) {
    it(`are found and sound under ${name}`, () => {
      const consumer = join(folder, `consumer-${name}.ts`)
      writeFileSync(consumer, consumerOf('import * as'))
      const files = [consumer]
      if (name === 'nodenext') {
        const commonJs = join(folder, `consumer-${name}.cts`)
        writeFileSync(commonJs, consumerOf('import'))
        files.push(commonJs)
      }
      expect(compile(name, options, files)).toEqual({ status: 0, output: '' })
    })
  }

  describe('in a CommonJS application, by the last compiler with node10', () => {
    const compiler = fromNpm(`typescript@${OLD_TYPESCRIPT}`, 'typescript/bin/tsc')

    it.for(['node10', 'node16'])('are found and sound under %s, and what it compiles runs', (name, { skip }) => {
      if (compiler.kind === 'none') return skip(compiler.reason)
      const application = join(folder, `application-${name}`)
      mkdirSync(application)
      writeFileSync(join(application, 'package.json'), '{ "private": true }')
      const programs = { main: COMMONJS_APPLICATION, doors: consumerOf('import'), exported: EXPORTED_WORK }
      const files = Object.entries(programs).map(([stem, text]) => {
        const file = join(application, `${stem}.ts`)
        writeFileSync(file, text)
        return file
      })
      const module = name === 'node10' ? 'commonjs' : name
      const options = {
        module,
        // That of an older Nest.
        target: 'es2021',
        moduleResolution: name,
        esModuleInterop: true,
        noEmit: false,
        declaration: true,
        outDir: application,
      }
      expect(compile(`application-${name}`, options, files, compiler.path)).toEqual({ status: 0, output: '' })
      expect(readFileSync(join(application, 'exported.d.ts'), 'utf8')).not.toMatch(/\bany\b|dist\//)

      const { status, stdout, stderr } = spawnSync(process.execPath, ['main.js'], {
        cwd: application,
        encoding: 'utf8',
        timeout: HANGS_MS,
      })
      expect([status, stdout, stderr]).toEqual([0, 'dist/cjs/index.js 3\n', ''])
    })

    it('are found and sound in its ES modules, too', ({ skip }) => {
      if (compiler.kind === 'none') return skip(compiler.reason)
      const consumer = join(folder, 'consumer-node16.mts')
      writeFileSync(consumer, consumerOf('import * as'))
      const options = { module: 'node16', moduleResolution: 'node16' }
      expect(compile('node16', options, [consumer], compiler.path)).toEqual({ status: 0, output: '' })
    })
  })

  it('can be named in the declarations of a program that exports its work', () => {
    const program = join(folder, 'exported-work.ts')
    writeFileSync(program, EXPORTED_WORK)
    const emit = {
      ...resolutions.nodenext,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      outDir: folder,
    }
    expect(compile('exported-work', emit, [program])).toEqual({ status: 0, output: '' })

    const declared = readFileSync(join(folder, 'exported-work.d.ts'), 'utf8')
    expect(declared).toMatch(/const add: .*WorkBuilder<"add"/)
    expect(declared).not.toMatch(/\bany\b|dist\//)
  })

  it('are checked by this test', () => {
    const consumer = join(folder, 'mistaken.ts')
    writeFileSync(consumer, `import { noSuchExport } from 'millrace'\nexport const x: number = noSuchExport\n`)

    expect(compile('mistaken', resolutions.nodenext, [consumer]).output).toMatch(/TS2305.*noSuchExport/)
  })
})

describe('the oldest Node that is tried', () => {
  it('is the one that package.json promises', () => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } }
    expect(engines.node.split(' ')[0]).toBe(`^${FLOOR}`)
  })
})

describe.each(NODES)('on Node %s', (version) => {
  let node: FromNpm

  beforeAll(() => {
    node = nodeOf(version)
  })

  it('every door opens by import and by require, with the same names', ({ skip }) => {
    if (node.kind === 'none') return skip(node.reason)
    const all = doors().map(({ name }) => name)
    const imported = open(node.path, all, 'import')

    for (const name of all) expect(imported[name]!.length > 0, name).toBe(name !== 'millrace/types')
    expect(open(node.path, all, 'require')).toEqual(imported)
  })
})

describe('both builds in one process', () => {
  it.for(NODES)(
    'agree on Node %s: about errors, work, places, settings, messages and the guild',
    (version, { skip }) => {
      const node = nodeOf(version)
      if (node.kind === 'none') return skip(node.reason)
      const { status, signal, stdout, stderr } = spawnSync(node.path, ['two-builds.mjs'], {
        cwd: folder,
        encoding: 'utf8',
        timeout: HANGS_MS,
      })
      expect({ status, signal, stdout, stderr }).toEqual({ status: 0, signal: null, stdout: '', stderr: '' })
    },
  )
})

describe('Jest', () => {
  it('runs tests of code that requires the package', ({ skip }) => {
    const jest = fromNpm('jest@30.2.0', 'jest/bin/jest.js')
    if (jest.kind === 'none') return skip(jest.reason)
    const names = JSON.stringify(doors().map(({ name }) => name))
    writeFileSync(join(folder, 'in-jest.cjs'), `const DOORS = ${names}\n${JEST_TEST}`)
    const config = { rootDir: folder, testRegex: 'in-jest[.]cjs$', transform: {}, cacheDirectory: join(folder, 'jest') }
    const { status, stderr } = spawnSync(process.execPath, [jest.path, '--ci', '--config', JSON.stringify(config)], {
      cwd: folder,
      encoding: 'utf8',
      timeout: HANGS_MS,
    })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Tests: +7 passed, 7 total/)
  })
})

describe('each door alone', () => {
  for (const { name } of doors()) {
    it(`${name} opens by import and by require`, () => {
      expect(open(process.execPath, [name], 'require')).toEqual(open(process.execPath, [name], 'import'))
    })
  }
})

describe('the first programs of README and of the guide', () => {
  it.each([
    ['README.md', 'Hello, Ada, on attempt 2.\n', /^\S+ WARN +millrace: greet .* the mail server is busy\n$/],
    ['docs/guide/start.md', '3\n', /^$/],
  ])('in %s: run as it says, in the project that npm init makes', (page, printed, logged) => {
    const text = readFileSync(join(root, page), 'utf8')
    const program = /```ts[^\n]*\n(.*?)```/s.exec(text)?.[1]
    const file = /Save it as `([^`]+)`/.exec(text)?.[1]
    expect(text).toContain(`npx tsx ${file}`)
    const project = join(folder, 'first-program')
    mkdirSync(project, { recursive: true })
    writeFileSync(join(project, 'package.json'), '{ "name": "first", "version": "1.0.0", "type": "commonjs" }')
    writeFileSync(join(project, file!), program!)

    const { NODE_ENV: _, ...env } = process.env
    const { status, stdout, stderr } = spawnSync(bin('tsx'), [file!], { cwd: project, env, encoding: 'utf8' })
    expect([status, stdout], stderr).toEqual([0, printed])
    expect(stderr).toMatch(logged)
  })
})

describe('the door of the guild', () => {
  it('does not load what runs work before a guild or a client is opened', () => {
    const program = `
      const { startGuild } = require('millrace/guild')
      const loaded = () => Object.keys(require.cache).filter((file) => /[\\/]millrace[\\/]dist[\\/]cjs[\\/](work|backends|drivers)[\\/]/.test(file))
      const before = loaded().length
      startGuild({ writTypes: {} }).then((guild) => guild.stop(), (error) => error).then(() => console.log(before, loaded().length > 50))`
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=commonjs', '-e', program], {
      cwd: folder,
      encoding: 'utf8',
      timeout: HANGS_MS,
    })
    expect([status, stdout], stderr).toEqual([0, '0 true\n'])
  })
})

describe('the command of the installed package', () => {
  const run = (program: string, ...args: string[]) =>
    spawnSync(program, args, { cwd: folder, encoding: 'utf8', timeout: HANGS_MS })
  // What npx finds there; npx itself takes longer than most of what is asked.
  const millrace = (...args: string[]) => run(join(folder, 'node_modules', '.bin', 'millrace'), ...args)
  // What npm says of itself is none of ours.
  const own = (stderr: string) => stderr.replace(/^npm warn .*\n/gm, '')

  it('is found by npx, and knows its version and its commands', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    const told = run('npx', '--no-install', 'millrace', '--version')
    expect([told.status, told.stdout, own(told.stderr)]).toEqual([0, `${version}\n`, ''])
    expect(millrace('--help').stdout).toContain('millrace <command> --help')
  })

  it('runs the demonstration, or says what to install for it', () => {
    const { status, stdout, stderr } = millrace('demo')
    const hasSqlite = Number(process.versions.node.split('.')[0]) >= 22
    expect(status, stderr).toBe(hasSqlite ? 0 : 3)
    if (hasSqlite) expect(stdout).toContain('Redrove 1 item.')
    else expect(own(stderr)).toMatch(/^millrace: SQLite cannot be opened: .*npm install better-sqlite3@12/)
  })

  it.each([
    ['postgres://127.0.0.1:1/none', 'npm install pg'],
    ['redis://127.0.0.1:1', 'npm install ioredis'],
  ])('says what to install for %s', (address, install) => {
    const { status, stdout, stderr } = millrace('overview', '--backend', address)
    expect([status, stdout]).toEqual([3, ''])
    expect(stderr).toContain(install)
  })
})

/** Opens doors in a process of its own, which must end by itself, print nothing and leave nothing behind. */
function open(node: string, names: readonly string[], how: 'import' | 'require'): Record<string, readonly string[]> {
  const report = join(folder, 'report.json')
  rmSync(report, { force: true })
  const { status, signal, stdout, stderr } = spawnSync(node, ['probe.mjs', names.join(','), report, how], {
    cwd: folder,
    encoding: 'utf8',
    timeout: HANGS_MS,
  })
  expect({ how, status, signal, stdout, stderr }).toEqual({ how, status: 0, signal: null, stdout: '', stderr: '' })
  const told = JSON.parse(readFileSync(report, 'utf8')) as { names: Record<string, string[]>; left: string[] }
  expect({ how, left: told.left }).toEqual({ how, left: [] })
  return told.names
}

/**
 * What the package must hold: for every module of `src` one of each kind and its declarations (the command is only an ES module, and
 * has none), every other file of `src`, the declarations of the doors as ES modules, and four files of the root.
 */
function expectedFiles(): readonly string[] {
  const files = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'dist/cjs/package.json']
  files.push(...doors().map(({ types }) => types))
  for (const entry of readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = relative(join(root, 'src'), join(entry.parentPath, entry.name)).split(sep).join('/')
    const stem = path.replace(/\.tsx?$/, '')
    if (path.endsWith('.cjs')) continue
    if (stem === path) files.push(`dist/${path}`)
    else if (stem.startsWith('cli/')) files.push(`dist/${stem}.js`)
    else files.push(`dist/${stem}.js`, `dist/cjs/${stem}.js`, `dist/cjs/${stem}.d.ts`)
  }
  return files.sort()
}

/** A program that imports every door, and fails to compile where a door is untyped. */
function consumerOf(importing: 'import' | 'import * as'): string {
  const lines = doors().map(({ name }, i) =>
    importing === 'import' ? `import door${i} = require('${name}')` : `import * as door${i} from '${name}'`,
  )
  doors().forEach((_, i) => {
    lines.push('// @ts-expect-error: a door without types would let this through', `door${i}.noSuchExport`)
  })
  lines.push(`import type { Plugin } from 'millrace/guild'`)
  doors().forEach(({ name }, i) => {
    if (namesOf(name).has('default')) lines.push(`export const plugin${i}: Plugin = door${i}.default`)
  })
  return `${lines.join('\n')}\n`
}

function compile(
  name: string,
  options: object,
  files: readonly string[],
  compiler = bin('tsc'),
): { status: number | null; output: string } {
  const config = join(folder, `tsconfig.${name}.json`)
  const compilerOptions = {
    target: 'es2022',
    strict: true,
    noEmit: true,
    ...options,
    // The user's compiler looks into our declarations too.
    skipLibCheck: false,
    types: ['node'],
    typeRoots: [join(root, 'node_modules', '@types')],
  }
  writeFileSync(config, JSON.stringify({ compilerOptions, files }))
  const { status, stdout, stderr } = spawnSync(compiler, ['-p', config], { cwd: folder, encoding: 'utf8' })
  return { status, output: `${stdout}${stderr}` }
}
