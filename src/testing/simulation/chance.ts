import type { Random } from '../../core/time/clock.js'
import { seededRandom } from '../seeded-random.js'

/** Chance in words, all of it from one seed. */
export class Chance {
  readonly random: Random

  constructor(seed: number | string) {
    this.random = seededRandom(seed)
  }

  /** True with this probability. */
  flip(probability: number): boolean {
    return this.random() < probability
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.random() * (high - low + 1))
  }

  pick<T>(list: readonly [T, ...T[]]): T
  pick<T>(list: readonly T[]): T | undefined
  pick<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.random() * list.length)]
  }

  /** How long until the next of something that happens so often on average. */
  untilNext(perMinute: number): number {
    if (perMinute <= 0) return Infinity
    return Math.ceil((-Math.log(1 - this.random()) * 60_000) / perMinute)
  }
}
