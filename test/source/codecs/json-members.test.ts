import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonMembers, scalarText } from '../../../src/source/codecs/json-members.js'

describe('the members of a JSON object', () => {
  it('are the texts that it was written in', () => {
    const text = ' { "a" : 1 , "b\\u0063":"x\\"}" ,"c":{"d":[1,{"e":"]"}]},"f":[ ],"g":null , "h":-1.5e+30,"i":true } '
    expect([...jsonMembers(text)]).toEqual([
      ['a', '1'],
      ['bc', '"x\\"}"'],
      ['c', '{"d":[1,{"e":"]"}]}'],
      ['f', '[ ]'],
      ['g', 'null'],
      ['h', '-1.5e+30'],
      ['i', 'true'],
    ])
    expect(jsonMembers('{}').size).toBe(0)
  })

  it('keep digits that a number would lose', () => {
    expect(jsonMembers('{"lsn":18446744073709551615}').get('lsn')).toBe('18446744073709551615')
  })

  it('mean what JSON.parse makes of them, however they are spaced', () => {
    const spaced = fc.record({
      value: fc.dictionary(fc.string(), fc.jsonValue()),
      indent: fc.constantFrom('', ' ', '\t', '  '),
    })
    fc.assert(
      fc.property(spaced, ({ value, indent }) => {
        const text = JSON.stringify(value, null, indent)
        const members = [...jsonMembers(text)]
        expect(members.map(([name]) => name).sort()).toEqual(Object.keys(JSON.parse(text)).sort())
        for (const [name, raw] of members) {
          expect(raw).toBe(raw.trim())
          const own = Object.getOwnPropertyDescriptor(JSON.parse(text), name)
          expect(JSON.stringify(JSON.parse(raw))).toBe(JSON.stringify(own?.value))
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('of a name that occurs twice are the last, as in JSON.parse', () => {
    expect([...jsonMembers('{"a":1,"a":2}')]).toEqual([['a', '2']])
  })

  it('are there only for an object', () => {
    expect(() => jsonMembers('{"a":')).toThrow(SyntaxError)
    expect(() => jsonMembers('')).toThrow(SyntaxError)
    expect(() => jsonMembers('[1]')).toThrow('got an array')
    expect(() => jsonMembers('null')).toThrow('got null')
    expect(() => jsonMembers('"{}"')).toThrow('got string')
  })
})

describe('the text of a scalar', () => {
  it('is the string itself, or the number as it was written', () => {
    expect([undefined, 'null', '"a\\n"', '12345678901234567890', 'true'].map(scalarText)).toEqual([
      '',
      '',
      'a\n',
      '12345678901234567890',
      'true',
    ])
  })
})
