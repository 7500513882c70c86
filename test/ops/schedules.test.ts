import { describe, expect, it } from 'vitest'
import { scheduleReport } from '../../src/ops/fleet/schedules.js'
import { zoneChanges } from '../../src/ops/fleet/zone-changes.js'
import { NEVER } from '../../src/work/schedule/config.js'
import { nextAfter } from '../../src/work/schedule/next-after.js'
import { zoneOf } from '../../src/work/schedule/zone.js'

const at = (iso: string) => Date.parse(iso)
const iso = (times: readonly number[]) => times.map((time) => new Date(time).toISOString())

describe('a schedule', () => {
  it('shows its next fires in its zone, and where its clocks change in between', () => {
    const report = scheduleReport(
      { name: 'close', spec: 'TZ=Europe/Berlin 30 2 * * *', nextAt: at('2026-03-27T01:30:00Z') },
      at('2026-03-27T00:00:00Z'),
      4,
    )
    expect(report.timeZone).toBe('Europe/Berlin')
    // On the 29th there is no half past two: it fires when the gap ends.
    expect(iso(report.fires)).toEqual([
      '2026-03-27T01:30:00.000Z',
      '2026-03-28T01:30:00.000Z',
      '2026-03-29T01:00:00.000Z',
      '2026-03-30T00:30:00.000Z',
    ])
    expect(report.changes).toEqual([{ at: at('2026-03-29T01:00:00Z'), byMs: 3_600_000 }])
  })

  it('has no changes where its clocks never change', () => {
    const report = scheduleReport({ name: 'n', spec: 'TZ=UTC 0 0 1 * *', nextAt: at('2026-02-01T00:00:00Z') }, 0, 12)
    expect(report.fires).toHaveLength(12)
    expect(report.changes).toEqual([])
  })

  it('continues from now when it is overdue, not through missed occurrences', () => {
    const report = scheduleReport(
      { name: 'n', spec: 'TZ=UTC 0 * * * *', nextAt: at('2026-01-01T00:00:00Z') },
      at('2026-01-01T05:30:00Z'),
      3,
    )
    expect(iso(report.fires)).toEqual([
      '2026-01-01T00:00:00.000Z',
      '2026-01-01T06:00:00.000Z',
      '2026-01-01T07:00:00.000Z',
    ])
  })

  it('shows only the agreed time where the rule is a function, is over, or cannot be followed from here', () => {
    const nextAt = at('2026-01-01T00:00:00Z')
    const fires = (spec: string, next = nextAt) => scheduleReport({ name: 'n', spec, nextAt: next }, 0, 5)
    expect(fires('next()')).toMatchObject({ fires: [nextAt], changes: [] })
    expect(fires('next()')).not.toHaveProperty('timeZone')
    expect(fires('next()', NEVER).fires).toEqual([])
    expect(fires('TZ=Mars/Olympus 0 0 * * *')).toMatchObject({ fires: [nextAt], changes: [], timeZone: 'Mars/Olympus' })
    expect(fires('every full moon').fires).toEqual([nextAt])
    // The rule leads to another time: it was made in a zone that is not ours.
    expect(fires('7 7 * * *', nextAt + 1).fires).toEqual([nextAt + 1])
  })

  it('is read in local time where it names no zone', () => {
    const nextAt = nextAfter('15 4 * * *', at('2026-01-01T00:00:00Z'))!
    const report = scheduleReport({ name: 'n', spec: '15 4 * * *', nextAt }, nextAt - 1, 2)
    expect(report.fires).toHaveLength(2)
    expect(report).not.toHaveProperty('timeZone')
  })
})

it('finds each change of a zone once, in both directions', () => {
  const changes = zoneChanges(zoneOf('America/New_York'), at('2026-01-01T00:00:00Z'), at('2027-01-01T00:00:00Z'))
  expect(changes).toEqual([
    { at: at('2026-03-08T07:00:00Z'), byMs: 3_600_000 },
    { at: at('2026-11-01T06:00:00Z'), byMs: -3_600_000 },
  ])
  expect(zoneChanges(zoneOf('Asia/Tokyo'), 0, at('2027-01-01T00:00:00Z'))).toEqual([])
})
