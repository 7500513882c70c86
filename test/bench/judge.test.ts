import { describe, expect, it } from 'vitest'
import type { Row } from '../../bench/lib/compare/figures.js'
import { BARS } from '../../bench/lib/compare/floors.js'
import { complaints, judge, short } from '../../bench/lib/compare/judge.js'
import { drainRow, figuresOf } from './planted.js'

const verdictOf = (row: Row, isQuick = false) => judge({ rows: [row], isQuick })[0]!.verdict

describe('a rate with a floor of 3 and a goal of 6', () => {
  it('is missed when the median round is below the floor', () => {
    expect(verdictOf(drainRow([29, 29, 70], [10, 10, 10]))).toBe('missed')
  })

  it('meets its floor exactly at it, and its goal exactly at it', () => {
    expect(verdictOf(drainRow([30, 30, 10], [10, 10, 10]))).toBe('floor')
    expect(verdictOf(drainRow([60, 60, 10], [10, 10, 10]))).toBe('goal')
  })

  it('is held against the round of the same number, since what slows one slows the other', () => {
    expect(verdictOf(drainRow([40, 4, 400], [10, 1, 100]))).toBe('floor')
  })
})

describe('a quick run', () => {
  it('counts a floor as missed only when no round reached it', () => {
    expect(verdictOf(drainRow([29, 29, 31], [10, 10, 10]), true)).toBe('undecided')
    expect(verdictOf(drainRow([29, 29, 29], [10, 10, 10]), true)).toBe('missed')
  })

  it('does not judge a 99th percentile', () => {
    const row: Row = {
      kind: 'redis',
      measure: 'p99 at 500/s',
      unit: 'ms',
      ours: { name: 'millrace', values: [9, 9] },
      peers: [{ name: 'bullmq', values: [1, 1] }],
    }

    expect(verdictOf(row, true)).toBe('not judged')
    expect(verdictOf(row)).toBe('missed')
  })
})

describe('a time', () => {
  const idle = (ours: number): Row => ({
    kind: 'redis',
    measure: 'idle p50',
    unit: 'ms',
    ours: { name: 'millrace', values: [ours] },
    peers: [{ name: 'bullmq', values: [2] }],
  })

  it('is better when it is less', () => {
    expect(verdictOf(idle(2.1))).toBe('missed')
    expect(verdictOf(idle(2))).toBe('floor')
    expect(verdictOf(idle(1))).toBe('goal')
  })
})

describe('several peers', () => {
  const row = (unit: '/s' | 'ms'): Row => ({
    kind: 'postgres',
    measure: unit === '/s' ? 'drain' : 'idle p50',
    unit,
    ours: { name: 'millrace', values: [10, 10, 10] },
    peers: [
      { name: 'graphile-worker', values: [8, 8, 100] },
      { name: 'pg-boss', values: [5, 5, 5] },
    ],
  })

  it('are represented by the one with the best median', () => {
    expect(judge({ rows: [row('/s')], isQuick: false })[0]!.best.name).toBe('graphile-worker')
    expect(judge({ rows: [row('ms')], isQuick: false })[0]!.best.name).toBe('pg-boss')
  })

  it('are needed at least once', () => {
    expect(() => judge({ rows: [{ ...row('/s'), peers: [] }], isQuick: false })).toThrow(
      'nothing was measured beside ours',
    )
  })
})

describe('processor time', () => {
  it('is compared with that of client and server together', () => {
    const [judgement] = judge({
      isQuick: false,
      rows: [
        {
          ...drainRow([1], [1]),
          ours: { name: 'millrace', values: [1], processor: [{ clientUs: 10, serverUs: 5 }] },
          peers: [{ name: 'bullmq', values: [1], processor: [{ clientUs: 20, serverUs: 40 }] }],
        },
      ],
    })

    expect(judgement!.processorRatio).toEqual({ median: 0.25, min: 0.25, max: 0.25 })
  })
})

describe('what is wrong with a run', () => {
  it('is nothing when every floor is met', () => {
    expect(complaints(figuresOf([drainRow([30], [10])]))).toEqual([])
  })

  it('is a sentence for each missed floor', () => {
    expect(complaints(figuresOf([drainRow([28_000, 29_000, 27_000], [10_000, 10_000, 10_000])]))).toEqual([
      'Redis, drain: ours is 2.80 of bullmq 6.7.0 (2.70 to 2.90 over 3 rounds; 28,000 against 10,000 /s), and must be at least 3.',
    ])
  })

  it('is also whatever went wrong while it was measured, however fast it was', () => {
    const faults = ['Redis: millrace ran 1 of 100 items a second time.']

    expect(complaints(figuresOf([drainRow([90], [10])], { faults }))).toEqual(faults)
  })
})

describe('every floor', () => {
  it('is not stricter than its goal', () => {
    for (const bars of Object.values(BARS)) {
      for (const [measure, { floor, goal }] of Object.entries(bars)) {
        const isTime = measure === 'idle p50' || measure === 'p99 at 500/s'
        expect(isTime ? floor >= goal : floor <= goal, measure).toBe(true)
      }
    }
  })
})

describe('a figure', () => {
  it('has as many digits as mean something', () => {
    expect([23_456.7, 141.6, 7.46, 0.934, 0.0164, 0].map(short)).toEqual([
      '23,457',
      '142',
      '7.46',
      '0.93',
      '0.016',
      '0.00',
    ])
  })
})
