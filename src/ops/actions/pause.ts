import { booleanOption, optionsObject } from '../../core/options.js'
import { type Paused, pauseOrResume as pausing, readPausable } from '../../work/control/pause.js'
import type { PauseOptions, PauseReport, PauseTarget } from '../api.js'
import type { OpsContext } from '../context.js'
import { isApplied } from './bulk-action.js'
import { readActor } from './selection.js'

/** A backend has this queue also before the first item comes. */
const DEFAULT_QUEUE = 'default'

/** Pauses or resumes a queue or a type. Where that would change nothing, nothing is written, and the answer says so. */
export async function pauseOrResume(
  context: OpsContext,
  verb: 'pause' | 'resume',
  target: PauseTarget,
  options: PauseOptions,
): Promise<PauseReport> {
  const { ledger } = context
  const named = readPausable(verb, target, () => undefined)
  const { mustBeKnown, ...by } = optionsObject(verb, options, ['who', 'why', ...MORE[verb]])
  const { who, why } = readActor(verb, by)
  const isStrict = booleanOption(`${verb}.mustBeKnown`, mustBeKnown, false)
  const [isPaused, isKnown] = await Promise.all([isPausedNow(context, named), isKnownNow(context, named)])
  const report = (isChanged: boolean): PauseReport => {
    // A person named what is paused, even if nothing has that name yet.
    return { ...named, isChanged, ...(isKnown === undefined ? {} : { isKnown: isKnown || isPaused === true }) }
  }
  if (isPaused === (verb === 'pause')) return report(false)
  if (isStrict && isKnown === false) return report(false)
  const [result] = await ledger.commit([pausing(verb, named, who, why)])
  if (result !== undefined) isApplied(result)
  return report(true)
}

const MORE = { pause: ['mustBeKnown'], resume: [] } as const

/** Undefined: this ledger cannot tell. */
async function isPausedNow({ ledger }: OpsContext, { what, name }: Paused): Promise<boolean | undefined> {
  const paused = await ledger.paused?.({
    queues: what === 'queue' ? [name] : [],
    types: what === 'type' ? [name] : [],
  })
  return (what === 'queue' ? paused?.queues : paused?.types)?.includes(name)
}

async function isKnownNow({ ledger: { inspect } }: OpsContext, { what, name }: Paused): Promise<boolean | undefined> {
  if (inspect === undefined) return undefined
  if (what === 'queue' && name === DEFAULT_QUEUE) return true
  const [counts, workers] = await Promise.all([inspect.counts(), inspect.workers()])
  if (counts.some((one) => one[what] === name)) return true
  return workers.some(({ queues, types }) => (what === 'queue' ? queues : types).includes(name))
}
