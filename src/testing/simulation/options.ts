import {
  functionOption,
  integerOption,
  numberOption,
  OptionError,
  oneOfOption,
  optionsObject,
} from '../../core/options.js'
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

export type ResolvedSimulation = Readonly<
  Required<Omit<SimulationOptions, 'seed' | 'seeds' | 'minutes' | 'faults' | 'backend'>>
> & {
  readonly faults: Faults
  readonly backend: ((clock: Clock) => Backend) | undefined
  /** How many seeds; `Infinity` when only time ends it. */
  readonly seeds: number
  readonly minutes: number | undefined
}

const NAMES = [
  'setup',
  'seed',
  'seeds',
  'firstSeed',
  'minutes',
  'processes',
  'faults',
  'troubleMs',
  'restWithinMs',
  'ground',
  'backend',
  'maxEvents',
  'onSeed',
] as const satisfies readonly (keyof SimulationOptions)[]

export function resolveSimulation(options: SimulationOptions): ResolvedSimulation {
  const given = optionsObject('simulate', options, NAMES)
  if (
    given.seed !== undefined &&
    (given.seeds !== undefined || given.minutes !== undefined || given.firstSeed !== undefined)
  ) {
    throw new OptionError(
      'simulate.seed',
      'given without seeds, firstSeed and minutes: it replays one seed',
      given.seed,
    )
  }
  if (given.seeds !== undefined && given.minutes !== undefined) {
    throw new OptionError('simulate.minutes', 'left out when seeds is given: one of them says how long', given.minutes)
  }
  const integer = (name: 'seeds' | 'firstSeed' | 'processes' | 'maxEvents', fallback: number, min: number) =>
    integerOption(`simulate.${name}`, given[name], { default: fallback, min })
  const minutes =
    given.minutes === undefined ? undefined : numberOption('simulate.minutes', given.minutes, { above: 0 })
  return Object.freeze({
    setup: functionOption<SimulationOptions['setup']>('simulate.setup', given.setup),
    firstSeed:
      given.seed === undefined ? integer('firstSeed', 1, 0) : integerOption('simulate.seed', given.seed, { min: 0 }),
    seeds: given.seed !== undefined ? 1 : minutes !== undefined ? Infinity : integer('seeds', 100, 1),
    minutes,
    processes: integer('processes', 3, 1),
    faults: resolveFaults(given.faults),
    troubleMs: numberOption('simulate.troubleMs', given.troubleMs, { default: 60_000, min: 0 }),
    restWithinMs: numberOption('simulate.restWithinMs', given.restWithinMs, { default: 3_600_000, above: 0 }),
    ground: oneOfOption<Ground>('simulate.ground', given.ground, ['native', 'plain', 'minimal'], 'native'),
    backend:
      given.backend === undefined
        ? undefined
        : functionOption<(clock: Clock) => Backend>('simulate.backend', given.backend),
    maxEvents: integer('maxEvents', 1_000_000, 1),
    onSeed: functionOption<NonNullable<SimulationOptions['onSeed']>>('simulate.onSeed', given.onSeed, () => undefined),
  })
}
