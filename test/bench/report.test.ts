import { describe, expect, it } from 'vitest'
import { calibrationLine, page } from '../../bench/lib/compare/report.js'
import { drainRow, figuresOf } from './planted.js'

describe('the page of a run', () => {
  it('shows each row with its ratio, its range, its floor and what came of it', () => {
    const text = page(figuresOf([drainRow([28_000, 29_000, 27_000], [10_000, 10_000, 10_000])]))

    expect(text).toContain('| Redis, drain, /s | 28,000 | 10,000 (bullmq) | 2.80 (2.70–2.90) | 3 | 6 | **missed** |')
    expect(text).toContain('- Redis, drain: ours is 2.80 of bullmq 6.7.0')
  })

  it('says so when nothing is wrong', () => {
    expect(page(figuresOf([drainRow([90], [10])]))).toContain('Every floor is met.')
  })
})

describe('the calibration', () => {
  const of = (...times: number[]) => calibrationLine({ calibrations: times.map((ms) => ({ ms, cpuMs: 30 })) })

  it('tells how steady the machine was', () => {
    expect(of(30, 31, 29)).toBe('A fixed computation between them took 30.0 ms (29.0 to 31.0).')
  })

  it('warns of neighbours that came and went', () => {
    expect(of(30, 31, 90)).toContain('The machine was busy with other work')
  })

  it('warns of neighbours that were there all the time', () => {
    expect(of(80, 81, 82)).toContain('The machine was busy with other work')
  })
})
