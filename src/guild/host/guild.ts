import type { LoadedApparatus, LoadedKit, PluginFailure } from './plugin.js'

/** The contents of `guild.json`. Every other key is the id of a plugin, with its configuration. */
export interface GuildConfig {
  /** What people call this guild. */
  readonly name?: string
  /** Plugins to load, in this order: names of packages, or ids of declared dependencies and built-in plugins. */
  readonly plugins?: readonly string[]
  /** Scopes that leave no trace in a plugin's id. Default: `@millrace`. */
  readonly officialScopes?: readonly string[]
  readonly [pluginId: string]: unknown
}

/** Keys of `guild.json` that belong to the host: no plugin may have one as its id. */
export const HOST_CONFIG_KEYS: readonly string[] = ['name', 'plugins', 'officialScopes']

/** One running host: its configuration, its plugins, and the way from one to another. */
export interface Guild {
  /** The folder of the guild. */
  readonly home: string
  /** The API of a started apparatus. Throws an error with the reason when there is none. */
  apparatus<T>(id: string): T
  /** The same for a soft dependency: `null` instead of an error. */
  tryApparatus<T>(id: string): T | null
  /** The plugin's configuration: what `guild.json` has under its id, or `{}`. It is not checked against `T`. */
  config<T>(pluginId: string): T
  /** Replaces a plugin's configuration, here and in `guild.json` when the guild was read from it. */
  writeConfig<T>(pluginId: string, value: T): void
  /** The whole configuration. */
  guildConfig(): GuildConfig
  /** The kits that are in use, in load order. */
  kits(): LoadedKit[]
  /** The apparatuses that have started, in that order. */
  apparatuses(): LoadedApparatus[]
  /** Plugins that were left out, each with the first thing that was wrong. */
  failedPlugins(): PluginFailure[]
  /** What is probably not as intended, though the guild runs. */
  startupWarnings(): string[]
}

/** A guild as its maker holds it. */
export interface StartedGuild extends Guild {
  /**
   * Stops every apparatus, the last started first. All are stopped even if one fails; what failed is thrown together. A
   * second call returns immediately.
   */
  shutdown(): Promise<void>
}
