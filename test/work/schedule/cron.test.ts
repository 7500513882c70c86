import { describe, expect, it } from 'vitest'
import { nextAfter, parseCron } from '../../../src/index.js'

const all = (from: number, to: number) => new Set(Array.from({ length: to - from + 1 }, (_, n) => from + n))

describe('a cron expression', () => {
  it('is read into sets of values', () => {
    expect(parseCron('*/15 9-17 1,15 JAN-MAR mon')).toEqual({
      minute: new Set([0, 15, 30, 45]),
      hour: all(9, 17),
      dom: new Set([1, 15]),
      month: new Set([1, 2, 3]),
      dow: new Set([1]),
      domRestricted: true,
      dowRestricted: true,
    })
    expect(parseCron('  * * * *\t* ')).toEqual({
      minute: all(0, 59),
      hour: all(0, 23),
      dom: all(1, 31),
      month: all(1, 12),
      dow: all(0, 6),
      domRestricted: false,
      dowRestricted: false,
    })
  })

  // S118 W24
  it('knows Sunday as 7, ranges up to it, and `a/b` as from a on', () => {
    expect(parseCron('0 0 * * 7').dow).toEqual(new Set([0]))
    expect(parseCron('0 0 * * 5-7').dow).toEqual(new Set([0, 5, 6]))
    expect(parseCron('0 0 * * FRI-SUN').dow).toEqual(new Set([0, 5, 6]))
    expect(parseCron('0 0 * * SUN-TUE').dow).toEqual(new Set([0, 1, 2]))
    expect(parseCron('0 0 * * 7/2').dow).toEqual(new Set([0]))
    expect(parseCron('5/15 * * * *').minute).toEqual(new Set([5, 20, 35, 50]))
    expect(parseCron('10-20/5 * * * *').minute).toEqual(new Set([10, 15, 20]))
    expect(parseCron('05 00 * * *').minute).toEqual(new Set([5]))
  })

  it.each([
    ['@hourly', '0 * * * *'],
    ['@daily', '0 0 * * *'],
    ['@midnight', '0 0 * * *'],
    ['@weekly', '0 0 * * 0'],
    ['@monthly', '0 0 1 * *'],
    ['@Yearly', '0 0 1 1 *'],
    ['@annually', '0 0 1 1 *'],
  ])('%s is %s', (nickname, spelt) => {
    expect(parseCron(nickname)).toEqual(parseCron(spelt))
  })

  // S117
  it('says how many fields it expected', () => {
    expect(() => parseCron('* * * *')).toThrow('cron: expected 5 fields, got 4 in "* * * *"')
    expect(() => parseCron('')).toThrow('cron: expected 5 fields, got 0 in ""')
    expect(() => parseCron('0 0 0 * * *')).toThrow('cron: expected 5 fields, got 6')
    expect(() => parseCron(5 as never)).toThrow(/^cron: /)
  })

  it.each([
    '60 * * * *',
    '*/0 * * * *',
    '5-3 * * * *',
    '5, * * * *',
    ',5 * * * *',
    '-5 * * * *',
    '+5 * * * *',
    '1e1 * * * *',
    '0x10 * * * *',
    '1-2-3 * * * *',
    '*/5/2 * * * *',
    '5- * * * *',
    '5/ * * * *',
    '/5 * * * *',
    '*/-5 * * * *',
    '*/1.5 * * * *',
    '1.5 * * * *',
    '** * * * *',
    '*-5 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * 32 * *',
    '* * * 0 *',
    '* * * 13 *',
    '* * * * 8',
    '* * * MON *',
    '* * * * JAN',
    '* * L * *',
    '* * ? * *',
    '* * * * 5#2',
    'MON * * * *',
    '@reboot',
    '@',
    '@toString',
    '@__proto__',
    // S117 S118 W24
  ])('refuses %s', (expr) => {
    expect(() => parseCron(expr)).toThrow(/^cron: /)
    expect(() => nextAfter(expr, 0)).toThrow(/^cron: /)
  })
})

describe('the next match', () => {
  const utc = (text: string) => Date.parse(text)

  // S117
  it('is the start of a minute, strictly after', () => {
    expect(nextAfter('* * * * *', utc('2026-06-13T10:00:30Z'))).toBe(utc('2026-06-13T10:01:00Z'))
    expect(nextAfter('* * * * *', utc('2026-06-13T10:00:00Z'))).toBe(utc('2026-06-13T10:01:00Z'))
    expect(nextAfter('* * * * *', utc('2026-06-13T10:00:59.999Z'))).toBe(utc('2026-06-13T10:01:00Z'))
    expect(nextAfter('* * * * *', utc('2026-06-13T10:00:00Z') - 1)).toBe(utc('2026-06-13T10:00:00Z'))
  })

  // S117
  it('is reckoned in local time', () => {
    const from = new Date(2026, 5, 13, 10, 7)
    expect(nextAfter('*/15 * * * *', from.getTime())).toBe(new Date(2026, 5, 13, 10, 15).getTime())
  })

  // S117 S118
  it('is found up to eight years ahead, and does not take long to be missed', () => {
    expect(nextAfter('0 0 30 2 *', utc('2026-01-01T00:00:00Z'), 'UTC')).toBeUndefined()
    expect(nextAfter('0 0 29 2 *', utc('2026-03-01T00:00:00Z'), 'UTC')).toBe(utc('2028-02-29T00:00:00Z'))
    expect(nextAfter('0 0 29 2 *', utc('2096-02-29T00:00:00Z'), 'UTC')).toBe(utc('2104-02-29T00:00:00Z'))
    expect(nextAfter('0 0 31 4,6,9,11 *', utc('2026-03-01T00:00:00Z'), 'UTC')).toBeUndefined()
    expect(nextAfter('0 0 30 2 1', utc('2026-01-01T00:00:00Z'), 'UTC')).toBe(utc('2026-02-02T00:00:00Z'))
  })

  it('is on either day when both are restricted', () => {
    const from = utc('2026-06-01T00:00:00Z')
    // The 1st was a Monday; Friday is the 5th.
    expect(nextAfter('0 0 13 * FRI', from, 'UTC')).toBe(utc('2026-06-05T00:00:00Z'))
    expect(nextAfter('0 0 1-31 * FRI', from, 'UTC')).toBe(utc('2026-06-02T00:00:00Z'))
    expect(nextAfter('0 0 * * FRI', from, 'UTC')).toBe(utc('2026-06-05T00:00:00Z'))
  })

  it('refuses a time that is none, and a zone that is none', () => {
    expect(() => nextAfter('* * * * *', Number.NaN)).toThrow(/^cron: /)
    expect(() => nextAfter('* * * * *', 0, 'Mars/Olympus')).toThrow(/nextAfter\.tz.*Mars\/Olympus/)
  })
})
