// `npm run bench -- <name>`: builds, and runs bench/<name>.bench.ts. Without a name it lists them.
import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureBuilt } from './lib/build.mjs'
import { command, foreground } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { root } from './lib/root.mjs'
import { typescriptProgram } from './lib/run-typescript.mjs'

const SUFFIX = '.bench.ts'

await command(async () => {
  const [name, ...args] = process.argv.slice(2)
  const names = benches()
  if (name === undefined) {
    console.log(listing(names))
    return 0
  }
  ensurePackages()
  if (!names.includes(name)) {
    const meant = await closest(name, names)
    console.error(`There is no bench "${name}".${meant === undefined ? '' : ` Did you mean "${meant}"?`}`)
    console.error(listing(names))
    return 1
  }
  ensureBuilt()
  // Servers that tests start keep their data in memory; there a flush costs nothing.
  process.env.MILLRACE_SERVER_DATA ??= tmpdir()
  return foreground(typescriptProgram(`bench/${name}${SUFFIX}`, args))
})

/** @returns {string[]} */
function benches() {
  const folder = join(root, 'bench')
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => file.endsWith(SUFFIX))
    .map((file) => file.slice(0, -SUFFIX.length))
    .sort()
}

/**
 * The library's own way to guess what was meant, read from its source since the answer must not wait for a build.
 * @param {string} name
 * @param {readonly string[]} names
 * @returns {Promise<string | undefined>}
 */
async function closest(name, names) {
  const { tsImport } = await import('tsx/esm/api')
  const { closestName } = await tsImport('../src/core/text/closest-name.ts', import.meta.url)
  return closestName(name, names)
}

/** @param {readonly string[]} names */
function listing(names) {
  if (names.length === 0) return 'There are no benches yet: a file bench/<question>.bench.ts is one.'
  return ['npm run bench -- <name>, where <name> is one of:', ...names.map((name) => `  ${name}`)].join('\n')
}
