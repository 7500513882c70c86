import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { npm } from '../../scripts/lib/packages.mjs'
import { root } from '../../scripts/lib/root.mjs'

export type FromNpm =
  | { readonly kind: 'found'; readonly path: string }
  /** npm has no such package for this platform. */
  | { readonly kind: 'none'; readonly reason: string }

/**
 * A file of a package that only these tests use, kept in `.cache` outside of everything that is packed. Throws when it should be there
 * and cannot be had; in CI that is always, because a check that never ran must not look like one that passed.
 *
 * @param spec the package with its version
 * @param file below `node_modules`
 */
export function fromNpm(spec: string, file: string): FromNpm {
  const folder = join(root, '.cache', spec.replaceAll('/', '-'))
  const path = join(folder, 'node_modules', file)
  if (existsSync(path)) return { kind: 'found', path }
  mkdirSync(folder, { recursive: true })
  // Without a package.json of its own, npm would install into the repository.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const { status, stderr } = npm(['install', '--no-audit', '--no-fund', '--no-save', spec], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status === 0 && existsSync(path)) return { kind: 'found', path }
  if (!process.env['CI'] && /\bcode (E404|ETARGET)\b/.test(String(stderr))) {
    return { kind: 'none', reason: `npm has no ${spec}` }
  }
  throw new Error(`Could not install ${spec}: ${String(stderr)}`)
}
