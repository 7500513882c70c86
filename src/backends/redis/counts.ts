import type { Counted } from '../../ports/ledger.js'
import { ITEM_STATE_WORDS, type ItemStateWord } from '../../ports/words.js'
import { homeFrom } from './home.js'
import { LETTERS } from './query-words.js'

const WORDS = new Map(ITEM_STATE_WORDS.map((word) => [LETTERS[word], word]))

/** The hash of counts, whose fields are the letter of a state and a home. */
export function countedFrom(flat: readonly string[]): Counted[] {
  const found = new Map<string, { queue: string; type: string; counts: Partial<Record<ItemStateWord, number>> }>()
  for (let i = 0; i < flat.length; i += 2) {
    const field = flat[i]!
    const home = field.slice(1)
    const one = found.get(home) ?? { ...homeFrom(home), counts: {} }
    const word = WORDS.get(field[0]!)
    if (word !== undefined) one.counts[word] = Number(flat[i + 1])
    found.set(home, one)
  }
  return [...found.values()]
}
