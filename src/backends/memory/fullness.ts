import type { Refused } from '../../ports/refusal.js'
import type { Settlement } from '../../ports/settlement.js'
import type { Book } from './book.js'
import { bytesOfText, ITEM_BYTES } from './bytes.js'

/**
 * Why an enqueue is refused for now: with it more would be stored than the backend may hold. What a run settles is taken in
 * any case, its children too: refused, it would run again, and free nothing.
 */
export function fullnessOf({ shelf }: Book, { guard, effects }: Settlement): Refused | undefined {
  if (guard.by === 'lease') return undefined
  let bytes = 0
  for (const effect of effects) if (effect.do === 'push') bytes += ITEM_BYTES + bytesOfText(effect.item.input)
  const { maxBytes: limit } = shelf
  const { stored } = shelf.bytes
  if (bytes === 0 || stored + bytes <= limit) return undefined
  const message =
    `The memory backend holds ${stored} bytes, and this enqueue of ${bytes} more would take it beyond its limit of ${limit}. ` +
    'Enqueue it again once work has been done, enqueue no faster than workers run, or raise `maxBytes` of memoryBackend.'
  return { kind: 'refused', code: 'STORE_FULL', message, limit }
}
