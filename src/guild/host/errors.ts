import { MillraceError, type WithCause } from '../../core/error.js'
import type { PluginFailure } from './plugin.js'

/** A call needs a guild, and there is none. */
export class NoGuildError extends MillraceError {
  constructor() {
    super(
      'NO_GUILD',
      'There is no guild yet. Call guild() inside start(), a handler or a request, never at the top level of a module: ' +
        'it is set by createGuild(), and cleared by shutdown(). With several guilds in one process use runWithGuild().',
    )
  }
}

/** `apparatus(id)` has nothing to return. */
export class NoApparatusError extends MillraceError {
  constructor(id: string, reason: string) {
    super('NO_APPARATUS', `There is no API of "${id}": ${reason}.`, { facts: { id } })
  }
}

/** `guild.json` is missing or cannot be used. */
export class GuildConfigError extends MillraceError {
  constructor(path: string, problem: string, options: WithCause = {}) {
    super('BAD_GUILD_CONFIG', `${path}: ${problem}`, { ...options, facts: { path } })
  }
}

/** Another process changed the same part of `guild.json` since it was read. */
export class ConfigChangedError extends MillraceError {
  constructor(path: string, pluginId: string) {
    super(
      'CONFIG_CHANGED',
      `${path}: the configuration of "${pluginId}" was changed since it was read, so it was not ` +
        'overwritten. Start the guild again, or repeat the change on what is there now.',
      { facts: { path, pluginId } },
    )
  }
}

/** Two plugins have one id. */
export class DuplicatePluginError extends MillraceError {
  constructor(id: string, first: string, second: string) {
    super(
      'DUPLICATE_PLUGIN',
      first === second
        ? `The plugin "${first}" is listed twice. List it once.`
        : `The plugins "${first}" and "${second}" both have the id "${id}". Remove one of them.`,
      { facts: { id, first, second } },
    )
  }
}

/** A strict guild does not start without all of its plugins. */
export class PluginsFailedError extends MillraceError {
  readonly failures: readonly PluginFailure[]
  constructor(failures: readonly PluginFailure[]) {
    const reasons = failures.map(({ id, reason }) => `"${id}" ${reason}`)
    super('PLUGINS_FAILED', `${failures.length} of the plugins cannot be used: ${reasons.join('; ')}.`, {
      facts: { ids: failures.map(({ id }) => id).join(', ') },
    })
    this.failures = failures
  }
}

/** One of the errors of a shutdown: which apparatus, and what it threw. */
export interface StopFailure {
  readonly id: string
  readonly error: unknown
}

/** Some apparatuses could not be stopped cleanly; all others were. */
export class ShutdownError extends MillraceError {
  readonly failures: readonly StopFailure[]
  constructor(failures: readonly StopFailure[]) {
    const parts = failures.map(({ id, error }) => `"${id}": ${error instanceof Error ? error.message : String(error)}`)
    super('SHUTDOWN_FAILED', `The guild is shut down, but not everything stopped cleanly. ${parts.join('; ')}`, {
      cause: failures[0]?.error,
      facts: { ids: failures.map(({ id }) => id).join(', ') },
    })
    this.failures = failures
  }
}
