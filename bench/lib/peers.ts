import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from '../../scripts/lib/root.mjs'

const folder = join(root, 'bench', 'peers')

/** Loads a peer, and installs all of them first if they are not there. They have their own package.json. */
export function peer(name: string): unknown {
  if (!existsSync(join(folder, 'node_modules', name))) {
    console.log(`Installing the peers of bench/peers …`)
    const install = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts']
    const { status, stderr } = spawnSync('npm', install, { cwd: folder, encoding: 'utf8' })
    if (status !== 0) throw new Error(`npm install in bench/peers failed: ${stderr}`)
  }
  return createRequire(join(folder, 'package.json'))(name)
}

export function peerVersion(name: string): string {
  const { version } = peer(`${name}/package.json`) as { readonly version: string }
  return version
}
