import { resolve } from 'node:path'
import { OptionTypeError, stringOption } from '../../core/options.js'
import { isObject, peek } from '../../core/text/safe-read.js'
import { type ConfigKeeper, configOnDisk, findRoot, inlineConfig } from './config-file.js'
import { clearGuildIf, runWithGuild, setGuild } from './current.js'
import { NoApparatusError, PluginsFailedError, ShutdownError, type StopFailure } from './errors.js'
import { type GuildConfig, HOST_CONFIG_KEYS, type StartedGuild } from './guild.js'
import { checkSections } from './known-names.js'
import { Lifecycle } from './lifecycle.js'
import { type LoadedPlugins, loadPlugins } from './load-plugins.js'
import { type GuildOptions, type ResolvedGuildOptions, resolveGuildOptions } from './options.js'
import type { KitEntry, LoadedApparatus, LoadedKit, PluginFailure, StartupContext } from './plugin.js'
import { startOrder } from './start-order.js'
import { type Loaded, validated } from './validate.js'
import { warningsAbout } from './warnings.js'
import { kitEntries } from './wire.js'

/**
 * Loads the plugins of a guild and starts them, what is required first. A plugin that cannot be used is left out and listed
 * in `failedPlugins()`; with `strict` it is an error. A name in the configuration that means nothing, of a plugin or a section, is
 * an error unless `strict` is false. If a start fails, what had started is stopped again and the error is
 * thrown.
 *
 * @example
 * ```ts
 * const g = await createGuild({ config: { plugins: ['stacks', 'clerk'] } })
 * const clerk = g.apparatus<ClerkApi>('clerk')
 * await g.shutdown()
 * ```
 */
export async function createGuild(options?: GuildOptions): Promise<StartedGuild> {
  const resolved = resolveGuildOptions(options)
  const { home, config } = whereabouts(resolved)
  const loaded = await loadPlugins(home, config.current, resolved.plugins)
  const usable = validated(loaded)
  const { missing, kits, apparatuses, failures } = loaded
  if (resolved.strict === undefined && missing.length > 0) throw new PluginsFailedError(missing)
  if (resolved.strict === true && usable.failures.length > 0) throw new PluginsFailedError(usable.failures)
  const ids = new Set([...kits, ...apparatuses, ...failures].map(({ id }) => id))
  const ignored = resolved.strict === false ? [] : checkSections(config.path, config.current, ids)
  const warnings = [...loaded.warnings, ...ignored]
  const host = new Host(home, config, { ...loaded, warnings }, usable, resolved)
  await host.start()
  return host
}

function whereabouts({ root, config, plugins }: ResolvedGuildOptions): { home: string; config: ConfigKeeper } {
  const isInline = config !== undefined || plugins.length > 0
  if (config !== undefined || (root === undefined && isInline)) {
    return { home: resolve(root ?? process.cwd()), config: inlineConfig(config ?? {}) }
  }
  const home = root === undefined ? findRoot(process.cwd()) : resolve(root)
  return { home, config: configOnDisk(home, { mayBeMissing: isInline }) }
}

/** A guild and its life. */
class Host implements StartedGuild {
  readonly home: string
  readonly #config: ConfigKeeper
  readonly #kits: readonly LoadedKit[]
  readonly #inOrder: readonly LoadedApparatus[]
  readonly #failures: readonly PluginFailure[]
  readonly #warnings: readonly string[]
  readonly #entries: readonly KitEntry[]
  readonly #time: Pick<StartupContext, 'clock' | 'random'>
  readonly #lifecycle = new Lifecycle()
  readonly #provided = new Map<string, unknown>()
  #started: LoadedApparatus[] = []
  #isShut = false

  constructor(
    home: string,
    config: ConfigKeeper,
    loaded: LoadedPlugins,
    usable: Loaded,
    { clock, random }: Pick<StartupContext, 'clock' | 'random'>,
  ) {
    this.home = home
    this.#config = config
    this.#kits = usable.kits
    this.#inOrder = startOrder(usable.apparatuses)
    this.#failures = usable.failures
    this.#warnings = [...loaded.warnings, ...warningsAbout(usable)]
    this.#entries = kitEntries(this.#kits, this.#inOrder)
    this.#time = { clock, random }
  }

  async start(): Promise<void> {
    setGuild(this)
    try {
      await runWithGuild(this, async () => {
        for (const loaded of this.#inOrder) await this.#startOne(loaded)
        await this.#lifecycle.fire('phase:started')
        await this.#lifecycle.fire('guild:ready')
      })
    } catch (error) {
      this.#isShut = true
      const failures = [...(await this.#quieten('guild:stopping')), ...(await this.#stopAll())]
      clearGuildIf(this)
      throw withSuppressed(error, failures)
    }
  }

  async shutdown(): Promise<void> {
    if (this.#isShut) return
    this.#isShut = true
    const failures = [
      ...(await this.#quieten('guild:shutdown')),
      ...(await this.#quieten('guild:stopping')),
      ...(await this.#stopAll()),
    ]
    clearGuildIf(this)
    if (failures.length > 0) throw new ShutdownError(failures)
  }

  apparatus<T>(id: string): T {
    if (!this.#provided.has(id)) throw new NoApparatusError(id, this.#whyNot(id))
    return this.#provided.get(id) as T // What an apparatus provides is known to its author and its user, not to the host.
  }

  tryApparatus<T>(id: string): T | null {
    return this.#provided.has(id) ? (this.#provided.get(id) as T) : null
  }

  config<T>(pluginId: string): T {
    return (this.#config.current[pluginId] ?? {}) as T // A cast by contract: the author of the plugin knows what it reads.
  }

  writeConfig<T>(pluginId: string, value: T): void {
    stringOption('writeConfig(pluginId)', pluginId)
    if (HOST_CONFIG_KEYS.includes(pluginId)) {
      throw new OptionTypeError('writeConfig(pluginId)', 'the id of a plugin, not a key of the host', pluginId)
    }
    this.#config.write(pluginId, asJson(value))
  }

  guildConfig(): GuildConfig {
    return { ...this.#config.current }
  }

  kits(): LoadedKit[] {
    return [...this.#kits]
  }

  apparatuses(): LoadedApparatus[] {
    return [...this.#started]
  }

  failedPlugins(): PluginFailure[] {
    return this.#failures.map((failure) => ({ ...failure }))
  }

  startupWarnings(): string[] {
    return [...this.#warnings]
  }

  async #startOne(loaded: LoadedApparatus): Promise<void> {
    const { id, apparatus } = loaded
    // A getter may well fail before `start`; its value afterwards counts.
    const early = peek(apparatus, 'provides')
    if (early !== undefined) this.#provided.set(id, early)
    try {
      await apparatus.start(this.#contextFor(id))
    } catch (error) {
      this.#provided.delete(id)
      throw error
    }
    // From here on it has to be stopped, whatever comes.
    this.#started.push(loaded)
    const late = apparatus.provides
    if (late !== undefined) this.#provided.set(id, late)
    await this.#lifecycle.fire('apparatus:started', loaded)
  }

  #contextFor(id: string): StartupContext {
    return Object.freeze({
      ...this.#time,
      on: (event, handler) => {
        stringOption('ctx.on(event)', event)
        if (typeof handler !== 'function') throw new OptionTypeError('ctx.on(handler)', 'a function', handler)
        this.#lifecycle.on(id, event, handler)
      },
      kits: (type) => this.#entries.filter((entry) => entry.type === type),
    } satisfies StartupContext)
  }

  #quieten(event: 'guild:shutdown' | 'guild:stopping'): Promise<StopFailure[]> {
    return runWithGuild(this, () => this.#lifecycle.fireAll(event))
  }

  /** Stops what has started, the last first, whatever one of them does; an apparatus that was stopped is not there any more. */
  async #stopAll(): Promise<StopFailure[]> {
    const failures: StopFailure[] = []
    for (const { id, apparatus } of this.#started.toReversed()) {
      try {
        await runWithGuild(this, () => apparatus.stop?.())
      } catch (error) {
        failures.push({ id, error })
      }
      this.#provided.delete(id)
      this.#started = this.#started.filter((started) => started.id !== id)
    }
    return failures
  }

  #whyNot(id: string): string {
    const failure = this.#failures.find((failed) => failed.id === id)
    if (failure !== undefined) return `it ${failure.reason}`
    if (this.#kits.some((kit) => kit.id === id)) return 'it is a kit, which has none'
    if (this.#started.some((started) => started.id === id)) return 'it has started, but provides none'
    if (!this.#inOrder.some((loaded) => loaded.id === id)) return 'no such plugin is loaded. List it among the plugins'
    return this.#isShut ? 'it has been stopped' : 'it has not started yet. Name it in "requires" to be started after it'
  }
}

/** What a configuration value looks like once it has been on disk. */
function asJson(value: unknown): unknown {
  if (value === undefined) return undefined
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch {
    text = undefined // A cycle or a bigint: reported below.
  }
  if (text === undefined) throw new OptionTypeError('writeConfig(value)', 'a value that JSON can hold', value)
  return JSON.parse(text)
}

/** The error itself, carrying what went wrong while its traces were removed. */
function withSuppressed(error: unknown, failures: readonly StopFailure[]): unknown {
  if (failures.length > 0 && isObject(error) && Object.isExtensible(error)) {
    Object.defineProperty(error, 'suppressed', { value: failures, configurable: true, writable: true })
  }
  return error
}
