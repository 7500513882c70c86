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
  writeFileSync,
} from 'node:fs'
import { dirname, join, posix, relative, sep } from 'node:path'
import { COMPILER_ARGS, compilerEnvironment } from './compiler.mjs'
import { doors } from './doors.mjs'
import { root } from './root.mjs'

/** What the build reads besides `src`. */
const CONFIGURATION = ['tsconfig.json', 'tsconfig.build.json', 'tsconfig.commonjs.json', 'package.json']

/** A build that failed; the message is what the compiler said. */
export class BuildError extends Error {}

/**
 * Builds the package into `dist`: modules by the compiler, everything else under `src` (`.sql`, `.lua`, pages) copied beside them,
 * and in `dist/cjs` the same modules as CommonJS, with the declarations of both. The result takes the place of the old `dist` only
 * when it is complete, so a program that runs from `dist` never meets half a build or a file whose source is gone.
 * @param {string} [folder] the folder that holds `src`
 */
export function build(folder = root) {
  const cache = join(folder, '.cache')
  const fresh = join(cache, `build-${process.pid}`)
  const old = join(cache, `replaced-${process.pid}`)
  const dist = join(folder, 'dist')
  rmSync(fresh, { recursive: true, force: true })
  try {
    const all = doors(folder)
    compile(join(folder, 'tsconfig.build.json'), fresh)
    compile(join(folder, 'tsconfig.commonjs.json'), join(fresh, 'cjs'))
    shareDeclarations(fresh)
    for (const door of all) {
      const shared = readFileSync(join(fresh, relative('dist', door.commonJs.types)), 'utf8')
      writeFileSync(join(fresh, relative('dist', door.types)), declarationsOf(door, shared, all))
    }
    writeFileSync(join(fresh, 'cjs', 'package.json'), '{ "type": "commonjs" }\n')
    for (const file of byHand(folder))
      copyFileSync(file, join(fresh, 'cjs', relative(join(folder, 'src'), file).replace(/\.cjs$/, '.js')))
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
 * @param {string} project
 * @param {string} outDir
 */
function compile(project, outDir) {
  const compiler = join(root, 'node_modules', '.bin', 'tsc')
  const { status, stdout, stderr, error } = spawnSync(compiler, ['-p', project, '--outDir', outDir, ...COMPILER_ARGS], {
    env: compilerEnvironment(),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status !== 0) throw new BuildError(error?.message ?? `${stdout}${stderr}`.trim())
}

/**
 * Moves the declarations to the CommonJS modules, where they are those of a CommonJS module to the compiler: an ES module may
 * import that, and the reverse is not so. Those of modules that are built only as ES modules are of no door, and of no use.
 * @param {string} fresh
 */
function shareDeclarations(fresh) {
  const commonJs = join(fresh, 'cjs')
  const declarations = everythingUnder(fresh).filter(
    (path) => path.endsWith('.d.ts') && !path.startsWith(commonJs + sep),
  )
  for (const from of declarations) {
    const to = join(commonJs, relative(fresh, from))
    if (existsSync(to.replace(/\.d\.ts$/, '.js'))) renameSync(from, to)
    else rmSync(from)
  }
}

/**
 * The declarations of a door as an ES module: those of the CommonJS one. An ES module that imports `default` of a CommonJS module
 * would get all of its exports, so that one is taken by `require`. Other doors that those refer to are named, because a compiler
 * that writes declarations names types only by doors that it has read.
 * @param {import('./doors.mjs').Door} door
 * @param {string} shared the declarations of the CommonJS one
 * @param {readonly import('./doors.mjs').Door[]} all
 */
function declarationsOf(door, shared, all) {
  const specifier = specifierOf(door.types, door.commonJs.file)
  const lines = [`export * from '${specifier}'`]
  for (const { file, commonJs } of all) {
    if (shared.includes(`'${specifierOf(door.commonJs.file, commonJs.file)}'`))
      lines.push(`import '${specifierOf(door.types, file)}'`)
  }
  if (/\bexport default\b/.test(shared)) {
    lines.push(
      `import door = require('${specifier}')`,
      'declare const value: typeof door.default',
      'export default value',
    )
  }
  return `${lines.join('\n')}\n`
}

/** @type {(from: string, to: string) => string} */
function specifierOf(from, to) {
  const path = posix.relative(posix.dirname(from), to)
  return path.startsWith('.') ? path : `./${path}`
}

/**
 * The CommonJS modules that the compiler cannot make of a file: they lie beside it in `src`.
 * @param {string} folder
 */
const byHand = (folder) => everythingUnder(join(folder, 'src')).filter((path) => path.endsWith('.cjs'))

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
 * The files under `src` that are no modules.
 * @param {string} folder
 */
function assets(folder) {
  return everythingUnder(join(folder, 'src')).filter(
    (path) => statSync(path).isFile() && !/\.([cm]?tsx?|cjs)$/.test(path),
  )
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
