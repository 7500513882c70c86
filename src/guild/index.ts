/** The guild: one host for plugins, which are kits (what they contribute) or apparatuses (what they do). */
import type { GuildClient, GuildClientOptions } from './client/client.js'
import type { RunningGuild, StartGuildOptions, WritTypeSteps } from './facade/start-guild.js'

/**
 * Makes a guild of a few types of writs whose work is a list of steps, and starts it: in memory, or on the database of the backend
 * that it is given. It is the whole system, configured in one place: `host`, `clerk`, `spider`, `stacks` and `work` lead into it.
 *
 * @example
 * ```ts
 * await using shop = await startGuild({
 *   backend: sqliteBackend({ file: './shop.db' }),
 *   writTypes: { order: { steps: [charge, label, ship], retry: { maxRigs: 3 } } },
 * })
 * const writ = await shop.post('order', { orderId: 'o-17' })
 * console.log((await shop.ended(writ.id)).phase)
 * ```
 */
export async function startGuild<const Types extends Readonly<Record<string, WritTypeSteps>>>(
  options: StartGuildOptions<Types>,
): Promise<RunningGuild<Types>> {
  // Loaded when it is called: a process that only loads plugins, or only posts, need not load everything that runs work.
  const [{ startGuildOn }, { memoryBackend }, { overPlainPorts }] = await Promise.all([
    import('./facade/start-guild.js'),
    import('../backends/memory/index.js'),
    import('../backends/plain/over-plain-ports.js'),
  ])
  return startGuildOn({ memoryBackend, overPlainPorts }, options)
}

/**
 * Opens the documents of a guild for a process that only posts, edits, cancels and reads writs and answers questions, such as a web server. The workers
 * may be other processes, of other programs; what they have configured is read from the store.
 *
 * @example
 * ```ts
 * await using client = await guildClient({ stacks: { backend: 'postgres', connectionString } })
 * const writ = await client.post({ type: 'order', title: 'Order 17', body: JSON.stringify({ orderId: 17 }) })
 * ```
 */
export async function guildClient(options: GuildClientOptions): Promise<GuildClient> {
  return (await import('./client/client.js')).openGuildClient(options)
}

export type { GuildClient, GuildClientOptions } from './client/client.js'
export {
  ClientWatchersError,
  GuildNotStartedError,
  QuestionClosedError,
  QuestionNotFoundError,
  WrongPhaseError,
} from './client/errors.js'
export type { QuestionFilter } from './client/questions.js'
export type {
  InputOfType,
  PostOptions,
  RunningGuild,
  StartGuildOptions,
  WritTypeSteps,
} from './facade/start-guild.js'
export { defineStep, type Step, type StepContext, type StepOptions } from './facade/step.js'
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
