import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { SetupError } from './packages.mjs'
import { root } from './root.mjs'

/**
 * A program that tests start for themselves.
 * @typedef {object} Server
 * @property {string} label
 * @property {string} program the executable that tests need
 * @property {string} debian its package on Debian
 * @property {string} brew its formula on macOS
 * @property {() => boolean} isNeeded
 */

/** @type {readonly Server[]} */
export const SERVERS = Object.freeze([
  { label: 'Redis', program: 'redis-server', debian: 'redis-server', brew: 'redis', isNeeded: () => true },
  { label: 'PostgreSQL', program: 'postgres', debian: 'postgresql', brew: 'postgresql', isNeeded: () => true },
  { label: 'NATS', program: 'nats-server', debian: 'nats-server', brew: 'nats-server', isNeeded: () => true },
  // Not a server of work: the terminal in which the command line is tested as a person uses it.
  { label: 'tmux', program: 'tmux', debian: 'tmux', brew: 'tmux', isNeeded: () => true },
  { label: 'Chromium', program: 'chromium', debian: 'chromium', brew: 'chromium', isNeeded: hasBrowserTests },
])

/**
 * Makes sure that every server the tests start is installed. Nothing is started here, and nothing on a standard port is
 * touched: tests run private servers on free ports.
 */
export function ensureServers() {
  const missing = SERVERS.filter((server) => server.isNeeded() && findProgram(server.program) === undefined)
  if (missing.length === 0) return
  if (!canInstall()) throw new SetupError(howToInstall(missing, process.platform))
  const names = missing.map((server) => server.debian)
  console.log(`Installing ${names.join(', ')} from Debian's packages …`)
  withoutStartingServices(() => {
    aptGet(['update', '-qq'])
    aptGet(['install', '-y', '-qq', '--no-install-recommends', ...names])
  })
  const still = missing.filter((server) => findProgram(server.program) === undefined)
  if (still.length > 0) {
    throw new SetupError(`Installed, yet not found: ${still.map((server) => server.program).join(', ')}.`)
  }
}

/**
 * Where a program is: on the PATH, or where Debian and Homebrew keep servers that ordinary users do not call. The folder
 * of PostgreSQL itself comes first, because what the PATH has under its names may be a wrapper around it.
 * @param {string} program
 * @returns {string | undefined}
 */
export function findProgram(program) {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const folders = [...postgresFolders(), ...path, '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin']
  return folders.map((folder) => join(folder, program)).find(isExecutable)
}

/** Debian keeps each major version of PostgreSQL in a folder of its own, none of them on the PATH. Newest first. */
function postgresFolders() {
  const base = '/usr/lib/postgresql'
  if (!existsSync(base)) return []
  return readdirSync(base)
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(base, version, 'bin'))
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * What to tell people on whose machine we do not install anything.
 * @param {readonly Server[]} missing
 * @param {NodeJS.Platform} platform
 */
export function howToInstall(missing, platform) {
  const names = missing.map((server) => `${server.label} (${server.program})`).join(', ')
  const command =
    platform === 'darwin'
      ? `brew install ${missing.map((server) => server.brew).join(' ')}`
      : `sudo apt-get install -y --no-install-recommends ${missing.map((server) => server.debian).join(' ')}`
  return (
    `npm test needs ${names}, and it is not on the PATH. Install it, for example with\n\n    ${command}\n\n` +
    'and run npm test again. Without servers, npm run check runs everything that needs none.'
  )
}

function hasBrowserTests() {
  const folder = join(root, 'test', 'browser')
  return existsSync(folder) && readdirSync(folder, { recursive: true }).some((name) => /\.test\.ts$/.test(String(name)))
}

function canInstall() {
  if (process.getuid?.() !== 0 || findProgram('apt-get') === undefined) return false
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : ''
  return /^ID(_LIKE)?=.*\bdebian\b/m.test(release)
}

/** @param {readonly string[]} args */
function aptGet(args) {
  const { status, error } = spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=300', ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
  if (status !== 0) throw new SetupError(`apt-get ${args[0]} failed${error ? `: ${error.message}` : ''}.`)
}

/**
 * Debian's server packages start their service when installed, on its standard port. A policy file forbids that for as
 * long as the installation runs; where the machine has one already, it stays in charge.
 * @param {() => void} install
 */
function withoutStartingServices(install) {
  const policy = '/usr/sbin/policy-rc.d'
  if (existsSync(policy)) {
    install()
    return
  }
  writeFileSync(policy, '#!/bin/sh\n# Written by scripts/lib/servers.mjs for one installation.\nexit 101\n', {
    mode: 0o755,
  })
  try {
    install()
  } finally {
    rmSync(policy, { force: true })
  }
}
