import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MillraceError } from '../../src/core/error.js'
import {
  booleanOption,
  functionOption,
  integerOption,
  numberOption,
  OptionError,
  OptionRangeError,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
  UnknownOptionError,
} from '../../src/core/options.js'
import { closestName, editDistance } from '../../src/core/text/closest-name.js'
import { describeValue } from '../../src/core/text/describe-value.js'
import { allThrowing, revoked, thrown } from './hostile.js'

const caught = (run: () => unknown): unknown => {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('a number outside its rule', () => {
  it('is a RangeError with a code that names the option, what is allowed and what was given', () => {
    const error = caught(() => integerOption('retry.maxAttempts', 0, { min: 1, default: 5 }))
    expect(error).toBeInstanceOf(RangeError)
    expect(error).toBeInstanceOf(OptionRangeError)
    expect(error).toMatchObject({
      code: 'BAD_OPTION',
      option: 'retry.maxAttempts',
      message: 'retry.maxAttempts must be an integer >= 1, got 0',
      facts: { option: 'retry.maxAttempts', allowed: 'an integer >= 1', given: '0' },
    })
    expect(error).toHaveProperty('code', 'BAD_OPTION')
  })

  it.each([
    [Number.NaN, {}],
    [Infinity, {}],
    [-Infinity, { infinite: true }],
    ['5', {}],
    [null, { default: 1 }],
    [1.5, { integer: true }],
    [0, { above: 0 }],
    [11, { max: 10 }],
    [-1, { min: 0 }],
    [Infinity, { infinite: true, max: 10 }],
    [5n, {}],
  ])('refuses %s under %o', (value, rule) => {
    expect(() => numberOption('x', value, rule)).toThrow(RangeError)
  })

  it('only undefined takes the default, and without one it is required', () => {
    expect(numberOption('x', undefined, { default: 7 })).toBe(7)
    expect(numberOption('x', Infinity, { infinite: true })).toBe(Infinity)
    expect(() => numberOption('x', undefined)).toThrow('x is required: it must be a finite number')
  })
})

describe('a value of the wrong type', () => {
  it('is a TypeError with the same code', () => {
    const error = caught(() => functionOption('w.random', 5))
    expect(error).toBeInstanceOf(TypeError)
    expect(error).toBeInstanceOf(OptionTypeError)
    expect(error).toMatchObject({ code: 'BAD_OPTION', message: 'w.random must be a function, got 5' })
    expect(() => booleanOption('w.b', 'yes')).toThrow('w.b must be true or false, got "yes"')
    expect(() => stringOption('w.s', '')).toThrow('w.s must be a non-empty string, got ""')
    expect(() => oneOfOption('w.o', 'c', ['a', 'b'])).toThrow(`w.o must be 'a' or 'b', got "c"`)
    expect(() => optionsObject('w', null as unknown as object, [])).toThrow('w must be an object of options, got null')
    expect(() => optionsObject('w', [] as object, [])).toThrow('w must be an object of options, got an array')
  })

  it('what fits is returned as it is, and undefined takes the fallback', () => {
    const f = () => 1
    expect(functionOption('f', f)).toBe(f)
    expect(functionOption('f', undefined, f)).toBe(f)
    expect(booleanOption('b', false, true)).toBe(false)
    expect(booleanOption('b', undefined, true)).toBe(true)
    expect(stringOption('s', undefined, 'x')).toBe('x')
    expect(oneOfOption('o', 'a', ['a', 'b'])).toBe('a')
    expect(oneOfOption('o', undefined, ['a', 'b'], 'b')).toBe('b')
    expect(optionsObject('w', undefined, [])).toEqual({})
  })
})

describe('an option that does not exist', () => {
  const names = ['maxAttempts', 'backoff', 'leaseMs'] as const
  const read = (given: Record<string, unknown>) => optionsObject('retry', given, names)

  it('is refused with the closest name that does', () => {
    const error = caught(() => read({ maxAtempts: 3 }))
    expect(error).toBeInstanceOf(UnknownOptionError)
    expect(error).toBeInstanceOf(MillraceError)
    expect(error).toMatchObject({ code: 'BAD_OPTION', option: 'retry.maxAtempts', closest: 'maxAttempts' })
    expect((error as Error).message).toBe(
      '"maxAtempts" is not an option of retry. Did you mean "maxAttempts"? Options: maxAttempts, backoff, leaseMs.',
    )
  })

  it('is refused without a suggestion when nothing is near', () => {
    expect(() => read({ colour: 'red' })).toThrow(
      '"colour" is not an option of retry. Options: maxAttempts, backoff, leaseMs.',
    )
    expect(() => optionsObject('f', { a: 1 } as object, [])).toThrow('"a" is not an option of f. It takes none.')
  })

  it.each([
    ['leasMs', 'leaseMs'],
    ['leasems', 'leaseMs'],
    ['lease', 'leaseMs'],
    ['bakcoff', 'backoff'],
    ['MAXATTEMPTS', 'maxAttempts'],
  ])('reads %s as a slip for %s', (slip, meant) => {
    expect(closestName(slip, names)).toBe(meant)
  })

  it.each(['x', '', 'zzzzzzzz', 'a'.repeat(1000)])('does not guess at %s', (name) => {
    expect(closestName(name, names)).toBeUndefined()
  })

  it('does not guess at a letter by another letter', () => {
    expect(closestName('a', ['b', 'id'])).toBeUndefined()
    expect(closestName('ab', ['xy'])).toBeUndefined()
  })

  it('takes one slip in a short word, and a forgotten suffix', () => {
    expect(closestName('foo', ['log'])).toBeUndefined()
    expect(closestName('test', ['list'])).toBeUndefined()
    expect(closestName('lgo', ['log'])).toBe('log')
    expect(closestName('fase', ['phase'])).toBe('phase')
    expect(closestName('base', ['baseMs', 'case'])).toBe('case')
    expect(closestName('base', ['baseMs'])).toBe('baseMs')
  })

  it('counts a swap of neighbours as one edit, and distances are symmetric', () => {
    expect(editDistance('abcd', 'abdc')).toBe(1)
    expect(editDistance('', 'abc')).toBe(3)
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a))
        expect(editDistance(a, b) === 0).toBe(a === b)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('options that contradict each other', () => {
  it('are an OptionError, which is a MillraceError', () => {
    const error = new OptionError('tx', 'given together with a backend that can enlist', true)
    expect(error).toBeInstanceOf(MillraceError)
    expect(error.message).toBe('tx must be given together with a backend that can enlist, got true')
    expect(error).toHaveProperty('code', 'BAD_OPTION')
  })
})

describe('showing a value in a message', () => {
  it('is short, says what it is, and spills nothing', () => {
    expect(describeValue('a'.repeat(100))).toBe(`"${'a'.repeat(60)}…"`)
    expect(describeValue({ password: 'secret' })).toBe('an object')
    expect(describeValue(() => 1)).toBe('a function')
    expect(describeValue(Symbol('s'))).toBe('a symbol')
    expect(describeValue(10n ** 100n).length).toBeLessThan(70)
    expect(describeValue(-0)).toBe('-0')
    expect(describeValue(new Date(Number.NaN))).toBe('an invalid Date')
    expect(describeValue(new Date(0))).toBe('the Date 1970-01-01T00:00:00.000Z')
    expect(describeValue(revoked())).toBe('an object')
    expect(describeValue(allThrowing())).toBe('an object')
  })

  it('never throws, and every bad value gets an error that names its option', () => {
    fc.assert(
      fc.property(thrown(), (make) => {
        const value = make()
        expect(describeValue(value).length).toBeLessThan(400)
        for (const read of [
          () => numberOption('my.option', value, { min: 0 }),
          () => functionOption('my.option', value),
          () => booleanOption('my.option', value),
        ]) {
          try {
            read()
          } catch (error) {
            expect(error).toHaveProperty('code', 'BAD_OPTION')
            expect((error as Error).message).toContain('my.option')
          }
        }
      }),
      { numRuns: 1000 },
    )
  })
})
