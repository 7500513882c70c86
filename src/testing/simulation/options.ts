import { OptionError } from '../../core/options.js'
import { callable, integer, listener, number, oneOf, optional, readOptions } from '../../core/read-options.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { Backend } from '../../ports/ports.js'
import { type Faults, resolveFaults } from './faults.js'
import type { Ground } from './remote-backend.js'
import type { RepeatedItems } from './repeated-items.js'
import type { Scenario } from './scenario.js'
import type { SimulatedWorld } from './world.js'

/** Options of {@link simulate}. */
export interface SimulationOptions {
  /** Called once per seed, with a new world: make whatever a seed needs here, so no seed sees another one's. */
  readonly setup: (world: SimulatedWorld) => Scenario
  /** One seed only: replays it. */
  readonly seed?: number
  /** How many seeds, beginning with `firstSeed`. Default 100. */
  readonly seeds?: number
  /** Default 1. */
  readonly firstSeed?: number
  /** Goes on with further seeds for so many minutes of real time, instead of a number of seeds. */
  readonly minutes?: number
  /** How many processes work at a time. Default 3. */
  readonly processes?: number
  /** What may go wrong. Default: everything. */
  readonly faults?: Partial<Faults> | 'none'
  /** How long things go wrong at least, in virtual time. Default 60 000. */
  readonly troubleMs?: Ms
  /** How long after the trouble everything must have come to rest, in virtual time. Default one hour. */
  readonly restWithinMs?: Ms
  /** How the processes stand on the backend. Default `'native'`. */
  readonly ground?: Ground
  /** The backend that the fleet shares; its calls must not wait for anything real. Default: a memory backend. */
  readonly backend?: (clock: Clock) => Backend
  /** The most events of one seed: more mean that something spins. Default 1 000 000. */
  readonly maxEvents?: number
  /** Called after every seed. */
  readonly onSeed?: (seed: SeedReport) => void
}

/** What happened under one seed. */
export interface SeedReport extends RepeatedItems {
  readonly seed: number
  readonly events: number
  readonly virtualMs: Ms
  readonly items: number
  readonly runs: number
  readonly crashes: number
  /** The same for every run of this seed with the same options and the same code. */
  readonly fingerprint: string
}

export type ResolvedSimulation = ReturnType<typeof resolveSimulation>

export function resolveSimulation(options: SimulationOptions) {
  const {
    seed,
    seeds = 100,
    firstSeed = 1,
    minutes,
    ...given
  } = readOptions('simulate', options, {
    setup: callable<SimulationOptions['setup']>(),
    seed: optional(integer({ min: 0 })),
    seeds: optional(integer({ min: 1 })),
    firstSeed: optional(integer({ min: 0 })),
    minutes: optional(number({ above: 0 })),
    processes: integer({ default: 3, min: 1 }),
    faults: (_: string, faults: unknown) => resolveFaults(faults as SimulationOptions['faults']),
    troubleMs: number({ default: 60_000, min: 0 }),
    restWithinMs: number({ default: 3_600_000, above: 0 }),
    ground: oneOf(['native', 'plain', 'minimal'], 'native'),
    backend: listener,
    maxEvents: integer({ default: 1_000_000, min: 1 }),
    onSeed: callable<NonNullable<SimulationOptions['onSeed']>>(() => undefined),
  })
  if (seed !== undefined && [options.seeds, options.minutes, options.firstSeed].some((one) => one !== undefined))
    throw new OptionError('simulate.seed', 'given without seeds, firstSeed and minutes: it replays one seed', seed)
  if (options.seeds !== undefined && minutes !== undefined)
    throw new OptionError('simulate.minutes', 'left out when seeds is given: one of them says how long', minutes)
  /** `Infinity` when only time ends it. */
  const count = seed !== undefined ? 1 : minutes !== undefined ? Infinity : seeds
  return Object.freeze({ ...given, minutes, seeds: count, firstSeed: seed ?? firstSeed })
}
