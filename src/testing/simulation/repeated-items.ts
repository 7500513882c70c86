import type { History } from './history.js'

/** An item whose handler ran more than once: each of its effects may have been made as often. */
export interface RepeatedItem {
  readonly seed: number
  readonly type: string
  readonly id: string
  readonly runs: number
}

/** Items whose handlers ran more than once. */
export interface RepeatedItems {
  /** How many items ran more than once: after a crash, a lost lease, a failure or a deferral. */
  readonly ranTwice: number
  /** Which ones, ten at most. */
  readonly ranTwiceItems: readonly RepeatedItem[]
}

const NAMED = 10

export function repeatedItems(seed: number, history: History): RepeatedItems {
  const all = [...history.items.values()].flatMap(({ id, runs }) => {
    const times = runs.reduce((sum, { isRepeated }) => sum + (isRepeated === true ? 2 : 1), 0)
    return times > 1 ? [{ seed, type: runs[0]!.type, id, runs: times }] : []
  })
  return { ranTwice: all.length, ranTwiceItems: all.slice(0, NAMED) }
}

export function bothRepeated(one: RepeatedItems, other: RepeatedItems): RepeatedItems {
  return {
    ranTwice: one.ranTwice + other.ranTwice,
    ranTwiceItems: [...one.ranTwiceItems, ...other.ranTwiceItems].slice(0, NAMED),
  }
}

const SHOWN = 3

/** `2 items ran more than once: charge i3 of seed 4 (2 runs), charge i7 of seed 9 (3 runs)`. */
export function repeatedText({ ranTwice, ranTwiceItems }: RepeatedItems): string {
  if (ranTwice === 0) return 'no item ran more than once'
  const named = ranTwiceItems
    .slice(0, SHOWN)
    .map(({ seed, type, id, runs }) => `${type} ${id} of seed ${seed} (${runs} runs)`)
  const more = ranTwice > named.length ? ', …' : ''
  return `${ranTwice} item${ranTwice === 1 ? '' : 's'} ran more than once: ${named.join(', ')}${more}`
}
