import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { npm } from '../../scripts/lib/packages.mjs'
import { root } from '../../scripts/lib/root.mjs'

/** The Nodes that the packed package is tried on, by major. */
export const NODES = Object.freeze({ 20: '20.20.2', 22: '22.23.3', 24: '24.21.0' })

export type NodeProgram =
  | { readonly kind: 'found'; readonly path: string }
  /** npm has no such Node for this platform. */
  | { readonly kind: 'none'; readonly reason: string }

/**
 * A Node of that major: the running one, or one from npm's node packages, kept in `.cache` outside of everything that is
 * packed. Throws when it should be there and cannot be had.
 */
export function nodeOf(major: keyof typeof NODES): NodeProgram {
  if (process.versions.node.startsWith(`${major}.`)) return { kind: 'found', path: process.execPath }
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const name = `node-${platform}-${process.arch}`
  const folder = join(root, '.cache', `node-${NODES[major]}`)
  const path = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(path)) return { kind: 'found', path }
  mkdirSync(folder, { recursive: true })
  // Without a package.json of its own, npm would install into the repository.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const { status, stderr } = npm(['install', '--no-audit', '--no-fund', '--no-save', `${name}@${NODES[major]}`], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status === 0 && existsSync(path)) return { kind: 'found', path }
  if (/\bcode (E404|ETARGET)\b/.test(String(stderr))) {
    return { kind: 'none', reason: `npm has no ${name}@${NODES[major]}` }
  }
  throw new Error(`Could not install ${name}@${NODES[major]}: ${String(stderr)}`)
}
