import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  errorMessage,
  errorName,
  errorText,
  listedError,
  MAX_ERROR_TEXT_BYTES,
  truncateUtf8,
} from '../../src/core/text/error-text.js'
import { allThrowing, revoked, throwingGetters, thrown, unprintable } from './hostile.js'

describe('an error in a list', () => {
  it('is its first line, and says when there is more', () => {
    expect(listedError('Error: boom')).toBe('Error: boom')
    expect(listedError('Error: boom\n    at f')).toBe('Error: boom…')
    expect(listedError('Error: boom\r\nmore')).toBe('Error: boom…')
    expect(listedError('')).toBe('')
  })

  it('is at most so many characters, none of them half', () => {
    expect(listedError('x'.repeat(500))).toBe('x'.repeat(500))
    expect(listedError('x'.repeat(501))).toBe(`${'x'.repeat(500)}…`)
    expect(listedError('ab😀c', 3)).toBe('ab…')
    expect(listedError(`${'€'.repeat(501)}\n`)).toBe(`${'€'.repeat(500)}…`)
  })
})

describe('the text of what was thrown', () => {
  it('is name and message for Errors, and String(x) for the rest', () => {
    expect(errorText(new TypeError('boom'))).toBe('TypeError: boom')
    expect(errorText(new Error(''))).toBe('Error: ')
    expect(errorText('plain string failure')).toBe('plain string failure')
    expect(errorText(undefined)).toBe('undefined')
    expect(errorText(null)).toBe('null')
    expect(errorText(42n)).toBe('42')
    expect(errorText(Symbol('s'))).toBe('Symbol(s)')
    expect(errorText({ a: 1 })).toBe('[object Object]')
    expect(errorText(new DOMException('too slow', 'TimeoutError'))).toBe('TimeoutError: too slow')
  })

  it('treats what looks like an Error as one: it may come from another process', () => {
    expect(errorText({ name: 'PgError', message: 'deadlock' })).toBe('PgError: deadlock')
    expect(errorText({ message: 'deadlock' })).toBe('deadlock')
  })

  it('exists for values that throw when they are read', () => {
    expect(errorText(revoked())).toBe('[unprintable object]')
    expect(errorText(allThrowing())).toBe('[unprintable object]')
    expect(errorText(unprintable())).toBe('[unprintable object]')
    expect(errorText(Object.create(null))).toBe('[unprintable object]')
    expect(errorText(throwingGetters())).toBe('Error: ')
  })

  it('is cut to 8 KiB, also when it was 50 MB', () => {
    const text = errorText(new Error('é'.repeat(25_000_000)))
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_ERROR_TEXT_BYTES)
    expect(Buffer.byteLength(text)).toBeGreaterThan(MAX_ERROR_TEXT_BYTES - 4)
    expect(text.startsWith('Error: éé')).toBe(true)
    expect(text.endsWith('… [cut]')).toBe(true)
    expect(text).not.toContain('\uFFFD')
  })

  it('has no NUL and no half of a character, which databases refuse', () => {
    expect(errorText(new Error('a\u0000b\uD800c'))).toBe('Error: a\uFFFDb\uFFFDc')
    expect(errorText('😀')).toBe('😀')
  })

  it('never throws, whatever was thrown', () => {
    fc.assert(
      fc.property(thrown(), (make) => {
        const error = make()
        expect(Buffer.byteLength(errorText(error))).toBeLessThanOrEqual(MAX_ERROR_TEXT_BYTES)
        expect(typeof errorName(error)).toBe('string')
        expect(typeof errorMessage(error)).toBe('string')
      }),
      { numRuns: 3000 },
    )
  })
})

describe('cutting text', () => {
  it('keeps to the bytes, ends between characters, and leaves short text alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.integer({ min: 0, max: 80 }), (text, maxBytes) => {
        const cut = truncateUtf8(text, maxBytes)
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(maxBytes)
        expect(Buffer.from(cut).toString()).toBe(cut)
        const clean = text.replaceAll('\u0000', '\uFFFD')
        if (Buffer.byteLength(clean) <= maxBytes) expect(cut).toBe(clean)
      }),
      { numRuns: 2000 },
    )
  })
})
