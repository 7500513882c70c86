import type { Settlement } from '../../ports/settlement.js'

/** A line in the log of actions is written whichever way the backend is used: it decides no mode. */
export function isOnlyLogged(batch: readonly Settlement[]): boolean {
  return batch.every(({ effects }) => effects.every((effect) => effect.do === 'log'))
}
