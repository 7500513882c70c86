import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'

/** The oldest Node that the package supports; `engines` in package.json says the same. */
const OLDEST_NODE = [20, 19]

/**
 * What the installed packages were built for. Native modules belong to one Node major and one platform, which the lock
 * file does not know.
 */
const builtFor = () => `${process.platform}-${process.arch} modules-${process.versions.modules}`

/** @typedef {Record<string, { version?: string, integrity?: string, optional?: boolean }>} LockedPackages */

/**
 * Installs the packages of the lock file, unless exactly those are there already. Needs nothing but Node and npm, so it
 * is the first thing that every command does on a fresh clone.
 * @param {string} [folder]
 * @param {readonly string[]} [args] further arguments for npm
 */
export function ensurePackages(folder = root, args = []) {
  assertNodeVersion(process.versions.node)
  const reason = whyInstall(folder)
  const stamp = join(folder, 'node_modules', '.millrace-built-for')
  if (reason !== undefined) {
    console.log(`Installing packages: ${reason} …`)
    // Tests need the development packages, whatever NODE_ENV says here.
    const { status, error } = npm(['ci', '--include=dev', '--no-audit', '--no-fund', ...args], {
      cwd: folder,
      stdio: 'inherit',
    })
    if (status !== 0) {
      throw new SetupError(
        `npm ci failed${error ? `: ${error.message}` : ''}. Its output is above. If it stopped at better-sqlite3: where npm ` +
          'finds no prebuilt one it compiles it, which takes python3, make and a C++ compiler ' +
          '(Debian: apt-get install -y --no-install-recommends python3 make g++).',
      )
    }
  }
  if (reason !== undefined || !existsSync(stamp)) writeFileSync(stamp, builtFor())
}

/** A setup that cannot continue; the message says what to do, so no stack is printed. */
export class SetupError extends Error {}

/** @param {string} version */
export function assertNodeVersion(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  throw new SetupError(`Millrace needs Node ${OLDEST_NODE.join('.')} or newer; this is Node ${version}.`)
}

/**
 * Why packages must be installed, or undefined when they need not be. npm keeps its own record of what it installed in
 * node_modules/.package-lock.json, also when a person ran `npm install` by hand; it is held against the lock file.
 * @param {string} folder
 * @returns {string | undefined}
 */
export function whyInstall(folder) {
  const installed = readPackages(join(folder, 'node_modules', '.package-lock.json'))
  if (installed === undefined) return 'node_modules is missing or incomplete'
  const locked = readPackages(join(folder, 'package-lock.json'))
  if (locked === undefined) throw new SetupError('package-lock.json is missing. Get it back from git.')
  for (const [path, entry] of Object.entries(locked)) {
    if (path === '') continue
    const found = installed[path]
    // An optional package may be meant for another platform.
    if (found === undefined && entry.optional) continue
    if (found === undefined) return `${path} is not installed`
    if (found.version !== entry.version || found.integrity !== entry.integrity) {
      return `${path} is ${found.version}, package-lock.json has ${entry.version}`
    }
  }
  const stamp = join(folder, 'node_modules', '.millrace-built-for')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') !== builtFor()) {
    return `they were built for ${readFileSync(stamp, 'utf8')}, this is ${builtFor()}`
  }
  return undefined
}

/**
 * @param {string} file
 * @returns {LockedPackages | undefined}
 */
function readPackages(file) {
  if (!existsSync(file)) return undefined
  return JSON.parse(readFileSync(file, 'utf8')).packages
}

/**
 * Runs npm: the one that runs this script, if any, else the one on the PATH.
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnSyncOptions} options
 */
export function npm(args, options) {
  const cli = process.env['npm_execpath']
  return cli?.endsWith('.js') && existsSync(cli)
    ? spawnSync(process.execPath, [cli, ...args], options)
    : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' })
}
