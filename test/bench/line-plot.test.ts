import { describe, expect, it } from 'vitest'
import { linePlot, niceCeiling, type Plot } from '../../bench/lib/growth/line-plot.js'

const plot = (lines: Plot['lines']) => linePlot({ title: 'Rates', x: 'items', y: 'a second', lines })

/** Where the points of each line stand. */
function places(svg: string): (readonly [number, number])[][] {
  return [...svg.matchAll(/<polyline [^>]*points="([^"]+)"/g)].map(([, points = '']) =>
    points.split(' ').map((point) => point.split(',').map(Number) as unknown as readonly [number, number]),
  )
}

describe('a plot', () => {
  it('has a line for each series, with a point for each figure', () => {
    const svg = plot([
      {
        name: 'Redis',
        points: [
          [10, 5],
          [100, 4],
          [1_000, 3],
        ],
      },
      {
        name: 'SQLite',
        points: [
          [10, 2],
          [1_000, 2],
        ],
      },
    ])

    expect(places(svg).map((line) => line.length)).toEqual([3, 2])
    expect(svg.match(/<circle /g)).toHaveLength(5)
    expect(svg).toContain('>Redis</text>')
  })

  it('gives each power of ten the same room', () => {
    const [[a, b, c] = []] = places(
      plot([
        {
          name: 'one',
          points: [
            [10, 1],
            [100, 1],
            [1_000, 1],
          ],
        },
      ]),
    )

    expect(b![0] - a![0]).toBeCloseTo(c![0] - b![0], 0)
  })

  it('begins at zero, so that half is half as high', () => {
    const svg = plot([
      {
        name: 'one',
        points: [
          [1, 0],
          [10, 5],
          [100, 10],
        ],
      },
    ])
    const [[zero, half, whole] = []] = places(svg)

    expect(zero![1] - half![1]).toBeCloseTo(half![1] - whole![1], 0)
  })

  it('has a place for zero, which a logarithm does not have', () => {
    const [[zero, first, second] = []] = places(
      plot([
        {
          name: 'one',
          points: [
            [0, 1],
            [1_000, 1],
            [10_000, 1],
          ],
        },
      ]),
    )

    expect(first![0] - zero![0]).toBeCloseTo(second![0] - first![0], 0)
  })

  it('shows a single figure, too', () => {
    expect(places(plot([{ name: 'one', points: [[1, 7]] }]))[0]![0]!.every(Number.isFinite)).toBe(true)
  })

  it('keeps names apart where lines end at the same height', () => {
    const svg = plot([
      { name: 'a', points: [[1, 5]] },
      { name: 'b', points: [[1, 5]] },
    ])
    const heights = [...svg.matchAll(/y="([\d.]+)" fill="#[0-9a-f]+">[ab]</g)].map(([, y]) => Number(y))

    expect(Math.abs(heights[0]! - heights[1]!)).toBeGreaterThanOrEqual(14)
  })

  it('is well-formed whatever it is called', () => {
    const svg = linePlot({ title: 'a < b & c', x: '<x>', y: 'y', lines: [{ name: '<&>', points: [[1, 1]] }] })

    expect(svg).toContain('a &lt; b &amp; c')
    expect(svg.replaceAll(/<\/?[a-z]+[^<>]*>/g, '')).not.toMatch(/[<>]/)
  })

  it('of nothing is refused', () => {
    expect(() => plot([])).toThrow('nothing to plot: Rates')
  })
})

describe('the top of an axis', () => {
  it('is a round number that is not exceeded', () => {
    expect([0.3, 1, 1.1, 21_000, 26_000, 99_999].map(niceCeiling)).toEqual([0.5, 1, 2, 25_000, 50_000, 100_000])
  })

  it('exists where everything is zero', () => {
    expect(niceCeiling(0)).toBe(1)
  })
})
