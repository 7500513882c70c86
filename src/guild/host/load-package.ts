import { importModule } from '../../core/process/own-module.js'
import { isObject } from '../../core/text/safe-read.js'
import { isOwnDoor } from './plugin-id.js'
import { resolvePackage } from './resolve-package.js'

/** What came of loading a package. */
export type LoadedPackage =
  | { readonly kind: 'loaded'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly reason: string }
  /** There is no such package. */
  | { readonly kind: 'missing'; readonly reason: string }

/**
 * Imports a plugin package as seen from the guild's folder, and returns its default export. It never rejects: a package that
 * cannot be found or that throws is a reason.
 */
export async function loadPackage(packageName: string, home: string): Promise<LoadedPackage> {
  // Our own doors come from this very copy: another one would have its own idea of everything.
  const specifier = isOwnDoor(packageName) ? packageName : resolvePackage(packageName, home)
  if (specifier === undefined) {
    return { kind: 'missing', reason: `cannot be found from ${home}: install the package "${packageName}"` }
  }
  try {
    const module: unknown = await importModule(specifier)
    return { kind: 'loaded', value: defaultOf(module) }
  } catch (error) {
    return failed(`could not be imported: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The default export. CommonJS made from ESM has it one step further in. */
function defaultOf(module: unknown): unknown {
  const outer = isObject(module) ? (module as { default?: unknown }).default : undefined
  if (isObject(outer) && '__esModule' in outer && 'default' in outer) return outer.default
  return outer
}

const failed = (reason: string): LoadedPackage => ({ kind: 'failed', reason })
