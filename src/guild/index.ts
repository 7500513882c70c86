/** The guild: one host for plugins, which are kits (what they contribute) or apparatuses (what they do). */
export { createGuild } from './host/create-guild.js'
export { clearGuild, guild, runWithGuild, setGuild } from './host/current.js'
export {
  ConfigChangedError,
  DuplicatePluginError,
  GuildConfigError,
  NoApparatusError,
  NoGuildError,
  PluginsFailedError,
  ShutdownError,
  type StopFailure,
} from './host/errors.js'
export type { Guild, GuildConfig, StartedGuild } from './host/guild.js'
export type { GuildOptions } from './host/options.js'
export type {
  Apparatus,
  Kit,
  KitEntry,
  LifecycleHandler,
  LoadedApparatus,
  LoadedKit,
  Plugin,
  PluginFailure,
  PluginSource,
  StartupContext,
} from './host/plugin.js'
export { pluginIdOf } from './host/plugin-id.js'
