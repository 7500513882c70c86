import { functionOption, OptionError, OptionTypeError, optionsObject } from '../../core/options.js'
import type { AnyWorkBuilder } from '../../work/define/work.js'
import type { ScheduleConfig } from '../../work/schedule/config.js'
import type { SimulatedProcess, SimulatedSystemOptions } from './process.js'

/** What goes on in a simulated world. */
export interface Scenario {
  /**
   * The work types of the fleet. A handler that waits, or a type with its own doer or queue, needs the process it
   * runs in: give a function then, which is called for every process that starts.
   */
  readonly work: readonly AnyWorkBuilder[] | ((process: SimulatedProcess) => readonly AnyWorkBuilder[])
  /** Options of every process's work system. */
  readonly system?: SimulatedSystemOptions | ((process: SimulatedProcess) => SimulatedSystemOptions)
  /** What every process schedules when it starts. Give it a time zone: where the test runs must not matter. */
  readonly schedules?: (process: SimulatedProcess) => readonly ScheduleConfig[]
  /** Enqueues, and does whatever else the outside world does. Trouble lasts at least until it has resolved. */
  readonly run: () => void | Promise<void>
  /** Your own promises, checked when everything has come to rest: throw when one does not hold. */
  readonly check?: () => void | Promise<void>
}

export interface ResolvedScenario {
  readonly work: (process: SimulatedProcess) => readonly AnyWorkBuilder[]
  readonly system: (process: SimulatedProcess) => SimulatedSystemOptions
  readonly schedules: (process: SimulatedProcess) => readonly ScheduleConfig[]
  readonly run: () => void | Promise<void>
  readonly check: () => void | Promise<void>
}

export function resolveScenario(scenario: Scenario): ResolvedScenario {
  const given = optionsObject('simulate.setup(world)', scenario, ['work', 'system', 'schedules', 'run', 'check'])
  return {
    work: perProcess('work', given.work),
    system: perProcess('system', given.system ?? {}),
    schedules: functionOption<NonNullable<Scenario['schedules']>>(
      'simulate.setup(world).schedules',
      given.schedules,
      () => [],
    ),
    run: functionOption<Scenario['run']>('simulate.setup(world).run', given.run),
    check: functionOption<NonNullable<Scenario['check']>>('simulate.setup(world).check', given.check, () => undefined),
  }
}

function perProcess<T extends object>(name: 'work' | 'system', given: T | ((process: SimulatedProcess) => T)) {
  if (typeof given === 'function') return given as (process: SimulatedProcess) => T
  if (typeof given !== 'object' || given === null) {
    throw new OptionTypeError(`simulate.setup(world).${name}`, 'an object, a list or a function', given)
  }
  refuseSharedDoers(name, given)
  return () => given
}

/** A doer that several processes share would stay busy forever after the first of them dies. */
function refuseSharedDoers(name: 'work' | 'system', given: object): void {
  const all = Array.isArray(given) ? (given as readonly AnyWorkBuilder[]).map(({ def }) => def.options) : [given]
  if (all.every((options) => (options as { readonly doer?: unknown }).doer === undefined)) return
  throw new OptionError(
    `simulate.setup(world).${name}`,
    'a function when there is a doer in it, like (process) => …, so every process has its own doer',
    given,
  )
}
