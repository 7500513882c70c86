import { didYouMean } from '../../core/text/did-you-mean.js'
import { GuildConfigError } from './errors.js'
import { type GuildConfig, HOST_CONFIG_KEYS } from './guild.js'
import { BUILT_IN_IDS } from './plugin-id.js'

/**
 * Refuses a section of the configuration that no plugin reads: it is nearly always a slip of the keyboard, and what it says would
 * be ignored. A section of a built-in plugin that is not listed is only a warning, since processes of one guild may load different
 * plugins with one configuration. Returns the warnings.
 */
export function checkSections(path: string, config: GuildConfig, pluginIds: ReadonlySet<string>): string[] {
  const sections = Object.keys(config).filter((key) => !HOST_CONFIG_KEYS.includes(key) && !pluginIds.has(key))
  const unknown = sections.find((key) => !BUILT_IN_IDS.includes(key))
  if (unknown !== undefined) {
    const names = [...new Set([...HOST_CONFIG_KEYS, ...pluginIds, ...BUILT_IN_IDS])]
    throw new GuildConfigError(
      path,
      `"${unknown}" is the id of no plugin that is loaded${didYouMean(unknown, names)}, so nothing reads that section. ` +
        'Correct it, list its plugin under "plugins", or remove it. (createGuild({ strict: false }) ignores it.)',
    )
  }
  return sections.map((key) => `"${key}" is configured and not loaded. List it under "plugins", or remove its section.`)
}
