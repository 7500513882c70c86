import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { npm } from '../../scripts/lib/packages.mjs'
import { root } from '../../scripts/lib/root.mjs'

/** The Nodes that the packed package is tried on: the oldest one that package.json promises, and the newest of each major. */
export const NODES = Object.freeze(['20.19.0', '20.20.2', '22.23.3', '24.21.0'] as const)

/** The oldest Node that package.json promises. */
export const FLOOR = NODES[0]

export type NodeProgram =
  | { readonly kind: 'found'; readonly path: string }
  /** npm has no such Node for this platform. */
  | { readonly kind: 'none'; readonly reason: string }

/**
 * That Node: the running one where it is of the same major (for the floor only the very same will do), or one from npm's node
 * packages, kept in `.cache` outside of everything that is packed. Throws when it should be there and cannot be had; in CI
 * that is always, because a check that never ran must not look like one that passed.
 */
export function nodeOf(version: (typeof NODES)[number]): NodeProgram {
  const { node: running } = process.versions
  const willDo = version === FLOOR ? running === version : running.split('.')[0] === version.split('.')[0]
  if (willDo) return { kind: 'found', path: process.execPath }
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const name = `node-${platform}-${process.arch}`
  const folder = join(root, '.cache', `node-${version}`)
  const path = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(path)) return { kind: 'found', path }
  mkdirSync(folder, { recursive: true })
  // Without a package.json of its own, npm would install into the repository.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const { status, stderr } = npm(['install', '--no-audit', '--no-fund', '--no-save', `${name}@${version}`], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status === 0 && existsSync(path)) return { kind: 'found', path }
  if (!process.env['CI'] && /\bcode (E404|ETARGET)\b/.test(String(stderr))) {
    return { kind: 'none', reason: `npm has no ${name}@${version}` }
  }
  throw new Error(`Could not install ${name}@${version}: ${String(stderr)}`)
}
