import { contributionKeys, type Kit } from './plugin.js'
import type { Loaded } from './validate.js'

/** What is probably not as intended: a recommended apparatus that is not there, a contribution that no plugin reads. */
export function warningsAbout({ kits, apparatuses }: Pick<Loaded, 'kits' | 'apparatuses'>): string[] {
  const installed = new Set(apparatuses.map(({ id }) => id))
  const consumed = new Set(apparatuses.flatMap(({ apparatus }) => apparatus.consumes ?? []))
  const absent = (id: string, recommends: readonly string[] = []) =>
    recommends
      .filter((wished) => !installed.has(wished))
      .map((wished) => `"${id}" recommends "${wished}", which is not an installed apparatus.`)
  const unread = (id: string, kit: Kit = {}) =>
    contributionKeys(kit)
      .filter((key) => !consumed.has(key))
      .map((key) => `"${id}" contributes "${key}", which no installed apparatus consumes.`)
  return [
    ...apparatuses.flatMap(({ id, apparatus }) => absent(id, apparatus.recommends)),
    ...kits.flatMap(({ id, kit }) => absent(id, kit.recommends)),
    ...kits.flatMap(({ id, kit }) => unread(id, kit)),
    ...apparatuses.flatMap(({ id, apparatus }) => unread(id, apparatus.supportKit)),
  ]
}
