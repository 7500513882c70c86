import { afterEach, describe, expect, it } from 'vitest'
import { MillraceError } from '../../src/core/error.js'
import { classify } from '../../src/core/failure/classify.js'
import { PoisonError, RetryableError } from '../../src/core/failure/failure-errors.js'
import { newId, newToken, setIdGenerator, setTokenGenerator } from '../../src/core/ids.js'
import { getDefaultRetryOptions, setDefaultRetryOptions } from '../../src/core/retry/retry-defaults.js'

/** The same file once more, as another copy of the package would have it. */
const copyOf = <T>(file: string): Promise<T> => import(/* @vite-ignore */ `../../src/core/${file}?another-copy`)

const other = {
  ...(await copyOf<typeof import('../../src/core/error.js')>('error.js')),
  ...(await copyOf<typeof import('../../src/core/ids.js')>('ids.js')),
  ...(await copyOf<typeof import('../../src/core/retry/retry-defaults.js')>('retry/retry-defaults.js')),
}

/** The classes of the other copy have the names of ours, and nothing else in common with them. */
const others = (() => {
  class PoisonError extends other.MillraceError {}
  class BadOrderError extends PoisonError {}
  return { PoisonError, BadOrderError }
})()

afterEach(() => {
  setIdGenerator()
  setTokenGenerator()
  setDefaultRetryOptions()
})

describe('an error of another copy of the package', () => {
  const foreign = new others.BadOrderError('BAD_ORDER', 'no')

  it('is an instance of the classes that it would be of here', () => {
    expect(other.MillraceError).not.toBe(MillraceError)
    expect(foreign).toBeInstanceOf(MillraceError)
    expect(foreign).toBeInstanceOf(PoisonError)
    expect(foreign).not.toBeInstanceOf(RetryableError)
    expect(new PoisonError('no')).toBeInstanceOf(other.MillraceError)
    expect(new PoisonError('no')).toBeInstanceOf(others.PoisonError)
    expect(new PoisonError('no')).not.toBeInstanceOf(others.BadOrderError)
  })

  it('is classified by the class that it extends, also where it has a code of its own', () => {
    expect(classify(foreign)).toMatchObject({ class: 'poison', rule: 'explicit' })
  })

  it('is not taken for another class that a minifier gave the same name', () => {
    const [here, there] = [class t extends MillraceError {}, class t extends other.MillraceError {}]
    expect(new there('A', 'no')).toBeInstanceOf(MillraceError)
    expect(new there('A', 'no')).not.toBeInstanceOf(here)
  })

  it('shows its brand only to code that asks for it', () => {
    expect(Reflect.ownKeys(foreign).sort()).toEqual(['code', 'facts', 'message', 'name', 'stack'])
  })
})

describe('errors of one copy', () => {
  it('have the classes that they were made of, whatever those are called', () => {
    const [one, two] = [class SameError extends MillraceError {}, class SameError extends MillraceError {}]
    expect(new one('A', 'no')).toBeInstanceOf(one)
    expect(new one('A', 'no')).not.toBeInstanceOf(two)
  })

  it.each([undefined, null, 'text', 7, {}, new Error('no'), Object.create(null)])('are not %o', (value) => {
    expect(value instanceof MillraceError).toBe(false)
  })

  it('are not what throws when it is read', () => {
    const hostile = new Proxy({}, { get: () => expect.fail('it was read without care') })
    expect(hostile instanceof MillraceError).toBe(false)
  })
})

describe('what is set for the process', () => {
  it('holds in every copy: the retry defaults', () => {
    other.setDefaultRetryOptions({ attempts: 7 })
    setDefaultRetryOptions({ base: 50 })
    expect([getDefaultRetryOptions(), other.getDefaultRetryOptions()]).toEqual(
      Array(2).fill(expect.objectContaining({ attempts: 7, base: 50 })),
    )
    setDefaultRetryOptions()
    expect(other.getDefaultRetryOptions()).toEqual(getDefaultRetryOptions())
  })

  it('holds in every copy: who makes the ids and the tokens', () => {
    other.setIdGenerator(() => 'wid')
    other.setTokenGenerator(() => 'token')
    expect([newId(), newToken()]).toEqual(['wid', 'token'])
  })

  it('holds in every copy: the order of ids', () => {
    const ids = Array.from({ length: 1_000 }, (_, i) => (i % 2 === 0 ? newId() : other.newId()))
    expect(ids).toEqual(ids.toSorted())
    expect(new Set(ids).size).toBe(ids.length)
  })
})
