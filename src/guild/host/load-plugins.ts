import { didYouMean } from '../../core/text/did-you-mean.js'
import { DuplicatePluginError } from './errors.js'
import { type GuildConfig, HOST_CONFIG_KEYS } from './guild.js'
import { loadPackage } from './load-package.js'
import { type LoadedApparatus, type LoadedKit, type PluginFailure, type PluginSource, shapeOf } from './plugin.js'
import { BUILT_IN_IDS, DEFAULT_OFFICIAL_SCOPES, packageNamed, pluginIdOf } from './plugin-id.js'
import { declaredDependencies } from './resolve-package.js'
import type { Loaded } from './validate.js'

/** What was loaded, with what people should know about it. */
export interface LoadedPlugins extends Loaded {
  readonly warnings: readonly string[]
  /** Those of the failures that are names of no package. */
  readonly missing: readonly PluginFailure[]
}

/**
 * Loads every plugin, in order. One that cannot be loaded is left out with a warning and a reason; two with one id are an
 * error, because it would not be clear whose API, books and configuration it names.
 */
export async function loadPlugins(
  home: string,
  config: GuildConfig,
  inline: readonly PluginSource[],
): Promise<LoadedPlugins> {
  const scopes = config.officialScopes ?? DEFAULT_OFFICIAL_SCOPES
  const dependencies = declaredDependencies(home)
  const kits: LoadedKit[] = []
  const apparatuses: LoadedApparatus[] = []
  const failures: PluginFailure[] = []
  const warnings: string[] = []
  const packages = new Map<string, string>()
  const missing = new Set<string>()

  for (const source of [...(config.plugins ?? []), ...inline]) {
    const named =
      typeof source === 'string' ? packageNamed(source, dependencies, scopes) : { packageName: source.package }
    if (named.warning !== undefined) warnings.push(named.warning)
    const { packageName } = named
    const id = pluginIdOf(packageName, scopes)
    const fail = (reason: string) => {
      failures.push({ id, reason })
      warnings.push(`The plugin "${packageName}" was left out: it ${reason}.`)
    }
    if (HOST_CONFIG_KEYS.includes(id)) {
      fail(`would have the id "${id}", which is a key of guild.json itself`)
      continue
    }
    const loaded =
      typeof source === 'string'
        ? await loadPackage(packageName, home)
        : ({ kind: 'loaded', value: source.plugin } as const)
    if (loaded.kind === 'missing') missing.add(id)
    if (loaded.kind !== 'loaded') {
      const hint = loaded.kind === 'missing' ? didYouMean(packageName, [...BUILT_IN_IDS, ...dependencies]) : ''
      fail(`${loaded.reason}${hint}`)
      continue
    }
    const shape = shapeOf(loaded.value)
    if (shape.kind === 'neither') {
      fail(`is not a plugin: ${shape.reason}`)
      continue
    }
    const first = packages.get(id)
    if (first !== undefined) throw new DuplicatePluginError(id, first, packageName)
    packages.set(id, packageName)
    if (shape.kind === 'kit') kits.push(Object.freeze({ id, packageName, kit: shape.kit }))
    else apparatuses.push(Object.freeze({ id, packageName, apparatus: shape.apparatus }))
  }
  // A name that failed once and was loaded under another package is there after all.
  const left = failures.filter(({ id }) => !packages.has(id))
  return { kits, apparatuses, failures: left, missing: left.filter(({ id }) => missing.has(id)), warnings }
}
