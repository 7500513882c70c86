import type { Ms } from '../../core/time/time.js'
import type { Chance } from './chance.js'
import type { Faults } from './faults.js'

/** When a crash that is aimed at a run hits it: so long after it began, or once its handler has ended. */
export type Aim = { readonly inMs: Ms } | 'at its end'

/** How many runs of a type its first crash lets pass: in most seeds none, since there may be one run only. */
const LET_PASS = [0, 0, 0, 0, 0, 0, 1, 4] as const
/** So many types at most have a crash of their own in a seed, which does not wait for its minute. */
const MOST_EARLY = 3
/** The share of them that come when the handler has ended, and nothing of it is stored: there every effect is made twice. */
const AT_THE_END = 0.75
const LATEST_MS: Ms = 10_000

/**
 * Crashes that wait for a run. Work that arrives together is done within a moment, and a crash at any other time shows
 * nothing: what matters is the gap between an effect and the record of it.
 */
export class AimedCrashes {
  readonly #chance: Chance
  readonly #share: number
  #waiting = 0
  #early = 0
  /** How many runs of a type pass before its own crash. Infinity: it has none, or has had it. */
  readonly #toPass = new Map<string, number>()
  /** Each item is hit once at most: one that kills its process again and again is dead-lettered, rightly. */
  readonly #hit = new Set<string>()

  constructor(faults: Faults, chance: Chance) {
    this.#chance = chance
    this.#share = faults.crashesPerMinute > 0 ? faults.crashesInRuns : 0
  }

  /** A crash is due. True: it waits for a run. */
  takes(): boolean {
    if (!this.#chance.flip(this.#share)) return false
    this.#waiting += 1
    return true
  }

  /** A run of this item begins. Undefined: no crash is aimed at it. */
  at(id: string, type: string): Aim | undefined {
    if (this.#share === 0 || this.#hit.has(id)) return undefined
    if (!this.#isItsTurn(type)) {
      if (this.#waiting === 0) return undefined
      this.#waiting -= 1
    }
    this.#hit.add(id)
    if (this.#chance.flip(AT_THE_END)) return 'at its end'
    return { inMs: Math.floor(LATEST_MS ** this.#chance.random()) } // As often below 100 ms as above it.
  }

  /** Whether the type's own crash comes now. Each type has one: else that of a parent would hide what its children do. */
  #isItsTurn(type: string): boolean {
    const left = this.#toPass.get(type) ?? this.#first()
    this.#toPass.set(type, left === 0 ? Infinity : left - 1)
    return left === 0
  }

  #first(): number {
    if (this.#early >= MOST_EARLY) return Infinity
    this.#early += 1
    return this.#chance.pick(LET_PASS)
  }
}
