// `npm run bench`: builds, and runs the comparison with the peers; `npm run bench -- <name>` runs bench/<name>.bench.ts, `--list` lists
// them. All further arguments are the bench's.
import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureBuilt } from './lib/build.mjs'
import { command, foreground } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { root } from './lib/root.mjs'
import { typescriptProgram } from './lib/run-typescript.mjs'

const SUFFIX = '.bench.ts'
/** Runs when no bench is named: its arguments are the backends to compare on, and options. */
const COMPARISON = 'compare'
const BACKENDS = ['memory', 'sqlite', 'redis', 'postgres']
/** Those that run the peers, which are installed for them. */
const WITH_PEERS = [COMPARISON, 'growth']

await command(async () => {
  const args = process.argv.slice(2)
  const names = benches()
  if (args[0] === '--list') {
    console.log(listing(names))
    return 0
  }
  const isNamed = args[0] !== undefined && !args[0].startsWith('-') && !BACKENDS.includes(args[0])
  const name = (isNamed && args.shift()) || COMPARISON
  ensurePackages()
  if (!names.includes(name)) {
    const meant = await closest(name, [...names, ...BACKENDS])
    console.error(`There is no bench "${name}".${meant === undefined ? '' : ` Did you mean "${meant}"?`}`)
    console.error(listing(names))
    return 1
  }
  // Their native parts are optional, and nothing that they would run on being installed is needed.
  if (WITH_PEERS.includes(name)) ensurePackages(join(root, 'bench', 'peers'), ['--ignore-scripts'])
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
  return [
    `npm run bench -- [${BACKENDS.join('] [')}] [--quick] compares with the peers.`,
    'npm run bench -- <name>, where <name> is one of:',
    ...names.map((name) => `  ${name}`),
  ].join('\n')
}
