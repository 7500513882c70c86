import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readEndless, stringifyWithInfinity } from '../../src/core/codec/infinite-json.js'

describe('JSON with numbers that have no end', () => {
  it('reads back what it wrote', () => {
    const kept = {
      keepMs: { completed: 1, dead: Infinity },
      types: { a: { retry: { attempts: Infinity } } },
      none: null,
    }
    expect(readEndless(stringifyWithInfinity(kept))).toEqual(kept)
  })

  it('is plain JSON otherwise', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        expect(stringifyWithInfinity(value)).toBe(JSON.stringify(value))
        expect(readEndless(stringifyWithInfinity(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
      { numRuns: 1_000 },
    )
  })

  it('is not misled by something that has the name of the mark', () => {
    const named = { types: { $infinity: { retry: { attempts: 3 } } } }
    expect(readEndless(stringifyWithInfinity(named))).toEqual(named)
  })
})
