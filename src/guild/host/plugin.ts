import { isObject } from '../../core/text/safe-read.js'
import type { Clock, Random } from '../../core/time/clock.js'

/**
 * A passive plugin: an open record of contributions, such as `engines` or `books`. The host never looks into them; the plugin that
 * `consumes` a key does. Only `requires` and `recommends` mean something to the host.
 */
export interface Kit {
  /** Apparatuses without which the kit is of no use. */
  readonly requires?: readonly string[]
  /** Apparatuses that make it more useful; their absence is a warning. */
  readonly recommends?: readonly string[]
  readonly [contribution: string]: unknown
}

/** An active plugin: it is started and stopped with the guild, and may offer an API and its own contributions. */
export interface Apparatus {
  /** Plugins that must be there, and apparatuses among them that are started first. Missing: this one does not start. */
  readonly requires?: readonly string[]
  /** Apparatuses that are used when they are there. They start first when that makes no cycle; missing is a warning. */
  readonly recommends?: readonly string[]
  /** Keys of contributions that it reads with `ctx.kits(key)`. A contribution that no plugin consumes is a warning. */
  readonly consumes?: readonly string[]
  /** What `guild().apparatus(id)` returns. May be a getter that has nothing before `start` has run. */
  readonly provides?: unknown
  /** Its own contributions, like those of a kit. */
  readonly supportKit?: Kit
  start(ctx: StartupContext): void | Promise<void>
  stop?(): void | Promise<void>
}

/**
 * What a plugin package exports as its default. An apparatus with state makes `apparatus` a getter that returns a new one:
 * the host reads it once for each guild, so two guilds in one process share nothing.
 */
export type Plugin = { readonly kit: Kit } | { readonly apparatus: Apparatus }

/**
 * Where a plugin comes from: the name of its package (or its id, when the guild's package.json declares the package), or the
 * plugin itself with the name that gives it its id.
 */
export type PluginSource = string | { readonly package: string; readonly plugin: Plugin }

/** What `start` is given. Keep it: it stays valid for the life of the guild. */
export interface StartupContext {
  /**
   * Subscribes to an event of the guild: `apparatus:started` (with the `LoadedApparatus`), `phase:started` once all have
   * started, `guild:ready` once every handler of that has ended, `guild:shutdown`, and `guild:stopping` just before the first
   * apparatus is stopped, also when a start failed. Handlers are awaited one by one; one that throws during startup fails it.
   */
  on(event: string, handler: LifecycleHandler): void
  /** Every contribution under this key, of kits in load order and then of apparatuses in start order. Complete from the start. */
  kits(type: string): KitEntry[]
  /** The guild's time: use it for every reading and every timer. */
  readonly clock: Clock
  /** The guild's chance. */
  readonly random: Random
}

/** A handler of a lifecycle event. */
export type LifecycleHandler = (...args: never[]) => void | Promise<void>

/** One contribution: the plugin that made it, its key and its value. */
export interface KitEntry {
  readonly pluginId: string
  readonly packageName: string
  readonly type: string
  readonly value: unknown
}

/** A kit that has been loaded. */
export interface LoadedKit {
  readonly id: string
  readonly packageName: string
  readonly kit: Kit
}

/** An apparatus that has been loaded. */
export interface LoadedApparatus {
  readonly id: string
  readonly packageName: string
  readonly apparatus: Apparatus
}

/** A plugin that did not make it, and why. */
export interface PluginFailure {
  readonly id: string
  readonly reason: string
}

/** What a value is, read once: `apparatus` may be a getter that makes a new one each time. */
export type PluginShape =
  | { readonly kind: 'kit'; readonly kit: Kit }
  | { readonly kind: 'apparatus'; readonly apparatus: Apparatus }
  | { readonly kind: 'neither'; readonly reason: string }

/** Whether it is an apparatus or a kit; an apparatus wins. A malformed list of names makes it neither. */
export function shapeOf(value: unknown): PluginShape {
  if (!isObject(value)) return neither('its default export is neither { kit } nor { apparatus }')
  const { apparatus, kit } = value as { readonly apparatus?: unknown; readonly kit?: unknown }
  if (isApparatus(apparatus)) {
    const badList = badListIn(apparatus, ['requires', 'recommends', 'consumes'])
    if (badList !== undefined) return neither(`apparatus.${badList} must be an array of non-empty strings`)
    const { supportKit } = apparatus
    if (supportKit !== undefined && !isPlainKit(supportKit)) return neither('apparatus.supportKit must be an object')
    return { kind: 'apparatus', apparatus }
  }
  if (isPlainKit(kit)) {
    const badList = badListIn(kit, ['requires', 'recommends'])
    return badList === undefined
      ? { kind: 'kit', kit }
      : neither(`kit.${badList} must be an array of non-empty strings`)
  }
  return neither(
    isObject(apparatus)
      ? 'its apparatus has no function "start"'
      : 'its default export is neither { kit } nor { apparatus }',
  )
}

/** Keys of a kit that are not contributions. */
const RESERVED_KIT_KEYS: readonly string[] = ['requires', 'recommends']

/** The keys under which a kit contributes something. */
export function contributionKeys(kit: Kit): string[] {
  return Object.keys(kit).filter((key) => !RESERVED_KIT_KEYS.includes(key))
}

function isApparatus(value: unknown): value is Apparatus {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Apparatus>).start === 'function'
}

function isPlainKit(value: unknown): value is Kit {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function badListIn<K extends string>(value: { readonly [key in K]?: unknown }, keys: readonly K[]): K | undefined {
  return keys.find((key) => {
    const list = value[key]
    return list !== undefined && !(Array.isArray(list) && list.every((id) => typeof id === 'string' && id !== ''))
  })
}

const neither = (reason: string): PluginShape => ({ kind: 'neither', reason })
