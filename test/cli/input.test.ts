import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.js'
import { parseDuration } from '../../src/cli/input/duration.js'
import { readFilters, selectorText } from '../../src/cli/input/filters.js'
import { parseInstant } from '../../src/cli/input/instant.js'
import { parseArguments } from '../../src/cli/input/parse.js'
import { readError } from '../../src/cli/input/read-error.js'

const NOW = Date.UTC(2026, 0, 31, 12)
const parse = (...args: string[]) => parseArguments(args, COMMANDS, NOW)
const NONE = {
  state: undefined,
  type: undefined,
  queue: undefined,
  tag: undefined,
  class: undefined,
  fingerprint: undefined,
  group: undefined,
  before: undefined,
  after: undefined,
}

describe('a duration as typed', () => {
  it.each([
    ['250', 250],
    ['250ms', 250],
    ['2.5s', 2_500],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['2d', 172_800_000],
    ['1w', 604_800_000],
    ['0', 0],
  ])('%s is %d ms', (text, ms) => expect(parseDuration(text)).toBe(ms))

  it.each(['', 'm', '5 m', '-5m', '5y', '1h-30m', '1e3', '999999999999999w', 'Infinity', '0x10'])(
    '%j is none',
    (text) => expect(parseDuration(text)).toBeUndefined(),
  )
})

describe('a time as typed', () => {
  it.each([
    ['2026-01-31', Date.UTC(2026, 0, 31)],
    ['2026-01-31T14:05', Date.UTC(2026, 0, 31, 14, 5)],
    ['2026-01-31 14:05:06.7', Date.UTC(2026, 0, 31, 14, 5, 6, 700)],
    ['2026-01-31T14:05:00+02:00', Date.UTC(2026, 0, 31, 12, 5)],
    ['1769860800000', 1_769_860_800_000],
    ['2h', NOW - 7_200_000],
  ])('%s', (text, at) => expect(parseInstant(text, NOW)).toBe(at))

  it.each(['', 'yesterday', '2026-02-30', '2026-13-01', '31.01.2026', '99999999999999999', '999999w'])(
    '%j is none',
    (text) => expect(parseInstant(text, NOW)).toBeUndefined(),
  )
})

describe('what was typed', () => {
  it('is a command with its flags and operands, in any order', () => {
    const { command, flags, operands } = parse('--state', 'dead', 'list', 'type:charge', '-n', '5', '--json')
    expect(command?.name).toBe('list')
    expect(flags).toMatchObject({ state: 'dead', limit: 5, json: true, debug: false })
    expect(operands).toEqual(['type:charge'])
  })

  it('may be an id that looks like a flag, behind --', () => {
    expect(parse('show', '--', '--weird-id').operands).toEqual(['--weird-id'])
  })

  it.each([
    [['lst'], 'There is no command "lst". Did you mean "list"?'],
    [['redrve', '--all'], 'Did you mean "redrive"?'],
    [['list', '--stat', 'dead'], 'millrace list has no flag --stat. Did you mean "--state"?'],
    [['show', '--watch', 'x'], 'millrace show has no flag --watch.'],
    [['list', '--state', 'ded'], '--state must be one of'],
    [['list', '--state', 'ded'], 'Did you mean "dead"?'],
    [['list', '--state'], '--state needs a value: --state <state>'],
    [['list', '--state', '--json'], '--state needs a value'],
    [['list', '--json=yes'], '--json takes no value'],
    [['list', '--limit', '0'], '--limit must be a whole number of at least 1'],
    [['list', '--limit', '1.5'], '--limit must be a whole number'],
    [['list', '--type='], '--type must not be empty'],
    [['list', '--state', 'dead', '--state', 'active'], '--state was given twice'],
    [['overview', '--interval', '1ms'], '--interval must be at least 100ms'],
    [['list', '--before', 'soon'], '--before must be a time such as'],
    [['list', '-z'], 'has no flag -z'],
    [['letters', '-4jC'], 'has no flag -4. An id that begins with a dash comes after " -- ".'],
    [['list', '--__proto__', 'x'], 'has no flag --__proto__'],
  ])('%j is answered with what is wrong', (args, message) => {
    expect(() => parse(...args)).toThrow(message)
  })
})

describe('a search', () => {
  it('is flags and words together', () => {
    const query = readFilters({ ...NONE, state: 'dead' }, ['type:a:b', 'group:g-1', 'before:2h'], NOW)
    expect(query).toEqual({ state: 'dead', type: 'a:b', groupId: 'g-1', before: NOW - 7_200_000 })
    expect(selectorText(query)).toBe('state:dead type:a:b before:2026-01-31T10:00:00.000Z group:g-1')
  })

  it('has a window of time', () => {
    const query = readFilters(NONE, ['after:02:00', 'before:03:00:30'], NOW)
    expect(selectorText(query)).toBe('after:2026-01-31T02:00:00.000Z before:2026-01-31T03:00:30.000Z')
    // What is still to come today was meant of yesterday.
    expect(selectorText(readFilters(NONE, ['after:23:30'], NOW))).toBe('after:2026-01-30T23:30:00.000Z')
    expect(() => readFilters(NONE, ['after:24:00'], NOW)).toThrow('must be a time')
  })

  it.each([
    [['dead'], 'Did you mean state:dead?'],
    [['stat:dead'], 'Did you mean "state"?'],
    [['state:ded'], 'Did you mean "dead"?'],
    [['state:dead', 'state:active'], 'state was given twice'],
    [[':x'], 'is not a filter'],
    [['type:'], 'must not be empty'],
  ])('%j is refused with a hint', (words, message) => {
    expect(() => readFilters(NONE, words, NOW)).toThrow(message)
  })
})

describe('an error as typed', () => {
  it('is text, a name with text, or JSON', () => {
    expect(readError('it broke')).toMatchObject({ name: 'Error', message: 'it broke' })
    expect(readError('PoisonError: no such order')).toMatchObject({ name: 'PoisonError', message: 'no such order' })
    expect(readError('{"code":"ECONNRESET","cause":{"status":503}}')).toMatchObject({
      code: 'ECONNRESET',
      cause: { status: 503 },
    })
  })

  it('is nothing but that: names of JSON are no way into objects', () => {
    const error = readError('{"__proto__":{"code":"POISON"},"message":"x"}')
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype)
    expect('stack' in error && error.stack).toBeFalsy()
  })

  it.each(['', '   ', '{"a":'])('%j is refused', (text) => expect(() => readError(text)).toThrow())
})
