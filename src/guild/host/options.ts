import { OptionTypeError, optionsObject, stringOption } from '../../core/options.js'
import { callable, flag, optional, readOptions, text } from '../../core/read-options.js'
import { isObject } from '../../core/text/safe-read.js'
import { type Clock, clockFrom, type Random, systemClock } from '../../core/time/clock.js'
import type { GuildConfig } from './guild.js'
import type { PluginSource } from './plugin.js'

/** Options of `createGuild`. */
export interface GuildOptions {
  /** The folder of the guild. Default: the nearest folder, from the current one upwards, that holds `guild.json`. */
  readonly root?: string
  /** The configuration itself; then `guild.json` is neither read nor written. */
  readonly config?: GuildConfig
  /** Plugins besides those of the configuration, loaded after them. */
  readonly plugins?: readonly PluginSource[]
  /**
   * Whether a plugin that cannot be used fails the start. Default: only names that mean nothing do, of plugins and of sections of the
   * configuration; what cannot be used otherwise is left out and listed in `failedPlugins()`. `false`: nothing does.
   */
  readonly strict?: boolean
  /** Time for every plugin: a `Clock`, or a function that returns epoch ms. Default: the machine's. */
  readonly clock?: Clock | (() => number)
  /** Chance for every plugin: a number in `[0, 1)`. Default: `Math.random`. */
  readonly random?: Random
}

/** Checks what was given to `createGuild`: complete except for what is looked up on disk. */
export function resolveGuildOptions(options: GuildOptions | undefined) {
  return readOptions('createGuild()', options, {
    root: optional(text()),
    config: (path: string, config: unknown) => {
      if (config !== undefined) checkConfig(path, config)
      return config
    },
    plugins: (path: string, plugins: unknown = []): readonly PluginSource[] => {
      if (!Array.isArray(plugins)) throw new OptionTypeError(path, 'an array of plugins', plugins)
      for (const [i, source] of plugins.entries()) checkSource(`${path}[${i}]`, source)
      return [...plugins]
    },
    strict: optional(flag()),
    clock: (_: string, clock: unknown) => (clock === undefined ? systemClock : clockFrom(clock as Clock)),
    random: callable<Random>(Math.random),
  })
}

export type ResolvedGuildOptions = ReturnType<typeof resolveGuildOptions>

/** Refuses a configuration whose own keys are of the wrong type. `path` is how its reader knows it. */
export function checkConfig(path: string, config: unknown): asserts config is GuildConfig {
  if (!isObject(config) || Array.isArray(config)) throw new OptionTypeError(path, 'an object', config)
  const { name, plugins, officialScopes } = config as GuildConfig
  if (name !== undefined) stringOption(`${path}.name`, name)
  checkNames(`${path}.plugins`, plugins, 'an array of names of plugins', () => true)
  checkNames(`${path}.officialScopes`, officialScopes, 'an array of scopes like "@acme"', (scope) =>
    /^@[^/]+$/.test(scope),
  )
}

function checkNames(path: string, names: unknown, allowed: string, fits: (name: string) => boolean): void {
  if (names === undefined) return
  const isFine = Array.isArray(names) && names.every((name) => typeof name === 'string' && name !== '' && fits(name))
  if (!isFine) throw new OptionTypeError(path, allowed, names)
}

function checkSource(path: string, source: unknown): void {
  if (typeof source === 'string' && source !== '') return
  if (!isObject(source)) throw new OptionTypeError(path, 'the name of a package, or { package, plugin }', source)
  optionsObject(path, source as { package?: unknown; plugin?: unknown }, ['package', 'plugin'])
  stringOption(`${path}.package`, (source as { package?: unknown }).package)
}
