import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from '../../scripts/lib/root.mjs'

/** Where a fault is, and what it looks like. */
export interface Plant {
  /** A source, from the root: `src/source/middleware/chain.ts`. */
  readonly file: string
  /** Occurs in it exactly once. */
  readonly find: string
  readonly replace: string
}

/** What became of the tests that ran. */
export interface TestRun {
  /** Full names: the describes and the title. */
  readonly passed: readonly string[]
  readonly failed: readonly string[]
  /** Why nothing could be run: a file that does not load, a run that did not end. */
  readonly broken: string | undefined
}

const CONFIG = fileURLToPath(new URL('./with-fault.config.mjs', import.meta.url))
/** A run that has not ended by then hangs, also where all the machine is busy. */
export const LIMIT_MS = 300_000

/**
 * Runs test files in their own process, on the sources with that fault in them (or, without one, as they are).
 * `only` are parts of the names of the tests to run; none: all.
 */
export async function runTests(files: readonly string[], only: readonly string[], plant?: Plant): Promise<TestRun> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-fault-'))
  const report = join(folder, 'report.json')
  const args = ['run', '--config', CONFIG, '--reporter=json', `--outputFile=${report}`]
  if (only.length > 0) args.push('--testNamePattern', only.map(escaped).join('|'))
  try {
    const ended = await vitest([...args, ...files], plant)
    const text = await readFile(report, 'utf8').catch(() => undefined)
    if (ended.isLate) return broken(`the run did not end within ${LIMIT_MS} ms`)
    return text === undefined ? broken(`no report was written: ${ended.output}`) : read(JSON.parse(text) as Report)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly message: string
    readonly status: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

function read({ testResults }: Report): TestRun {
  // A file that failed without a failed test did not load: that says nothing about what its tests would have noticed.
  const unloaded = testResults.find(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  )
  if (unloaded !== undefined) return broken(`${unloaded.name} did not load: ${unloaded.message}`)
  const namesOf = (status: string) =>
    testResults.flatMap((file) => file.assertionResults.filter((t) => t.status === status).map((t) => t.fullName))
  const run = { passed: namesOf('passed'), failed: namesOf('failed'), broken: undefined }
  return run.passed.length + run.failed.length === 0 ? broken('no test of that name was run') : run
}

function broken(why: string): TestRun {
  return { passed: [], failed: [], broken: why }
}

function vitest(args: readonly string[], plant: Plant | undefined): Promise<{ isLate: boolean; output: string }> {
  // The tests of this process are vitest's too: its settings for them must not confuse the inner one.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name)),
  )
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), ...args], {
      cwd: root,
      env: plant === undefined ? env : { ...env, MILLRACE_FAULT: JSON.stringify(plant) },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let output = ''
    let isLate = false
    const note = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4_000)
    }
    child.stdout.on('data', note)
    child.stderr.on('data', note)
    // Its own process group, so that the workers it started end with it.
    const timer = setTimeout(() => {
      isLate = true
      process.kill(-child.pid!, 'SIGKILL')
    }, LIMIT_MS)
    child.on('error', reject)
    child.on('close', () => {
      clearTimeout(timer)
      resolve({ isLate, output })
    })
  })
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
