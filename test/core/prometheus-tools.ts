import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CACHE = fileURLToPath(new URL('../../.cache/', import.meta.url))

/** What a program said and how it ended. */
export interface Ran {
  readonly code: number | null
  readonly output: string
}

/** Runs a program to its end with `input` on its standard input. */
export function run(file: string, args: readonly string[], input = '', cwd?: string): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      output += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
    // A program that ends early closes its input; its exit code says what happened.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

/** The two programs of the Prometheus package, by their paths, or why there are none. */
export type PrometheusTools =
  | { readonly kind: 'found'; readonly promtool: string; readonly prometheus: string | undefined }
  | { readonly kind: 'missing'; readonly why: string }

/**
 * Prometheus' own tools: from PATH, from the cache, or fetched once from Debian's package without installing it.
 * In CI their absence is an error, because a check that never ran must not look like one that passed.
 */
export async function prometheusTools(): Promise<PrometheusTools> {
  const promtool = onPath('promtool')
  if (promtool !== undefined) return { kind: 'found', promtool, prometheus: onPath('prometheus') }
  const home = join(CACHE, 'prometheus')
  const inCache = join(home, 'usr/bin/promtool')
  let reason = 'apt-get and dpkg-deb are not here to fetch it with'
  if (!existsSync(inCache) && onPath('apt-get') !== undefined && onPath('dpkg-deb') !== undefined)
    reason = await fetchPackage(home)
  if (existsSync(inCache)) return { kind: 'found', promtool: inCache, prometheus: join(home, 'usr/bin/prometheus') }
  const why =
    `promtool is not on PATH, and ${reason}. Install it: \`apt-get install prometheus\` on Debian or Ubuntu, ` +
    '`brew install prometheus` on macOS, or unpack a release of Prometheus and put its folder on PATH.'
  if (process.env['CI']) throw new Error(why)
  return { kind: 'missing', why }
}

/** Returns why it failed; the text is of no interest where it did not. */
async function fetchPackage(home: string): Promise<string> {
  mkdirSync(CACHE, { recursive: true })
  const workshop = mkdtempSync(join(CACHE, 'prometheus-'))
  try {
    let fetched = await run('apt-get', ['download', 'prometheus'], '', workshop)
    // A fresh container has no lists of packages yet.
    if (fetched.code !== 0 && (await run('apt-get', ['update'])).code === 0) {
      fetched = await run('apt-get', ['download', 'prometheus'], '', workshop)
    }
    if (fetched.code !== 0) return `\`apt-get download prometheus\` failed: ${fetched.output.trim()}`
    const unpacked = await run('sh', ['-c', 'dpkg-deb -x prometheus_*.deb unpacked'], '', workshop)
    if (unpacked.code !== 0) return `the package cannot be unpacked: ${unpacked.output.trim()}`
    // Moved as a whole, so that a run that is cut off leaves nothing half done in the cache.
    if (!existsSync(home)) renameSync(join(workshop, 'unpacked'), home)
    return 'the package has no promtool'
  } finally {
    rmSync(workshop, { recursive: true, force: true })
  }
}

function onPath(program: string): string | undefined {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, program)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  return undefined
}
