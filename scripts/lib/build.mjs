import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { root } from './root.mjs'

/** What the build reads besides `src`. */
const CONFIGURATION = ['tsconfig.json', 'tsconfig.build.json', 'package.json']

/** A build that failed; the message is what the compiler said. */
export class BuildError extends Error {}

/**
 * Builds the package into `dist`: modules and declarations by the compiler, everything else under `src` (`.sql`, `.lua`,
 * pages) copied beside them. The result takes the place of the old `dist` only when it is complete, so that nobody who
 * runs from `dist` meets half a build or a file whose source is gone.
 * @param {string} [folder] the folder that holds `src`
 */
export function build(folder = root) {
  const cache = join(folder, '.cache')
  const fresh = join(cache, `build-${process.pid}`)
  const old = join(cache, `replaced-${process.pid}`)
  const dist = join(folder, 'dist')
  rmSync(fresh, { recursive: true, force: true })
  try {
    const compiler = join(root, 'node_modules', '.bin', 'tsc')
    const { status, stdout, stderr, error } = spawnSync(
      compiler,
      ['-p', join(folder, 'tsconfig.build.json'), '--outDir', fresh],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    )
    if (status !== 0) throw new BuildError(error?.message ?? `${stdout}${stderr}`.trim())
    for (const asset of assets(folder)) {
      const target = join(fresh, relative(join(folder, 'src'), asset))
      mkdirSync(dirname(target), { recursive: true })
      copyFileSync(asset, target)
    }
    // npx makes a link to it once, and goes through that link after every build.
    for (const bin of bins(folder)) chmodSync(join(fresh, relative('dist', bin)), 0o755)
    if (existsSync(dist)) renameSync(dist, old)
    renameSync(fresh, dist)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
    rmSync(old, { recursive: true, force: true })
  }
}

/**
 * Builds unless `dist` is newer than everything it is made from.
 * @param {string} [folder]
 * @returns {boolean} whether it built
 */
export function ensureBuilt(folder = root) {
  if (!isStale(folder)) return false
  build(folder)
  return true
}

/** @param {string} folder */
function isStale(folder) {
  const dist = join(folder, 'dist')
  if (!existsSync(dist)) return true
  const builtAt = statSync(dist).mtimeMs
  // Folders count too: their time changes when a file is removed.
  const inputs = [join(folder, 'src'), ...everythingUnder(join(folder, 'src'))]
  for (const name of CONFIGURATION) inputs.push(join(folder, name))
  return inputs.some((path) => statSync(path).mtimeMs >= builtAt)
}

/**
 * The files under `src` that the compiler does not read.
 * @param {string} folder
 */
function assets(folder) {
  return everythingUnder(join(folder, 'src')).filter((path) => statSync(path).isFile() && !/\.[cm]?tsx?$/.test(path))
}

/**
 * The programs that the package installs, as it names them: `dist/cli/main.js`.
 * @param {string} folder
 * @returns {string[]}
 */
function bins(folder) {
  return Object.values(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).bin ?? {})
}

/** @param {string} folder */
const everythingUnder = (folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name)))
