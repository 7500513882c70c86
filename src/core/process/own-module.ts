import { createRequire } from 'node:module'

// What a file must know of its own place, and what ES modules and CommonJS write differently. The CommonJS build has
// own-module.cjs in the place of this file.

/** The folder that holds this build of the package: `src`, or `dist`. */
export const buildFolder: URL = new URL('../../', import.meta.url)

/** Loads a module immediately, as this package sees it: what an optional driver needs. */
export function requireModule(name: string): unknown {
  return createRequire(import.meta.url)(name)
}

/** Loads a module by its URL, or a door of this package by its name, which is then of this very build. */
export function importModule(specifier: string): Promise<unknown> {
  return import(specifier)
}
