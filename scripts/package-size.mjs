// `node scripts/package-size.mjs [tarball]`: what the packed package costs: its size, that of a bundle with `createWork`, and how long
// each door takes to open, in the middle of many fresh processes. Without a tarball it builds and packs this repository.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { ensureBuilt } from './lib/build.mjs'
import { command } from './lib/command.mjs'
import { npm } from './lib/packages.mjs'
import { root } from './lib/root.mjs'

const RUNS = 7

await command(() => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-size-'))
  try {
    const tarball = process.argv[2] === undefined ? pack(folder) : resolve(process.argv[2])
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
    run(['install', '--no-audit', '--no-fund', tarball], folder)
    const installed = join(folder, 'node_modules', 'millrace')
    console.log(`tarball            ${bytes(statSync(tarball).size)}`)
    console.log(`installed          ${bytes(sizeOf(installed))}`)
    for (const minify of [false, true]) {
      const code = bundleOf(folder, minify)
      const note = minify ? `, ${bytes(gzipSync(code).length).trim()} compressed` : ''
      console.log(`createWork ${minify ? 'minified' : 'bundled'}`.padEnd(18), `${bytes(code.length)}${note}`)
    }
    const { exports: doors } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    console.log(`\nms to open, of ${RUNS} processes the middle one`.padEnd(46), 'import', 'require'.padStart(9))
    for (const key of Object.keys(doors).filter((key) => key !== './package.json')) {
      const name = `millrace${key.slice(1)}`
      const [imported, required] = [`await import('${name}')`, `require('${name}')`].map((how) =>
        openingMs(folder, how),
      )
      console.log(name.padEnd(45), String(imported).padStart(6), String(required).padStart(9))
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return 0
})

/** @param {string} folder */
function pack(folder) {
  ensureBuilt()
  const [{ filename }] = JSON.parse(run(['pack', '--json', '--pack-destination', folder], root))
  return join(folder, filename)
}

/**
 * @param {string[]} args
 * @param {string} cwd
 */
function run(args, cwd) {
  const { status, stdout, stderr } = npm(args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed: ${String(stderr)}`)
  return String(stdout)
}

/**
 * A program that does nothing but `createWork`, with everything that it needs of the package. The bundler is the one that tsx brings.
 * @param {string} folder
 * @param {boolean} minify
 * @returns {Buffer}
 */
function bundleOf(folder, minify) {
  const esbuild = createRequire(join(root, 'node_modules', 'tsx', 'package.json'))('esbuild')
  const { outputFiles } = esbuild.buildSync({
    stdin: { contents: `import { createWork } from 'millrace'\nconsole.log(createWork)`, resolveDir: folder },
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    minify,
  })
  return Buffer.from(outputFiles[0].contents)
}

/**
 * @param {string} folder
 * @param {string} how
 */
function openingMs(folder, how) {
  const type = how.startsWith('await') ? 'module' : 'commonjs'
  const program = `const t = performance.now(); ${how}; console.log(performance.now() - t)`
  const times = Array.from({ length: RUNS }, () =>
    Number(
      spawnSync(process.execPath, [`--input-type=${type}`, '-e', program], { cwd: folder, encoding: 'utf8' }).stdout,
    ),
  )
  return times.sort((a, b) => a - b)[Math.floor(RUNS / 2)]?.toFixed(0)
}

/** @param {string} folder */
function sizeOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

/** @param {number} count */
function bytes(count) {
  return `${(count / 1000).toFixed(0).padStart(6)} kB`
}
