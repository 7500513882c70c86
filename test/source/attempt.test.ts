import { describe, expect, it } from 'vitest'
import { messageAttempt, parseAttempt } from '../../src/source/message/attempt.js'
import { AttemptHeader } from '../../src/source/message/context.js'
import { Headers } from '../../src/source/message/headers.js'
import type { Message } from '../../src/source/message/message.js'

const message = (deliveryCount: number | undefined, header?: string): Message => ({
  key: null,
  value: new Uint8Array(),
  headers: header === undefined ? Headers.empty : new Headers([[AttemptHeader, header]]),
  subject: 'orders',
  partitionKey: '',
  cursor: { toString: () => '1' },
  ...(deliveryCount === undefined ? {} : { deliveryCount }),
  as: () => undefined,
})

describe('the attempt a message carries', () => {
  it.each([
    ['nothing says', undefined, undefined, undefined],
    ['the backend counts', 4, undefined, 4],
    ['the header says', undefined, '3', 3],
    ['both say: the larger', 2, '5', 5],
    ['both say: the larger', 5, '2', 5],
    ['the count is no attempt', 0, undefined, undefined],
    ['the count is no attempt', 1.5, '2', 2],
    ['the header is no attempt', 2, 'many', 2],
  ] as const)('%s (count %s, header %s) is %s', (_, count, header, expected) => {
    expect(messageAttempt(message(count, header)).attempt).toBe(expected)
  })

  it('shows a header that is ignored, so that it can be logged', () => {
    expect(messageAttempt(message(2, 'many')).malformedHeader).toBe('many')
    expect(messageAttempt(message(2, '3')).malformedHeader).toBeUndefined()
    expect(messageAttempt(message(2)).malformedHeader).toBeUndefined()
  })
})

describe('the text of an attempt header', () => {
  it.each(['0', '-1', '1.5', '', ' 1', '1e3', '0x10', '2147483648', '99999999999', 'NaN', '１'])(
    'is not %o',
    (text) => {
      expect(parseAttempt(text)).toBeUndefined()
    },
  )

  it.each([
    ['1', 1],
    ['42', 42],
    ['2147483647', 2_147_483_647],
  ] as const)('may be %s', (text, n) => {
    expect(parseAttempt(text)).toBe(n)
  })
})
