import { closestName } from './closest-name.js'

/** ` Did you mean "spider"?`, or nothing when no name is near: a sentence of its own. */
export function closestHint(name: string, names: readonly string[]): string {
  const closest = closestName(name, names)
  return closest === undefined ? '' : ` Did you mean "${closest}"?`
}

/** ` (did you mean "spider"?)`, or nothing when no name is near: to stand behind the name in an error. */
export function didYouMean(name: string, names: readonly string[]): string {
  const closest = closestName(name, names)
  return closest === undefined ? '' : ` (did you mean "${closest}"?)`
}
