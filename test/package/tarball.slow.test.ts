import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { doors } from '../../scripts/lib/doors.mjs'
import { npm } from '../../scripts/lib/packages.mjs'
import { root } from '../../scripts/lib/root.mjs'
import { FLOOR, NODES, type NodeProgram, nodeOf } from './other-node.js'

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
  copyFileSync(join(root, 'test', 'package', 'probe.mjs'), join(folder, 'probe.mjs'))
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
    const { status, stdout } = spawnSync(bin('attw'), [tarball, '--profile', 'esm-only', '--no-emoji'], {
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
  let node: NodeProgram

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

describe('each door alone', () => {
  for (const { name } of doors()) {
    it(`${name} opens by import and by require`, () => {
      expect(open(process.execPath, [name], 'require')).toEqual(open(process.execPath, [name], 'import'))
    })
  }
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

/** What the package must hold: two files for every module of `src`, every other file of `src`, and four of the root. */
function expectedFiles(): readonly string[] {
  const files = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
  for (const entry of readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = relative(join(root, 'src'), join(entry.parentPath, entry.name)).split(sep).join('/')
    const stem = path.replace(/\.tsx?$/, '')
    if (stem === path) files.push(`dist/${path}`)
    else files.push(`dist/${stem}.js`, `dist/${stem}.d.ts`)
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
  return `${lines.join('\n')}\n`
}

function compile(name: string, options: object, files: readonly string[]): { status: number | null; output: string } {
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
  const { status, stdout, stderr } = spawnSync(bin('tsc'), ['-p', config], { cwd: folder, encoding: 'utf8' })
  return { status, output: `${stdout}${stderr}` }
}
