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
        for (const s of steps) {
          const picked = 'pick' in s && sorted.length > 0 ? sorted[s.pick % sorted.length]! : undefined
          if (s.kind === 'push') {
            const entry = { id: nextId++, rank: s.rank, index: -1 }
            heap.push(entry)
            sorted.push(entry)
          } else if (s.kind === 'pop') {
            const first = sorted.shift()
            expect(heap.pop()).toBe(first)
            if (first) expect(first.index).toBe(-1)
          } else if (s.kind === 'remove' && picked) {
            expect(heap.removeAt(picked.index)).toBe(picked)
            expect(picked.index).toBe(-1)
            sorted = sorted.filter((entry) => entry !== picked)
          } else if (s.kind === 'move' && picked) {
            picked.rank = s.rank
            heap.moved(picked.index)
          }
          sorted.sort(byRank)
          expect(heap.size).toBe(sorted.length)
          expect(heap.peek()).toBe(sorted[0])
          for (const entry of sorted) expect(heap.values()[entry.index]).toBe(entry)
        }
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
