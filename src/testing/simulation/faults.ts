import { numberOption, optionsObject } from '../../core/options.js'
import type { Ms } from '../../core/time/time.js'
import type { Chance } from './chance.js'

/**
 * How hostile a simulated world may get. Chances are per call or notification; rates are per minute of virtual time over the whole
 * fleet. These are ceilings: every seed draws its own rates below them: some seeds are calm, some have one kind
 * of trouble only, and some have all of it together.
 */
export interface Faults {
  /** A call never reaches the backend; its caller gets an error after a while. Default 0.03. */
  readonly lostRequests: number
  /** A call happens, but its caller gets an error instead of the reply. Default 0.03. */
  readonly lostReplies: number
  /** A commit arrives twice. Default 0.02. */
  readonly repeatedCommits: number
  /** A call or a reply takes up to `slowestMs` instead of a few milliseconds. Default 0.02. */
  readonly slowCalls: number
  /** Default 60 000: longer than a lease. */
  readonly slowestMs: Ms
  /** A wake-up or a message to an inbox does not arrive. Default 0.3. */
  readonly lostNotifications: number
  /** It arrives twice. Default 0.1. */
  readonly repeatedNotifications: number
  /** A process dies between two events and is started again after a while. Default 3. */
  readonly crashesPerMinute: number
  /**
   * How many of those crashes wait for a run and hit it: while its handler runs, or once that has returned and before its
   * outcome is stored. Some come early, in the first runs of a type. The others come at any time, when most processes are
   * idle. Default 0.9.
   */
  readonly crashesInRuns: number
  /** A process is stopped properly, as for a deploy, and another one started. Default 1. */
  readonly restartsPerMinute: number
  /** A process stands still, as under SIGSTOP or a blocked event loop, and then goes on. Default 2. */
  readonly pausesPerMinute: number
  /** Default 60 000: longer than a lease. */
  readonly longestPauseMs: Ms
  /** No process can reach the backend. Default 0.5. */
  readonly outagesPerMinute: number
  /** Default 20 000. */
  readonly longestOutageMs: Ms
  /** How far the clocks of processes are off, either way. Default 300 000. */
  readonly clockSkewMs: Ms
}

const DEFAULTS: Faults = Object.freeze({
  lostRequests: 0.03,
  lostReplies: 0.03,
  repeatedCommits: 0.02,
  slowCalls: 0.02,
  slowestMs: 60_000,
  lostNotifications: 0.3,
  repeatedNotifications: 0.1,
  crashesPerMinute: 3,
  crashesInRuns: 0.9,
  restartsPerMinute: 1,
  pausesPerMinute: 2,
  longestPauseMs: 60_000,
  outagesPerMinute: 0.5,
  longestOutageMs: 20_000,
  clockSkewMs: 300_000,
})

/** Nothing goes wrong; calls still take a moment, and their order is still the seed's. */
export const NO_FAULTS: Faults = Object.freeze({
  lostRequests: 0,
  lostReplies: 0,
  repeatedCommits: 0,
  slowCalls: 0,
  slowestMs: 0,
  lostNotifications: 0,
  repeatedNotifications: 0,
  crashesPerMinute: 0,
  crashesInRuns: 0,
  restartsPerMinute: 0,
  pausesPerMinute: 0,
  longestPauseMs: 0,
  outagesPerMinute: 0,
  longestOutageMs: 0,
  clockSkewMs: 0,
})

const CHANCES = [
  'lostRequests',
  'lostReplies',
  'repeatedCommits',
  'slowCalls',
  'lostNotifications',
  'repeatedNotifications',
] as const
const SHARES = ['crashesInRuns'] as const
const RATES = ['crashesPerMinute', 'restartsPerMinute', 'pausesPerMinute', 'outagesPerMinute'] as const
const TIMES = ['slowestMs', 'longestPauseMs', 'longestOutageMs', 'clockSkewMs'] as const

export function resolveFaults(given: Partial<Faults> | 'none' | undefined): Faults {
  if (given === 'none') return NO_FAULTS
  const options = optionsObject('simulate.faults', given as Faults | undefined, [
    ...CHANCES,
    ...SHARES,
    ...RATES,
    ...TIMES,
  ])
  const resolved: Record<string, number> = {}
  const share = (name: keyof Faults, max: number) => {
    resolved[name] = numberOption(`simulate.faults.${name}`, options[name], { default: DEFAULTS[name], min: 0, max })
  }
  for (const name of CHANCES) share(name, 0.9)
  for (const name of SHARES) share(name, 1)
  for (const name of [...RATES, ...TIMES]) {
    resolved[name] = numberOption(`simulate.faults.${name}`, options[name], { default: DEFAULTS[name], min: 0 })
  }
  return Object.freeze(resolved as unknown as Faults) // Every name of the three lists was just filled in.
}

/** What one seed makes of them. A fault that is always there hides what happens without it. */
export function weatherOf(faults: Faults, chance: Chance): Faults {
  const weather: Record<string, number> = {}
  for (const name of SHARES) weather[name] = faults[name]
  for (const name of [...CHANCES, ...RATES]) weather[name] = faults[name] * chance.pick([0, 0.3, 1])
  for (const name of TIMES) weather[name] = faults[name] * chance.pick([0.1, 1])
  return Object.freeze(weather as unknown as Faults)
}
