import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { detailText, errorDetail, errorFrom } from '../../src/core/failure/error-detail.js'
import { fingerprint } from '../../src/core/failure/fingerprint.js'
import { errorMessage, errorText } from '../../src/core/text/error-text.js'
import { thrown } from './hostile.js'

const thrownAt = (message: string, options?: ErrorOptions) =>
  Object.assign(new TypeError(message, options), { stack: `TypeError: ${message}\n    at charge (/app/charge.js:1:2)` })

describe('the detail of an error', () => {
  it('has its name, message, code and stack, and those of its causes', () => {
    const root = Object.assign(thrownAt('socket hang up'), { code: 'ECONNRESET' })
    const detail = errorDetail(thrownAt('charge failed', { cause: root }))
    expect(detail).toEqual({
      name: 'TypeError',
      message: 'charge failed',
      stack: '    at charge (/app/charge.js:1:2)',
      cause: {
        name: 'TypeError',
        message: 'socket hang up',
        code: 'ECONNRESET',
        stack: '    at charge (/app/charge.js:1:2)',
      },
    })
    expect(detailText(detail!)).toBe(
      'TypeError: charge failed\n    at charge (/app/charge.js:1:2)\n' +
        'Caused by: TypeError: socket hang up (ECONNRESET)\n    at charge (/app/charge.js:1:2)',
    )
  })

  it('quotes the errors in an AggregateError, which may say nothing itself', () => {
    // Node throws this one when each address of "localhost" refuses.
    const refused = new AggregateError(
      [new Error('connect ECONNREFUSED ::1:5432'), new Error('connect ECONNREFUSED 127.0.0.1:5432')],
      '',
    )
    const both = 'connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432'
    expect(errorText(refused)).toBe(`AggregateError: ${both}`)
    expect(errorDetail(new Error('no database', { cause: refused }))?.cause).toMatchObject({ message: both })
    expect(fingerprint(refused)).not.toBe(fingerprint(new AggregateError([new Error('getaddrinfo ENOTFOUND')], '')))

    const any = new AggregateError(
      [new Error('a'), 'b', new Error('c'.repeat(500)), new Error('d')],
      'All promises were rejected',
    )
    expect(errorText(any)).toBe(`AggregateError: All promises were rejected (a; b; ${'c'.repeat(200)}…; …)`)
    // What streams write as the error of a dead letter, and other programs compare, is the message alone.
    expect(errorMessage(any)).toBe('All promises were rejected')
    expect(errorDetail(any)?.stack).toMatch(/^ *at /)
  })

  it('becomes an error again that looks like it', () => {
    const root = Object.assign(thrownAt('socket hang up'), { code: 'ECONNRESET' })
    const given = thrownAt('charge failed', { cause: root })
    const made = errorFrom(JSON.parse(JSON.stringify(errorDetail(given))))
    expect(made).toBeInstanceOf(Error)
    expect([made.name, made.message, made.stack]).toEqual([given.name, given.message, given.stack])
    expect(made.cause).toMatchObject({ name: 'TypeError', message: 'socket hang up', code: 'ECONNRESET' })
    expect((made.cause as Error).stack).toBe(root.stack)
  })

  it('is limited, however long and deep the error is', () => {
    let error: Error | undefined
    for (let i = 0; i < 100; i += 1) {
      error = new Error('x'.repeat(100_000), error === undefined ? {} : { cause: error })
      error.stack = `Error: ${error.message}\n${'    at frame (/app/a.js:1:1)\n'.repeat(10_000)}`
    }
    expect(Buffer.byteLength(JSON.stringify(errorDetail(error)))).toBeLessThan(20_000)
    const cyclic = thrownAt('round')
    cyclic.cause = cyclic
    expect(errorDetail(cyclic)).not.toHaveProperty('cause')
  })

  it('says nothing about what is no object, and never throws', () => {
    expect(errorDetail('text')).toBeUndefined()
    fc.assert(
      fc.property(thrown(), (make) => {
        const detail = errorDetail(make())
        if (detail !== undefined) expect(errorFrom(JSON.parse(JSON.stringify(detail)))).toBeInstanceOf(Error)
      }),
    )
  })
})
