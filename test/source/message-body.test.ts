import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { messageBody, readMessageBody } from '../../src/source/inlets/queue/message-body.js'

describe('a message as the body of a queue', () => {
  it('comes back as it was given, whatever it holds', () => {
    const pairs = fc.array(fc.tuple(fc.string(), fc.string()))
    fc.assert(
      fc.property(
        fc.string(),
        pairs,
        fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
        (value, headers, key) => {
          const read = readMessageBody(messageBody(value, { headers, ...(key === undefined ? {} : { key }) }))
          expect(read?.text).toBe(value)
          expect(read?.key).toBe(key)
          expect(read?.headers.entries().map((one) => [one.key, one.value])).toEqual(headers)
        },
      ),
      { numRuns: 1_000 },
    )
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const read = readMessageBody(messageBody(bytes))
        expect(read?.text).toBeUndefined()
        expect([...(read?.value ?? [])]).toEqual([...bytes])
      }),
      { numRuns: 1_000 },
    )
  })

  it('has the id of its producer as a header', () => {
    const read = readMessageBody(messageBody('x', { id: 'o-1', headers: { 'message-id': 'other' } }))
    expect(read?.headers.getAll('message-id')).toEqual(['o-1'])
  })

  it.each([
    ['no wrapped body', 'a text'],
    ['another object', '{"millrace":"work"}'],
    ['no JSON', '{"millrace":"message/1",'],
    ['no value', '{"millrace":"message/1","key":"k"}'],
    ['a key that is no text', '{"millrace":"message/1","key":1,"value":"x"}'],
    ['headers that are no pairs', '{"millrace":"message/1","headers":[1],"value":"x"}'],
  ])('is not found in %s', (_, body) => {
    expect(readMessageBody(body)).toBeUndefined()
  })

  it('refuses what no queue could carry', () => {
    expect(() => messageBody(7 as never)).toThrow('messageBody(value) must be a string or a Uint8Array')
    expect(() => messageBody('x', { headers: { a: 1 as never } })).toThrow('must have a string')
    expect(() => messageBody('x', { kye: 'k' } as never)).toThrow('kye')
  })
})
