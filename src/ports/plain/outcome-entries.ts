import type { Desk } from './desk.js'
import type { Held } from './held.js'
import { stateAfter } from './held-state.js'
import type { End } from './parts.js'
import { type Entry, entry } from './plain-store.js'
import { writeState } from './state.js'

/** The writes of an outcome, in order: the last of them is what makes it count. */
export function outcomeEntries({ keys, clock }: Desk, held: Held, outcome: End): readonly Entry[] {
  const { id } = held.lease
  const { keepMs } = outcome
  const endAt = clock.now()
  if (outcome.do === 'finish') {
    const { result, ending } = outcome
    const marks = { ending, keepMs, ...(result === undefined ? { isResultless: true } : {}) }
    const state = entry(keys.state(id), writeState(stateAfter(held, { status: 'success', endAt, marks })), keepMs)
    return result === undefined ? [state] : [state, entry(keys.result(id), result, keepMs)]
  }
  const { error, ending, class: failureClass } = outcome
  const marks = { ending, class: failureClass, keepMs }
  return [
    entry(keys.error(id), error, keepMs),
    entry(keys.state(id), writeState(stateAfter(held, { status: 'dead', endAt, error, marks })), keepMs),
  ]
}
