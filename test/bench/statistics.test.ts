import { describe, expect, it } from 'vitest'
import { median, pairedRatios, percentile, spreadOf } from '../../bench/lib/compare/statistics.js'

describe('the middle of figures', () => {
  it('is the one in the middle, or halfway between the two there', () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([4, 1, 3, 2])).toBe(2.5)
  })

  it('comes with the least and the most', () => {
    expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 })
  })

  it('leaves the figures in their order', () => {
    const figures = [3, 1, 2]
    median(figures)
    percentile(figures, 0.5)

    expect(figures).toEqual([3, 1, 2])
  })

  it('is not made up where there are none', () => {
    expect(() => median([])).toThrow('nothing')
    expect(() => percentile([], 0.99)).toThrow('nothing')
  })
})

describe('a percentile', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i)

  it('is the value that so many do not exceed', () => {
    expect(percentile(hundred, 0.99)).toBe(99)
    expect(percentile(hundred, 0.5)).toBe(50)
    expect(percentile(hundred, 1)).toBe(100)
  })

  it('of few values is one of them', () => {
    expect(percentile([7], 0.99)).toBe(7)
    expect(percentile([7, 8], 0)).toBe(7)
  })
})

describe('ratios', () => {
  it('are taken round by round', () => {
    expect(pairedRatios([10, 30], [20, 10])).toEqual([0.5, 3])
  })

  it('are refused when a round of one side is missing', () => {
    expect(() => pairedRatios([1, 2], [1])).toThrow('2 rounds of ours cannot be paired with 1 of theirs')
  })
})
