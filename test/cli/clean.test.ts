import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clean, cleanJson, cleanLines } from '../../src/cli/terminal/clean.js'

// Everything that a terminal interprets or that hides text: controls, direction, zero width, tags, half pairs.
const codes = ['\\u0000-\\u001f', '\\u007f-\\u009f', '\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff']
const HARMFUL = new RegExp(`[${codes.join('')}]|\\p{Surrogate}|[\\u{e0000}-\\u{e007f}]`, 'u')
const text = fc.string({ unit: 'binary', maxLength: 20 })

describe('text of strangers', () => {
  it('cannot move the cursor, change colours or set the title', () => {
    expect(clean('\u001b[2J\u001b]0;owned\u0007\u009b31m')).toBe('␛[2J␛]0;owned␇\\u{9b}31m')
  })

  it('cannot turn the direction of writing', () => {
    expect(clean('abc\u202egnp.exe')).toBe('abc\\u{202e}gnp.exe')
  })

  it('keeps to one line, unless lines are wanted', () => {
    expect(clean('a\nb\tc')).toBe('a␊b␉c')
    expect(cleanLines('a\r\nb\tc\rd')).toBe('a\nb  c␍d')
  })

  it('stays as it is when it is harmless', () => {
    expect(clean('Grüße, 世界 👩‍👩‍👧 — “ok”'.replaceAll('\u200d', ''))).toBe('Grüße, 世界 👩👩👧 — “ok”')
  })

  it('is harmless whatever it was', () => {
    fc.assert(
      fc.property(text, (given) => {
        expect(clean(given)).not.toMatch(HARMFUL)
        expect(cleanLines(given).replaceAll('\n', '')).not.toMatch(HARMFUL)
      }),
      { numRuns: 1_000 },
    )
  })

  it('is the same to a program, as JSON, and harmless to a terminal', () => {
    fc.assert(
      fc.property(text, (given) => {
        const json = cleanJson(JSON.stringify({ given }))
        expect(json).not.toMatch(HARMFUL)
        // JSON.stringify has already written half pairs as escapes.
        expect(JSON.parse(json)).toEqual({ given })
      }),
      { numRuns: 1_000 },
    )
  })
})
