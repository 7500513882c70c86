import type { RedisMessage } from './redis-message.js'

/** One of the things that `apply.lua` does. `message` tells which start need not be written any more. */
export interface Operation {
  readonly what: 'start' | 'extend' | 'ack' | 'nak' | 'term' | 'release'
  readonly message: RedisMessage
  readonly words: OperationWords
}

/** Three words, as `apply.lua` says. Operations that have the same ones are carried out together. */
export type OperationWords = readonly [string | number, string | number, string]

export const NO_WORDS: OperationWords = Object.freeze(['', '', ''])
/** The message has a note, which goes when it is settled. */
export const HAS_NOTE: OperationWords = Object.freeze(['1', '', ''])

/** The arguments of one call of `apply.lua`. */
export interface GroupedOperations {
  readonly words: readonly (string | number)[]
  /** Which operation stands at each place, counted from 0: where its ids begin, in the order in which the call has them. */
  readonly places: readonly number[]
}

interface Group {
  readonly what: Operation['what']
  readonly words: OperationWords
  readonly members: number[]
}

/** Operations as the words of one call. What ends a message comes last: whatever else is said of it must still find it. */
export function groupedOperations(
  operations: readonly Operation[],
  isNeeded: (operation: Operation) => boolean,
): GroupedOperations {
  const groups = new Map<string, Group>()
  operations.forEach((operation, i) => {
    if (!isNeeded(operation)) return
    const { what, words } = operation
    const key = what === 'term' ? `term ${i}` : keyOf(operation)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { what, words, members: [i] })
    else group.members.push(i)
  })
  const words: (string | number)[] = []
  const places: number[] = []
  for (const isEnding of [false, true])
    for (const { what, words: theirs, members } of groups.values()) {
      if ((what !== 'start' && what !== 'extend') !== isEnding) continue
      words.push(what, members.length, ...theirs)
      for (const i of members) {
        words.push(operations[i]!.message.id)
        places.push(i)
      }
    }
  return { words, places }
}

function keyOf({ what, words }: Operation): string {
  return words === NO_WORDS ? what : `${what} ${words[0]} ${words[1]} ${words[2]}`
}
