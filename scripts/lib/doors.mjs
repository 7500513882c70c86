import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'

/**
 * One way into the package: a key of `exports` that opens code.
 * @typedef {object} Door
 * @property {string} name what a user imports: `millrace/source`
 * @property {string} file where it opens in the build: `dist/source/index.js`
 * @property {string} types its declarations: `dist/source/index.d.ts`
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
    const file = target?.default
    const types = target?.types
    if (typeof file !== 'string' || !/^\.\/dist\/.+\.js$/.test(file) || types !== file.replace(/\.js$/, '.d.ts')) {
      throw new Error(
        `package.json: exports["${key}"] must be { "types": "./dist/….d.ts", "default": "./dist/….js" } of one module, ` +
          `but is ${JSON.stringify(target)}.`,
      )
    }
    found.push({
      name: manifest.name + key.slice(1),
      file: file.slice(2),
      types: types.slice(2),
      source: file.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts'),
    })
  }
  if (found.length === 0) throw new Error('package.json: "exports" lists no door.')
  return found
}
