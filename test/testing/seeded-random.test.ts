import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../src/testing/seeded-random.js'

const take = (seed: number | string, count: number) => {
  const random = seededRandom(seed)
  return Array.from({ length: count }, () => random())
}

describe('chance from a seed', () => {
  it('repeats for the same seed and differs for another, however close', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer(), fc.string()), (seed) => {
        const numbers = take(seed, 20)
        expect(take(seed, 20)).toEqual(numbers)
        expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true)
        const neighbour = typeof seed === 'number' ? seed + 1 : `${seed}x`
        expect(take(neighbour, 20)).not.toEqual(numbers)
      }),
      { numRuns: 1_000 },
    )
  })

  it('gives the numbers it always gave, so that a recorded seed can be replayed', () => {
    expect(take(42, 3)).toMatchInlineSnapshot(`
      [
        0.20083911764306484,
        0.6469969305100571,
        0.15400236402951506,
      ]
    `)
  })

  it('is even: each of 16 slices gets its share, first numbers of neighbouring seeds included', () => {
    const evenness = (numbers: number[]) => {
      const slices = new Array<number>(16).fill(0)
      for (const n of numbers) slices[Math.floor(n * 16)]! += 1
      const share = numbers.length / 16
      return slices.reduce((sum, seen) => sum + (seen - share) ** 2 / share, 0)
    }
    // Chi-squared with 15 degrees of freedom: 44 is exceeded once in 10 000 fair runs, and these runs are fixed.
    expect(evenness(take('even', 160_000))).toBeLessThan(44)
    expect(evenness(Array.from({ length: 16_000 }, (_, seed) => take(seed, 1)[0]!))).toBeLessThan(44)
  })

  it('has more than 32 bits in a number', () => {
    expect(take(1, 100).some((n) => (n * 2 ** 32) % 1 !== 0)).toBe(true)
  })

  it('refuses a seed that would hide a mistake', () => {
    expect(() => seededRandom(Number.NaN)).toThrow(TypeError)
    expect(() => seededRandom(undefined as unknown as number)).toThrow(/seed/)
  })
})
