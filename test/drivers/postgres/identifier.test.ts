import { describe, expect, it } from 'vitest'
import { checkIdentifier, quoteIdentifier, quoteLiteral, withSchema } from '../../../src/drivers/postgres/index.js'

describe('names in PostgreSQL', () => {
  it('keeps what can be quoted, whatever it looks like', () => {
    for (const name of ['work', 'Tracer "1"', "it's", '{schema}', 'a\nb', '$millrace$', 'ünï']) {
      expect(checkIdentifier('schema', name)).toBe(name)
    }
    expect(quoteIdentifier('a"b')).toBe('"a""b"')
  })

  it.each([
    ['U+0000', 'a\0b', /U\+0000/],
    ['half of a pair', 'a\ud800', /surrogate/],
    ['500 characters', 'x'.repeat(500), /500 bytes.*63/],
    ['63 characters of two bytes', 'é'.repeat(63), /126 bytes/],
  ])('refuses %s with its reason', (_, name, why) => {
    expect(() => checkIdentifier('schema', name)).toThrow(expect.objectContaining({ code: 'BAD_NAME' }))
    expect(() => checkIdentifier('schema', name)).toThrow(why)
  })

  it.each([[''], [undefined], [7]])('refuses %j as no name', (name) => {
    expect(() => checkIdentifier('schema', name)).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
  })

  it('puts a schema into a text once, and never reads it again', () => {
    expect(withSchema('{schema}.a {body}', '{body}$&')).toBe('"{body}$&".a $millrace$')
    expect(withSchema('{body}', 'x $millrace$ y')).toBe('$millrace0$')
    expect(withSchema("'{schema_text}.t'", "it's")).toBe(`'"it''s".t'`)
  })

  it('quotes a text whose backslashes and quotes stay what they are', () => {
    expect(quoteLiteral("it's")).toBe("'it''s'")
    expect(quoteLiteral("\\'")).toBe(" E'\\\\'''")
  })
})
