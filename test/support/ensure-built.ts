import { ensureBuilt } from '../../scripts/lib/build.mjs'
import { ensurePackages } from '../../scripts/lib/packages.mjs'

/** Runs once before the slow tests: those that start processes run them from `dist`. */
export function setup(): void {
  ensurePackages()
  if (ensureBuilt()) console.log('Built dist, which was older than src.')
}
