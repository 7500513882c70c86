import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../../../scripts/lib/root.mjs'

/** The peers have their own package.json, so that none of them is ever a dependency of ours. */
export const peersFolder = join(root, 'bench', 'peers')

const require = createRequire(join(peersFolder, 'package.json'))

/**
 * Loads a peer that scripts/bench.mjs has installed.
 * @param {string} name
 * @returns {Promise<any>} peers are no dependencies of ours, so there are no types to check them with
 */
export const peer = (name) => import(pathToFileURL(require.resolve(name)).href)
