import { act } from '../../work/act.js'
import type { Retention } from '../../work/settle.js'
import type { ActionReport, Verb } from '../api.js'
import type { Desk } from '../desk.js'
import type { HowAsked } from './asked.js'
import { isApplied } from './carry-out.js'
import { ContendedError, NoItemError, wrongState } from './errors.js'
import { doesTake } from './verbs.js'

/** An item moves only so often while somebody tries to act on it. */
const TRIES = 50

/**
 * Acts on one item as it stands; when it has moved on meanwhile, looks again and chooses again. One commit, logged in the same
 * step: there is nothing to go on with, and hence no record but the log.
 */
export async function actOnOne(
  { ledger, now, summaries }: Desk,
  verb: Verb,
  id: string,
  how: HowAsked & { readonly actionId: string; readonly keep: Retention },
): Promise<ActionReport> {
  const { who, why, keep } = how
  const startedAt = await now()
  const report = (done: number): ActionReport => {
    const passed = how.isDryRun ? 0 : 1 - done
    return { id: how.actionId, verb, target: id, who, why, startedAt, total: 1, done, passed, state: 'done' }
  }
  for (let tries = 0; tries < TRIES; tries += 1) {
    const [[view], at] = await Promise.all([summaries([id]), now()])
    if (view === undefined) throw new NoItemError(verb, id)
    // Somebody has asked for it before: it is what was wanted.
    if (
      verb === 'cancel' &&
      (view.ending === 'cancelled' || (view.status === 'running' && view.cancelled !== undefined))
    )
      return report(0)
    if (!doesTake(verb, view, at)) throw wrongState(verb, view, at)
    if (how.isDryRun) return report(0)
    const settlement = act(view, verb, { who, why, keep })
    if (settlement === undefined) throw wrongState(verb, view, at)
    const [result] = await ledger.commit([settlement])
    if (result !== undefined && isApplied(result)) {
      const told = report(1)
      how.onProgress?.(told)
      return told
    }
  }
  throw new ContendedError(verb, id)
}
