import { integerOption, OptionTypeError, optionsObject } from '../../core/options.js'
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

const NAMES = [
  'rigTemplates',
  'rigTemplateMappings',
  'variables',
  'maxConcurrentEngines',
  'maxConcurrentSessions',
  'maxConcurrentEnginesPerRig',
  'maxEnginesPerRig',
  'pollIntervalMs',
  'engineLeaseMs',
  'gateKinds',
  'sessions',
  'engineRetryOverrides',
] as const satisfies readonly (keyof SpiderConfig)[]

/** The configuration with nothing left open. */
export type ResolvedSpiderConfig = Readonly<Required<SpiderConfig>>

/** Checks the configuration and fills in what it leaves out. */
export function resolveSpiderConfig(given: SpiderConfig): ResolvedSpiderConfig {
  const config = optionsObject('guild.json.spider', given, NAMES)
  const path = (name: string) => `guild.json.spider.${name}`
  const record = <T extends object>(name: string, value: T | undefined): T => {
    if (value === undefined) return {} as T
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new OptionTypeError(path(name), 'an object', value)
    return value
  }
  const gateKinds = config.gateKinds ?? ['spider.follows']
  if (!Array.isArray(gateKinds) || !gateKinds.every((kind) => typeof kind === 'string' && kind !== ''))
    throw new OptionTypeError(path('gateKinds'), 'a list of link kinds', gateKinds)
  const sessions = config.sessions ?? { ownerId: 'animator', book: 'sessions' }
  if (typeof sessions?.ownerId !== 'string' || typeof sessions.book !== 'string')
    throw new OptionTypeError(path('sessions'), 'an object { ownerId, book }', sessions)
  const whole = (name: (typeof NAMES)[number], min: number, fallback: number) =>
    integerOption(path(name), config[name], { min, default: fallback })
  const maxConcurrentEngines = whole('maxConcurrentEngines', 1, 3)
  return Object.freeze({
    rigTemplates: record('rigTemplates', config.rigTemplates),
    rigTemplateMappings: record('rigTemplateMappings', config.rigTemplateMappings),
    variables: record('variables', config.variables),
    maxConcurrentEngines,
    maxConcurrentSessions: whole('maxConcurrentSessions', 1, maxConcurrentEngines),
    maxConcurrentEnginesPerRig: whole('maxConcurrentEnginesPerRig', 1, 1),
    maxEnginesPerRig: whole('maxEnginesPerRig', 1, 50),
    pollIntervalMs: whole('pollIntervalMs', 10, 5000),
    engineLeaseMs: whole('engineLeaseMs', 100, 30_000),
    gateKinds,
    sessions,
    engineRetryOverrides: record('engineRetryOverrides', config.engineRetryOverrides),
  })
}
