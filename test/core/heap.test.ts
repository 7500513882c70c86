import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Heap } from '../../src/core/collections/heap.js'

interface Entry {
  readonly id: number
  rank: number
  index: number
}

const before = (a: Entry, b: Entry) => a.rank < b.rank || (a.rank === b.rank && a.id < b.id)
const byRank = (a: Entry, b: Entry) => a.rank - b.rank || a.id - b.id

type Step =
  | { readonly kind: 'push'; readonly rank: number }
  | { readonly kind: 'pop' }
  | { readonly kind: 'remove'; readonly pick: number }
  | { readonly kind: 'move'; readonly pick: number; readonly rank: number }

const rank = fc.integer({ min: -20, max: 20 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('push' as const), rank }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pop' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('move' as const), pick: fc.nat(), rank }) },
)

describe('a heap whose items know their place', { timeout: 60_000 }, () => {
  it('behaves as a sorted array under any mix of push, pop, remove and move', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const heap = new Heap<Entry>(before, (entry, index) => {
          entry.index = index
        })
        let sorted: Entry[] = []
        let nextId = 0
        // Asserted once for each case: `expect` itself took most of the time of this test.
        const mistakes: string[] = []
        const check = (isSo: boolean, what: string) => {
          if (!isSo) mistakes.push(what)
        }
        for (const s of steps) {
          const picked = 'pick' in s && sorted.length > 0 ? sorted[s.pick % sorted.length]! : undefined
          if (s.kind === 'push') {
            const entry = { id: nextId++, rank: s.rank, index: -1 }
            heap.push(entry)
            sorted.push(entry)
          } else if (s.kind === 'pop') {
            const first = sorted.shift()
            check(heap.pop() === first, 'pop gives the first')
            if (first) check(first.index === -1, 'what was popped has no place')
          } else if (s.kind === 'remove' && picked) {
            check(heap.removeAt(picked.index) === picked, 'removeAt gives what was there')
            check(picked.index === -1, 'what was removed has no place')
            sorted = sorted.filter((entry) => entry !== picked)
          } else if (s.kind === 'move' && picked) {
            picked.rank = s.rank
            heap.moved(picked.index)
          }
          sorted.sort(byRank)
          check(heap.size === sorted.length, 'its size is how many there are')
          check(heap.peek() === sorted[0], 'peek gives the first')
          for (const entry of sorted) check(heap.values()[entry.index] === entry, 'each is where it was told')
        }
        expect(mistakes).toEqual([])
        const drained: (Entry | undefined)[] = []
        while (heap.size > 0) drained.push(heap.pop())
        expect(drained).toEqual(sorted)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('a heap of plain values', () => {
  it('sorts, equal values included', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 9 })), (numbers) => {
        const heap = new Heap<number>((a, b) => a < b)
        for (const n of numbers) heap.push(n)
        const drained: number[] = []
        while (heap.size > 0) drained.push(heap.pop()!)
        expect(drained).toEqual(numbers.toSorted((a, b) => a - b))
      }),
      { numRuns: 1_000 },
    )
  })

  it('is empty in a well defined way', () => {
    const heap = new Heap<number>((a, b) => a < b)
    expect(heap.peek()).toBeUndefined()
    expect(heap.pop()).toBeUndefined()
    expect(heap.size).toBe(0)
  })
})

describe('a place that is not in the heap', () => {
  it('is refused, so that an item taken out twice does not take out another', () => {
    const heap = new Heap<number>((a, b) => a < b)
    heap.push(1)
    for (const index of [-1, 1, 0.5, Number.NaN]) {
      expect(() => heap.removeAt(index)).toThrow(RangeError)
      expect(() => heap.moved(index)).toThrow(RangeError)
    }
    expect(heap.values()).toEqual([1])
  })
})
