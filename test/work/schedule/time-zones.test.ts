import { describe, expect, it } from 'vitest'
import { nextAfter } from '../../../src/index.js'

/** Every match within a span, as UTC without the year. */
function matches(expr: string, tz: string, from: string, to: string): string[] {
  const found: string[] = []
  for (let at = Date.parse(from) - 1; ; ) {
    const next = nextAfter(expr, at, tz)
    if (next === undefined || next >= Date.parse(to)) return found
    found.push(new Date(next).toISOString().slice(5, 16))
    at = next
  }
}

describe('America/New_York, 8 March 2026: at 02:00 clocks go to 03:00 (07:00 UTC)', () => {
  const day = (expr: string) => matches(expr, 'America/New_York', '2026-03-08T05:00:00Z', '2026-03-09T04:00:00Z')

  // S118 W24
  it('a time inside the gap fires when it is over', () => {
    expect(day('30 2 * * *')).toEqual(['03-08T07:00'])
    expect(nextAfter('30 2 * * *', Date.parse('2026-03-08T05:00:00Z'), 'America/New_York')).toBe(
      Date.parse('2026-03-08T03:00:00-04:00'),
    )
  })

  // W24
  it('so does one of a list whose other times exist', () => {
    expect(day('30 2,3 * * *')).toEqual(['03-08T07:00', '03-08T07:30'])
    expect(day('0,30 2 * * *')).toEqual(['03-08T07:00'])
    expect(day('*/10 2 * * *')).toEqual(['03-08T07:00'])
    expect(day('0 2,3 * * *')).toEqual(['03-08T07:00'])
  })

  it('wildcards fire every real interval', () => {
    expect(day('30 * * * *')).toHaveLength(23)
    expect(day('30 * * * *').slice(0, 4)).toEqual(['03-08T05:30', '03-08T06:30', '03-08T07:30', '03-08T08:30'])
    expect(day('*/15 * * * *')).toHaveLength(23 * 4)
    // Two hours after midnight it is three o'clock.
    expect(day('0 */2 * * *').slice(0, 3)).toEqual(['03-08T05:00', '03-08T07:00', '03-08T08:00'])
  })
})

describe('America/New_York, 1 November 2026: at 02:00 clocks go back to 01:00 (06:00 UTC)', () => {
  const day = (expr: string) => matches(expr, 'America/New_York', '2026-11-01T04:00:00Z', '2026-11-02T05:00:00Z')

  // S118 W24
  it('a time that comes twice fires once, the first time', () => {
    expect(day('30 1 * * *')).toEqual(['11-01T05:30'])
    expect(day('0,30 1,2 * * *')).toEqual(['11-01T05:00', '11-01T05:30', '11-01T07:00', '11-01T07:30'])
  })

  it('wildcards fire every real interval', () => {
    expect(day('30 * * * *')).toHaveLength(25)
    expect(day('*/15 * * * *')).toHaveLength(25 * 4)
    expect(day('*/30 1 * * *')).toEqual(['11-01T05:00', '11-01T05:30', '11-01T06:00', '11-01T06:30'])
  })

  it('asked in the middle of either hour, the answer is the same', () => {
    const ask = (from: string, expr: string) =>
      new Date(nextAfter(expr, Date.parse(from), 'America/New_York')!).toISOString().slice(5, 16)
    expect(ask('2026-11-01T05:45:00Z', '30 1 * * *')).toBe('11-02T06:30')
    expect(ask('2026-11-01T06:15:00Z', '30 1 * * *')).toBe('11-02T06:30')
    expect(ask('2026-11-01T05:45:00Z', '30 * * * *')).toBe('11-01T06:30')
    expect(ask('2026-11-01T05:59:59Z', '0 2 * * *')).toBe('11-01T07:00')
  })
})

describe('Europe/Berlin', () => {
  // W24
  it('29 March 2026: at 02:00 clocks go to 03:00 (01:00 UTC)', () => {
    const day = (expr: string) => matches(expr, 'Europe/Berlin', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z')
    expect(day('15 2 * * *')).toEqual(['03-29T01:00'])
    expect(day('15 2,3 * * *')).toEqual(['03-29T01:00', '03-29T01:15'])
    expect(day('15 * * * *')).toHaveLength(23)
  })

  // W24
  it('25 October 2026: at 03:00 clocks go back to 02:00 (01:00 UTC)', () => {
    const day = (expr: string) => matches(expr, 'Europe/Berlin', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z')
    expect(day('15 2 * * *')).toEqual(['10-25T00:15'])
    expect(day('15 2,3 * * *')).toEqual(['10-25T00:15', '10-25T02:15'])
    expect(day('15 * * * *')).toHaveLength(25)
    expect(day('0 3 * * *')).toEqual(['10-25T02:00'])
  })
})

describe('Australia/Lord_Howe, where clocks change by half an hour', () => {
  // W24
  it('4 October 2026: at 02:00 clocks go to 02:30 (3 October, 15:30 UTC)', () => {
    const day = (expr: string) => matches(expr, 'Australia/Lord_Howe', '2026-10-03T13:30:00Z', '2026-10-04T13:00:00Z')
    expect(day('10 2 * * *')).toEqual(['10-03T15:30'])
    expect(day('10,45 2 * * *')).toEqual(['10-03T15:30', '10-03T15:45'])
    expect(day('*/15 * * * *')).toHaveLength(47 * 2)
    // An hour after one o'clock it is half past two.
    expect(day('0 * * * *').slice(0, 4)).toEqual(['10-03T13:30', '10-03T14:30', '10-03T15:30', '10-03T16:00'])
  })

  // W24
  it('5 April 2026: at 02:00 clocks go back to 01:30 (4 April, 15:00 UTC)', () => {
    const day = (expr: string) => matches(expr, 'Australia/Lord_Howe', '2026-04-04T13:00:00Z', '2026-04-05T13:30:00Z')
    expect(day('45 1 * * *')).toEqual(['04-04T14:45'])
    expect(day('15,45 1 * * *')).toEqual(['04-04T14:15', '04-04T14:45'])
    expect(day('*/15 * * * *')).toHaveLength(49 * 2)
    expect(day('45 * * * *').slice(0, 4)).toEqual(['04-04T13:45', '04-04T14:45', '04-04T15:15', '04-04T16:15'])
  })
})

describe('Pacific/Apia, where 30 December 2011 was left out', () => {
  it('a time of that day fires at the midnight after it', () => {
    expect(matches('0 12 * * *', 'Pacific/Apia', '2011-12-29T00:00:00Z', '2011-12-31T12:00:00Z')).toEqual([
      '12-29T22:00',
      '12-30T10:00',
      '12-30T22:00',
    ])
  })
})
