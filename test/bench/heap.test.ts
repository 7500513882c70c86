import { describe, expect, it } from 'vitest'
import { isHeapGrowing } from '../../bench/lib/compare/heap.js'

const MB = 2 ** 20

describe('the heap of a process between rounds', () => {
  it('may wander by what compiled code takes', () => {
    expect(isHeapGrowing([15 * MB, 16 * MB, 15.5 * MB, 16.5 * MB], 10_000)).toBe(false)
  })

  it('grows when each item leaves something behind', () => {
    const perItem = 100
    const heaps = [0, 1, 2, 3].map((round) => 15 * MB + round * 50_000 * perItem)

    expect(isHeapGrowing(heaps, 50_000)).toBe(true)
  })

  it('is not judged by a single round', () => {
    expect(isHeapGrowing([15 * MB], 10_000)).toBe(false)
    expect(isHeapGrowing([], 10_000)).toBe(false)
  })
})
