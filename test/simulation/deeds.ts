import type { DependencyCondition } from '../../src/index.js'
import { seededRandom } from '../../src/testing/seeded-random.js'

/** What a run says to its group. */
export type Contribution = 'nothing' | 'append' | 'overwrite' | 'final' | 'append and lock'

/** What comes after what was queued. */
export interface NextDeed {
  readonly children: number
  readonly condition: DependencyCondition
  /** Follows a chain that stands inside the one before. */
  readonly isOutside: boolean
}

/** What one run of one item does. */
export interface Deed {
  /** How long it takes first. */
  readonly takesMs: number
  readonly then:
    | { readonly do: 'return' | 'hang' | 'die' }
    | { readonly do: 'queue'; readonly children: number; readonly next: readonly NextDeed[] }
    | { readonly do: 'throw'; readonly what: 'plain' | 'poison' | 'invalid' | 'abort' }
    | { readonly do: 'defer'; readonly delayMs: number }
  readonly says: Contribution
}

/** What is known of an item when it runs. */
export interface Circumstances {
  readonly seed: number
  /** Its place in the tree of work: children of `3` are `3.0`, `3.1`, … */
  readonly key: string
  readonly attempt: number
  readonly fence: number
  readonly isTroubled: boolean
  readonly leaseMs: number
  /** A run that succeeds does the same as any other run of the item would. */
  readonly isSteady: boolean
}

const MAX_DEPTH = 3

/** The same deed whenever the same lease of the same item runs, in any process and any order. */
export function deedOf({ seed, key, attempt, fence, isTroubled, leaseMs, isSteady }: Circumstances): Deed {
  const nature = seededRandom(`${seed}/${key}`)()
  const random = seededRandom(`${seed}/${key}/${attempt}/${fence}`)
  const shape = isSteady ? seededRandom(`${seed}/shape of ${key}`) : random
  const says = contributionOf(groupMood(seed, key), shape())
  const takesMs =
    random() < 0.5 ? 0 : random() < 0.8 ? Math.floor(random() * 300) : Math.floor(random() * 2.5 * leaseMs)
  const deed = (then: Deed['then']): Deed => ({ takesMs, then, says })

  // A few do the same every time: they kill their process, fail, or can never succeed.
  if (nature < 0.03) return deed({ do: 'die' })
  if (nature < 0.08) return deed({ do: 'throw', what: 'plain' })
  if (nature < 0.11)
    return deed({ do: 'throw', what: (['poison', 'invalid', 'abort'] as const)[Math.floor(random() * 3)]! })

  const roll = random()
  if (roll < 0.15) return deed({ do: 'throw', what: 'plain' })
  if (roll < 0.25) return deed({ do: 'defer', delayMs: Math.floor(random() * 3_000) })
  // What hangs, hangs while there is trouble: in peace everything must come to its end.
  if (roll < 0.28 && isTroubled) return deed({ do: 'hang' })
  if (roll < 0.3 && isTroubled) return deed({ do: 'die' })
  const depth = key.split('.').length
  if (shape() < 0.4 && depth < MAX_DEPTH) {
    return deed({ do: 'queue', children: Math.floor(shape() * 4), next: chainOf(shape) })
  }
  return deed({ do: 'return' })
}

const CONDITIONS: readonly DependencyCondition[] = [
  'all-success',
  'all-success',
  'all-done',
  { count: 1 },
  { count: 2, of: 'success' },
  { of: 'tree' },
  { of: 'tree', when: 'all-done' },
]

/** Most chains have no link, some have up to three. */
function chainOf(random: () => number): readonly NextDeed[] {
  const links = Math.max(0, Math.floor(random() * 7) - 3)
  return Array.from({ length: links }, () => ({
    children: 1 + Math.floor(random() * 2),
    condition: CONDITIONS[Math.floor(random() * CONDITIONS.length)]!,
    isOutside: random() < 0.25,
  }))
}

/** Groups differ in what is said to them, so that every mixture occurs. */
function groupMood(seed: number, key: string): number {
  return seededRandom(`${seed}/mood of ${key.split('.')[0]}`)()
}

function contributionOf(mood: number, roll: number): Contribution {
  if (roll < 0.2) return 'nothing'
  if (mood < 0.4) return 'append'
  if (mood < 0.6) return roll < 0.6 ? 'append' : 'overwrite'
  if (roll < 0.4) return 'append'
  if (roll < 0.7) return 'overwrite'
  return roll < 0.85 ? 'final' : 'append and lock'
}
