import type { ItemView } from '../../src/ports/ledger.js'
import type { StoredGroup } from './books.js'
import type { Heard, Truth } from './truth.js'

export interface WaitVerdict {
  readonly waits: number
  /** Waits that never ended. */
  readonly unheard: readonly string[]
  /** Waits that ended with something else than what is stored. */
  readonly misheard: readonly string[]
}

/** Every wait ends, and with what is stored. */
export function checkWaits(
  { waits, heard }: Truth,
  items: ReadonlyMap<string, ItemView>,
  groupOf: (id: string) => StoredGroup | undefined,
): WaitVerdict {
  const ended = new Set(heard.map(keyOf))
  const misheard = heard.flatMap((one) => {
    const stored = one.what === 'group' ? `value ${groupOf(one.id)?.value}` : storedOf(items.get(one.id))
    const said = saidOf(one)
    return said === stored ? [] : [`${one.what} of ${one.id}: heard ${said}, stored ${stored}`]
  })
  return { waits: waits.length, unheard: waits.map(keyOf).filter((key) => !ended.has(key)), misheard }
}

function saidOf({ what, value, died }: Heard): string {
  if (died === undefined) return `value ${JSON.stringify(value)}`
  // A result rejects with the error of a dead item; a group never does.
  return what === 'result' ? 'dead' : `dead: ${died}`
}

function storedOf(view: ItemView | undefined): string {
  return view?.status === 'success' ? `value ${view.result}` : (view?.status ?? 'unknown')
}

function keyOf({ id, what }: { readonly id: string; readonly what: string }): string {
  return `${what} of ${id}`
}
