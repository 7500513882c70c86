import { OptionTypeError } from '../../core/options.js'
import { integer, optional, readOptions } from '../../core/read-options.js'
import { isObject } from '../../core/text/safe-read.js'
import type { EngineRetry } from '../fabricator/engine-design.js'
import type { RigTemplate } from './rigs/templates.js'

/** Spider's part of `guild.json`, under `spider`. */
export interface SpiderConfig {
  /** Templates by name. */
  readonly rigTemplates?: Readonly<Record<string, RigTemplate>>
  /** Writ type → name of its template. A type without one is never dispatched. */
  readonly rigTemplateMappings?: Readonly<Record<string, string>>
  /** What `${vars.…}` sees. */
  readonly variables?: Readonly<Record<string, unknown>>
  /** How many engines run at the same time, over all processes of the guild. Default: 3. */
  readonly maxConcurrentEngines?: number
  /**
   * How many of these may be engines that launch sessions, which hold their places for as long as the sessions take. Default: as many
   * as `maxConcurrentEngines`.
   */
  readonly maxConcurrentSessions?: number
  /** How many of one rig. Default: 1. */
  readonly maxConcurrentEnginesPerRig?: number
  /** How large grafts may make a rig. Default: 50. */
  readonly maxEnginesPerRig?: number
  /** The longest that `start` waits before it polls: the fallback for missed wake-ups. Default: 5000. */
  readonly pollIntervalMs?: number
  /** How long `crawl()` may run an engine without renewing its claim before another process takes over. Default: 30 000. */
  readonly engineLeaseMs?: number
  /** Kinds of links that hold a writ back until its target has ended. Default: `spider.follows`. */
  readonly gateKinds?: readonly string[]
  /** Where sessions are found. Default: `animator` / `sessions`; the owner is also the apparatus that cancels them. */
  readonly sessions?: { readonly ownerId: string; readonly book: string }
  /** In-rig retry by design id; it wins over what the design says. */
  readonly engineRetryOverrides?: Readonly<Record<string, EngineRetry>>
}

/** The configuration with nothing left open. */
export type ResolvedSpiderConfig = Readonly<Required<SpiderConfig>>

/** Checks the configuration and fills in what it leaves out. */
export function resolveSpiderConfig(given: SpiderConfig): ResolvedSpiderConfig {
  const config = readOptions('guild.json.spider', given, {
    rigTemplates: record<RigTemplate>,
    rigTemplateMappings: record<string>,
    variables: record<unknown>,
    maxConcurrentEngines: integer({ min: 1, default: 3 }),
    maxConcurrentSessions: optional(integer({ min: 1 })),
    maxConcurrentEnginesPerRig: integer({ min: 1, default: 1 }),
    maxEnginesPerRig: integer({ min: 1, default: 50 }),
    pollIntervalMs: integer({ min: 10, default: 5000 }),
    engineLeaseMs: integer({ min: 100, default: 30_000 }),
    gateKinds: (path: string, kinds: unknown = ['spider.follows']) => {
      if (Array.isArray(kinds) && kinds.every((kind) => typeof kind === 'string' && kind !== ''))
        return kinds as string[]
      throw new OptionTypeError(path, 'a list of link kinds', kinds)
    },
    sessions: (path: string, sessions: unknown = { ownerId: 'animator', book: 'sessions' }) => {
      const { ownerId, book } = Object(sessions) as Record<string, unknown>
      if (typeof ownerId === 'string' && typeof book === 'string') return { ownerId, book }
      throw new OptionTypeError(path, 'an object { ownerId, book }', sessions)
    },
    engineRetryOverrides: record<EngineRetry>,
  })
  return Object.freeze({
    ...config,
    maxConcurrentSessions: config.maxConcurrentSessions ?? config.maxConcurrentEngines,
  })
}

function record<T>(path: string, value: unknown = {}): Readonly<Record<string, T>> {
  if (isObject(value) && !Array.isArray(value)) return value as Readonly<Record<string, T>>
  throw new OptionTypeError(path, 'an object', value)
}
