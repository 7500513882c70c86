import { defined } from '../../core/defined.js'
import {
  booleanOption,
  integerOption,
  OptionError,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import type { Clock } from '../../core/time/clock.js'
import { guild } from '../host/current.js'
import type { Apparatus } from '../host/plugin.js'
import type { Stacks, StacksOptions } from './api.js'
import type { StacksBackend } from './backend.js'
import type { BookSchema } from './documents/names.js'
import { memoryStacks } from './memory/backend.js'
import { postgresStacks } from './postgres/backend.js'
import { sqliteStacks } from './sqlite/backend.js'
import { openStacks } from './stacks.js'

/** Stacks' part of `guild.json`, under `stacks`. */
export interface StacksConfig {
  /** Where documents are kept. Default: `sqlite`. */
  readonly backend?: 'sqlite' | 'postgres' | 'memory'
  /** The file of `sqlite`; a relative path starts at the guild's directory. Default: `stacks.sqlite`. */
  readonly file?: string
  /** How much of the file each connection of `sqlite` keeps in memory, in MiB. Default: 8. */
  readonly cacheMiB?: number
  /** The address of `postgres`. */
  readonly connectionString?: string
  /** The schema of `postgres`. Default: `millrace`. */
  readonly schema?: string
  /** Whether tables, books and indexes are made at start. Default true. */
  readonly autoMigrate?: boolean
  /** How long a process keeps a durable watcher without renewing, after a crash. Default 10 000. */
  readonly watcherLeaseMs?: number
  /** What to do beside a process with other watchers inside its transactions: not to start, or to warn. Default: `refuse`. */
  readonly differentWatchers?: 'refuse' | 'allow'
}

/** What `createStacks` takes: a backend of your own instead of the one that `guild.json` names, and what its store reports to. */
export interface StacksApparatusOptions extends Omit<StacksOptions, 'home'> {
  readonly backend?: StacksBackend
}

/** A store for one guild. It makes the `books` that plugins contribute, and ends the registration of watchers when all started. */
export function createStacks(given: StacksApparatusOptions = {}): Apparatus {
  let stacks: Stacks | undefined
  return {
    consumes: ['books'],
    get provides() {
      return stacks
    },
    async start(ctx) {
      const { home } = guild()
      const config = checkedConfig(guild().config<StacksConfig>('stacks'))
      const { backend = backendOf(config, ctx.clock), ...options } = given
      const { watcherLeaseMs, differentWatchers } = config
      const opened = await openStacks({
        ...defined({ watcherLeaseMs, differentWatchers }),
        ...options,
        backend,
        home,
        clock: ctx.clock,
        random: ctx.random,
      })
      try {
        if (config.autoMigrate !== false)
          for (const { pluginId, packageName, value } of ctx.kits('books'))
            await opened.declare(pluginId, booksOf(packageName, value))
      } catch (error) {
        // The host does not stop what has not started.
        await opened.close()
        throw error
      }
      stacks = opened
      ctx.on('phase:started', () => opened.seal({ deliver: false }))
      // Handlers are of plugins, which may still be at work in their own `phase:started`.
      ctx.on('guild:ready', () => opened.deliver())
      // And they cannot do their work once their plugin has stopped: events left by then are delivered after the next start.
      ctx.on('guild:shutdown', () => void opened.rest().catch(() => undefined))
      ctx.on('guild:stopping', () => opened.rest())
    },
    async stop() {
      await stacks?.close()
    },
  }
}

export function checkedConfig(given: StacksConfig): StacksConfig {
  const names = [
    'backend',
    'file',
    'cacheMiB',
    'connectionString',
    'schema',
    'autoMigrate',
    'watcherLeaseMs',
    'differentWatchers',
  ] as const
  const config = optionsObject('guild.json stacks', given, names)
  const backend = oneOfOption('stacks.backend', config.backend, ['sqlite', 'postgres', 'memory'], 'sqlite')
  checkOptionsOf(backend, config)
  booleanOption('stacks.autoMigrate', config.autoMigrate, true)
  integerOption('stacks.watcherLeaseMs', config.watcherLeaseMs, { min: 100, default: 10_000 })
  oneOfOption('stacks.differentWatchers', config.differentWatchers, ['refuse', 'allow'], 'refuse')
  return config
}

/** Which options each backend reads. */
const OPTIONS_OF = {
  sqlite: ['file', 'cacheMiB'],
  postgres: ['connectionString', 'schema'],
  memory: [],
} as const satisfies Record<NonNullable<StacksConfig['backend']>, readonly (keyof StacksConfig)[]>

/** An option of another backend means that the wrong backend is configured: the documents would be kept in the wrong place. */
function checkOptionsOf(backend: keyof typeof OPTIONS_OF, config: StacksConfig): void {
  for (const [owner, names] of Object.entries(OPTIONS_OF)) {
    const strange = owner === backend ? undefined : names.find((name) => config[name] !== undefined)
    if (strange === undefined) continue
    const isGiven = config.backend === undefined ? 'the default' : 'given'
    throw new OptionError(
      `stacks.${strange}`,
      `absent: it is an option of ${owner}, and the backend is ${backend} (${isGiven}). Set stacks.backend, or remove it`,
      // An address may hold a password.
      strange === 'connectionString' ? '(an address)' : config[strange],
    )
  }
}

export function backendOf(config: StacksConfig, clock: Clock): StacksBackend {
  const { backend = 'sqlite', file, cacheMiB, connectionString, schema, autoMigrate = true } = config
  switch (backend) {
    case 'memory':
      return memoryStacks({ clock })
    case 'sqlite':
      return sqliteStacks({ ...defined({ file, cacheMiB }), migrate: autoMigrate, clock })
    case 'postgres':
      return postgresStacks({
        connectionString: stringOption('stacks.connectionString', connectionString),
        ...defined({ schema }),
        migrate: autoMigrate,
        clock,
      })
  }
}

function booksOf(packageName: string, value: unknown): Record<string, BookSchema> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, BookSchema>
  throw new OptionTypeError(`books of ${packageName}`, 'an object of { name: { indexes? } }', value)
}
