import { type FromNpm, fromNpm } from './from-npm.js'

/** The Nodes that the packed package is tried on: the oldest one that package.json promises, and the newest of each major. */
export const NODES = Object.freeze(['20.19.0', '20.20.2', '22.23.3', '24.21.0'] as const)

/** The oldest Node that package.json promises. */
export const FLOOR = NODES[0]

/** That Node: the running one where it is of the same major (for the floor only the very same will do), or one from npm's node packages. */
export function nodeOf(version: (typeof NODES)[number]): FromNpm {
  const { node: running } = process.versions
  const willDo = version === FLOOR ? running === version : running.split('.')[0] === version.split('.')[0]
  if (willDo) return { kind: 'found', path: process.execPath }
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const name = `node-${platform}-${process.arch}`
  return fromNpm(`${name}@${version}`, `${name}/bin/${process.platform === 'win32' ? 'node.exe' : 'node'}`)
}
