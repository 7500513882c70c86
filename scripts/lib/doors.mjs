import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'

/**
 * One way into the package: a key of `exports` that opens code.
 * @typedef {object} Door
 * @property {string} name what a user imports: `millrace/source`
 * @property {string} file where it opens in the build: `dist/source/index.js`
 * @property {string} types its declarations: `dist/source/index.d.ts`
 * @property {{ file: string, types: string }} commonJs the same two for `require`: `dist/cjs/source/index.js`, …
 * @property {string} source what it is built from: `src/source/index.ts`
 */

/**
 * The doors of the package, read from `exports` in package.json. That is the one list: the tests' aliases, the check for
 * unused exports and the test of the packed tarball all follow it.
 * @param {string} [folder] the folder that holds package.json
 * @returns {Door[]}
 */
export function doors(folder = root) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const found = []
  for (const [key, target] of Object.entries(manifest.exports)) {
    if (key === './package.json') continue
    const stem = /^\.\/dist\/(.+)\.js$/.exec(target?.import?.default)?.[1]
    const wanted = {
      import: { types: `./dist/${stem}.d.ts`, default: `./dist/${stem}.js` },
      require: { types: `./dist/cjs/${stem}.d.ts`, default: `./dist/cjs/${stem}.js` },
    }
    if (stem === undefined || JSON.stringify(target) !== JSON.stringify(wanted)) {
      const form = JSON.stringify(wanted).replaceAll(String(stem), '…')
      throw new Error(
        `package.json: exports["${key}"] must be ${form} of one module, but is ${JSON.stringify(target)}.`,
      )
    }
    const legacy = key === '.' ? [manifest.types] : manifest.typesVersions?.['*']?.[key.slice(2)]
    if (JSON.stringify(legacy) !== JSON.stringify([wanted.require.types])) {
      const place = key === '.' ? '"types"' : `typesVersions["*"]["${key.slice(2)}"]`
      throw new Error(
        `package.json: ${place} must lead to ${wanted.require.types}, for compilers that do not read "exports".`,
      )
    }
    found.push({
      name: manifest.name + key.slice(1),
      file: wanted.import.default.slice(2),
      types: wanted.import.types.slice(2),
      commonJs: { file: wanted.require.default.slice(2), types: wanted.require.types.slice(2) },
      source: `src/${stem}.ts`,
    })
  }
  if (found.length === 0) throw new Error('package.json: "exports" lists no door.')
  return found
}
