import { describe, expect, it } from 'vitest'
import { missedLimits } from '../../bench/lib/growth/limits.js'
import { growthPage } from '../../bench/lib/growth/page.js'
import { type GrowthOf, type RestOf, type Stored, withMeasured } from '../../bench/lib/growth/stored.js'

const circumstances = {
  at: '2026-01-01 00:00 UTC',
  commit: '0000000',
  machine: 'a test',
  about: 'Redis',
  calibrations: [{ ms: 30, cpuMs: 30 }],
}

/** Waiting items in tenfold numbers, and what one of them costs then. */
const pending = (kind: GrowthOf['kind'], ...costs: readonly number[]): GrowthOf => ({
  what: 'pending',
  kind,
  circumstances,
  points: costs.map((us, i) => ({
    size: 10_000 * 10 ** i,
    figures: { clientUs: us - 1, serverUs: 1, drain: 1e6 / us },
  })),
})

const rest = (idleClient: number): RestOf => ({
  what: 'rest',
  kind: 'redis',
  circumstances,
  contenders: [
    { name: 'millrace', idleClient, idleServer: 0.1, pending: 900, ended: 1_100 },
    { name: 'bullmq', idleClient: 9, pending: 800, ended: 20 },
  ],
})

const stored = (...measured: Stored['measured']): Stored => ({ scale: 'medium', measured })

describe('what was measured again', () => {
  it('takes the place of what was known of the same axis and backend, and of nothing else', () => {
    const before = stored(pending('redis', 1), pending('sqlite', 2), rest(0.1))

    expect(withMeasured(before, [pending('redis', 3)])).toEqual(
      stored(pending('sqlite', 2), rest(0.1), pending('redis', 3)),
    )
  })
})

describe('the limits', () => {
  it('let an item of a long backlog cost a quarter more than one of a short backlog', () => {
    expect(missedLimits(stored(pending('redis', 100, 200, 125)))).toEqual([])
    expect(missedLimits(stored(pending('redis', 100, 126)))).toEqual([
      'Redis: with 100,000 items waiting one takes 1.26 times the processor time that it takes with 10,000, and must take at most 1.25 times as much.',
    ])
  })

  it('let an idle worker of ours take one percent of a core, and peers what they like', () => {
    expect(missedLimits(stored(rest(1)))).toEqual([])
    expect(missedLimits(stored(rest(1.2)))).toEqual([
      'Redis: an idle worker takes 1.20 % of a core, and must take at most 1 %.',
    ])
  })

  it('are not held against a run of seconds', () => {
    expect(missedLimits({ scale: 'small', measured: [pending('redis', 1, 100), rest(50)] })).toEqual([])
  })
})

describe('the page', () => {
  it('has a plot with a line for each backend, and a table of what was measured', () => {
    const { page, plots } = growthPage(stored(pending('redis', 50, 52), pending('sqlite', 40, 41)))

    expect([...plots.keys()]).toEqual(['growth-pending.svg'])
    expect(plots.get('growth-pending.svg')!.match(/<polyline /g)).toHaveLength(2)
    expect(page).toContain('![Items that wait](growth-pending.svg)')
    expect(page).toContain('| 100,000 | 51.0 | 1.00 | 19,231 |')
  })

  it('has what a contender takes at rest', () => {
    expect(growthPage(stored(rest(0.25))).page).toContain('| Redis | millrace | 0.25 % | 0.10 % | 900 | 1,100 |')
  })
})
