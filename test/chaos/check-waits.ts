import type { ItemView } from '../../src/ports/inspect.js'
import type { StoredGroup } from './stored-records.js'
import type { Truth, WaitOutcome } from './truth.js'

export interface WaitVerdict {
  readonly waits: number
  /** Waits that never ended. */
  readonly endlessWaits: readonly string[]
  /** Waits that ended with something else than what is stored. */
  readonly wrongOutcomes: readonly string[]
}

/** Every wait ends, and with what is stored. */
export function checkWaits(
  { waits, outcomes }: Truth,
  items: ReadonlyMap<string, ItemView>,
  groupOf: (id: string) => StoredGroup | undefined,
): WaitVerdict {
  const ended = new Set(outcomes.map(keyOf))
  const wrongOutcomes = outcomes.flatMap((one) => {
    const stored = one.what === 'group' ? `value ${groupOf(one.id)?.value}` : storedOf(items.get(one.id))
    const got = gotOf(one)
    return got === stored ? [] : [`${one.what} of ${one.id}: got ${got}, stored ${stored}`]
  })
  return { waits: waits.length, endlessWaits: waits.map(keyOf).filter((key) => !ended.has(key)), wrongOutcomes }
}

function gotOf({ what, value, died }: WaitOutcome): string {
  if (died === undefined) return `value ${JSON.stringify(value)}`
  // A result rejects with the error of a dead item; a group never does.
  return what === 'result' ? 'dead' : `dead: ${died}`
}

function storedOf(view: ItemView | undefined): string {
  return view?.status === 'completed' ? `value ${view.result}` : (view?.status ?? 'unknown')
}

function keyOf({ id, what }: { readonly id: string; readonly what: string }): string {
  return `${what} of ${id}`
}
