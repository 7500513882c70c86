/** The package that this file belongs to; its doors under `guild/` are plugins, too. */
const OWN_PACKAGE = 'millrace'
const BUILT_IN_PREFIX = `${OWN_PACKAGE}/guild/`

/** Scopes whose packages need no prefix in their id. */
export const DEFAULT_OFFICIAL_SCOPES: readonly string[] = ['@millrace']

/** Plugins that come with the package, by their ids. The host knows their names only, and imports none of them. */
export const BUILT_IN_IDS: readonly string[] = ['stacks', 'clerk', 'fabricator', 'spider', 'clockworks-retry']

/** Whether the name is a door of this very package. */
export function isOwnDoor(packageName: string): boolean {
  return packageName === OWN_PACKAGE || packageName.startsWith(`${OWN_PACKAGE}/`)
}

/**
 * The id of a plugin, from the name of its package: the official scope goes, another scope stays without its `@`, and one
 * trailing `-plugin`, `-apparatus` or `-kit` goes. A built-in plugin has the last part of its door.
 *
 * @example
 * ```ts
 * pluginIdOf('@acme/cache-apparatus') // 'acme/cache'
 * pluginIdOf('millrace/guild/stacks') // 'stacks'
 * ```
 */
export function pluginIdOf(packageName: string, officialScopes: readonly string[] = DEFAULT_OFFICIAL_SCOPES): string {
  if (packageName.startsWith(BUILT_IN_PREFIX)) return packageName.slice(packageName.lastIndexOf('/') + 1)
  const scope = officialScopes.find((candidate) => packageName.startsWith(`${candidate}/`))
  const name = scope === undefined ? packageName.replace(/^@/, '') : packageName.slice(scope.length + 1)
  const stem = name.replace(/-(?:plugin|apparatus|kit)$/, '')
  // A name that is nothing but a suffix keeps it: an empty id names no plugin.
  return stem === '' || stem.endsWith('/') ? name : stem
}

/** What a configured name means, and a warning where it could mean several. */
export interface NamedPackage {
  readonly packageName: string
  readonly warning?: string
}

/**
 * The package behind a name in the configuration. It may be the package's own name or the plugin's id, which is looked up
 * among the guild's declared dependencies and the built-in plugins. The official scope wins, then what is built in.
 */
export function packageNamed(
  name: string,
  dependencies: readonly string[],
  officialScopes: readonly string[] = DEFAULT_OFFICIAL_SCOPES,
): NamedPackage {
  if (dependencies.includes(name) || isOwnDoor(name)) return { packageName: name }
  const declared = dependencies.filter((dependency) => pluginIdOf(dependency, officialScopes) === name)
  const isOfficial = (dependency: string) => officialScopes.some((scope) => dependency.startsWith(`${scope}/`))
  const candidates = [
    ...declared.filter(isOfficial),
    ...(BUILT_IN_IDS.includes(name) ? [`${BUILT_IN_PREFIX}${name}`] : []),
    ...declared.filter((dependency) => !isOfficial(dependency)),
  ]
  const [chosen, ...others] = candidates
  if (chosen === undefined) return { packageName: name }
  if (others.length === 0) return { packageName: chosen }
  return {
    packageName: chosen,
    warning: `"${name}" could be ${candidates.map((candidate) => `"${candidate}"`).join(' or ')}; taking "${chosen}". Write the package's name to choose another.`,
  }
}
