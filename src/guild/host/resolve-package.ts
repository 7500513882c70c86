import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Conditions of `exports` that hold when a plugin is imported. */
const CONDITIONS: readonly string[] = ['import', 'node', 'module-sync', 'default']

/**
 * The file of a package as seen from a folder, as a URL. Node resolves a name for the file that imports it, which would be
 * this one; a guild's plugins are installed beside its `guild.json`. `undefined` when there is no such package or export.
 */
export function resolvePackage(name: string, folder: string): string | undefined {
  const [, packageName, subPath] = /^((?:@[^/]+\/)?[^/]+)(\/.+)?$/.exec(name) ?? []
  if (packageName === undefined || /^(\.|@?$)/.test(packageName)) return undefined
  const home = homeOf(packageName, folder)
  const exported = home === undefined ? undefined : exportsOf(home)
  if (home !== undefined && exported !== undefined) {
    const target = targetOf(exported, `.${subPath ?? ''}`)
    const file = target === undefined ? undefined : join(home, target)
    return file !== undefined && existsSync(file) ? pathToFileURL(file).href : undefined
  }
  try {
    // Without `exports` both ways of loading find the same file.
    return pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)).href
  } catch {
    return undefined
  }
}

/** Names of packages that a folder's package.json declares; none where there is no such file, or it makes no sense. */
export function declaredDependencies(folder: string): string[] {
  const manifest = manifestOf(folder)
  const kinds = ['dependencies', 'optionalDependencies', 'peerDependencies', 'devDependencies']
  return [...new Set(kinds.flatMap((kind) => Object.keys((manifest?.[kind] as object | undefined) ?? {})))]
}

function homeOf(packageName: string, folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const home = join(at, 'node_modules', packageName)
    if (statSync(home, { throwIfNoEntry: false })?.isDirectory()) return home
    if (dirname(at) === at) return undefined
  }
}

function exportsOf(home: string): unknown {
  return manifestOf(home)?.['exports'] ?? undefined
}

function manifestOf(folder: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  } catch {
    return undefined
  }
}

/** What `exports` has for a path: a plain entry first, then the longest pattern with a `*`. */
function targetOf(exported: unknown, path: string): string | undefined {
  if (!isDoors(exported)) return path === '.' ? chosen(exported, '') : undefined
  if (path in exported) return chosen(exported[path], '')
  const patterns = Object.keys(exported)
    .filter((key) => key.includes('*'))
    .sort((a, b) => b.indexOf('*') - a.indexOf('*'))
  for (const pattern of patterns) {
    const [head = '', tail = ''] = pattern.split('*')
    if (path.length >= pattern.length && path.startsWith(head) && path.endsWith(tail)) {
      return chosen(exported[pattern], path.slice(head.length, path.length - tail.length))
    }
  }
  return undefined
}

/** The file that the conditions lead to, in the order in which they are written. */
function chosen(target: unknown, star: string): string | undefined {
  if (typeof target === 'string') return target.startsWith('./') ? target.replaceAll('*', star) : undefined
  if (Array.isArray(target)) return target.map((one) => chosen(one, star)).find((one) => one !== undefined)
  if (typeof target !== 'object' || target === null) return undefined
  for (const [condition, next] of Object.entries(target)) {
    if (!CONDITIONS.includes(condition)) continue
    const found = chosen(next, star)
    if (found !== undefined) return found
  }
  return undefined
}

function isDoors(exported: unknown): exported is Record<string, unknown> {
  return typeof exported === 'object' && exported !== null && Object.keys(exported).some((key) => key.startsWith('.'))
}
