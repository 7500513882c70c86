import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Headers } from '../../src/source/message/headers.js'

const sample = () =>
  new Headers([
    ['content-type', 'application/json'],
    ['x-trace', 'abc'],
    ['content-type', 'dup'],
  ])

describe('headers of a message', () => {
  // S3
  it('gives the first match, nothing for a missing name, and every name in order', () => {
    const headers = sample()
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('missing')).toBeUndefined()
    expect(headers.keys()).toEqual(['content-type', 'x-trace', 'content-type'])
    expect(headers.get('Content-Type')).toBe('application/json')
  })

  it('finds all values of a name in any spelling', () => {
    const headers = sample().withAdded('Content-TYPE', 'third')
    expect(headers.getAll('CONTENT-type')).toEqual(['application/json', 'dup', 'third'])
    expect(headers.getAll('missing')).toEqual([])
    expect(headers.has('X-Trace')).toBe(true)
    expect(headers.has('x')).toBe(false)
  })

  it('keeps the spelling of the sender', () => {
    expect(new Headers({ 'X-Request-ID': '1' }).keys()).toEqual(['X-Request-ID'])
  })

  it('has an empty list of names when it is empty', () => {
    expect(Headers.empty.keys()).toEqual([])
    expect(new Headers().size).toBe(0)
    expect(new Headers(undefined).get('a')).toBeUndefined()
  })
})

describe('headers made from headers', { timeout: 60_000 }, () => {
  it('with() leaves exactly one value, in the place of the first', () => {
    const headers = sample()
    const changed = headers.with('Content-Type', 'text/plain')
    expect([...changed]).toEqual([
      { key: 'Content-Type', value: 'text/plain' },
      { key: 'x-trace', value: 'abc' },
    ])
    expect(headers.getAll('content-type')).toEqual(['application/json', 'dup'])
    expect(headers.with('new', '1').keys()).toEqual(['content-type', 'x-trace', 'content-type', 'new'])
  })

  it('without() removes every occurrence, and is the same object when there is none', () => {
    const headers = sample()
    expect(headers.without('CONTENT-TYPE').keys()).toEqual(['x-trace'])
    expect(headers.size).toBe(3)
    expect(headers.without('missing')).toBe(headers)
  })

  it('agrees with a plain list under any sequence of changes, and never changes itself', () => {
    const key = fc.constantFrom('a', 'A', 'b', 'B', 'cC', 'Cc')
    const change = fc.record({ how: fc.constantFrom('with', 'withAdded', 'without'), key, value: fc.string() })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        let headers = Headers.empty
        let list: { key: string; value: string }[] = []
        const same = (x: string, y: string) => x.toLowerCase() === y.toLowerCase()
        for (const { how, key: k, value } of changes) {
          const before = JSON.stringify(headers)
          const old = headers
          if (how === 'with') {
            headers = headers.with(k, value)
            const at = list.findIndex((entry) => same(entry.key, k))
            const rest = list.filter((entry, i) => i === at || !same(entry.key, k))
            list =
              at < 0 ? [...list, { key: k, value }] : rest.map((entry, i) => (i === at ? { key: k, value } : entry))
          } else if (how === 'withAdded') {
            headers = headers.withAdded(k, value)
            list = [...list, { key: k, value }]
          } else {
            headers = headers.without(k)
            list = list.filter((entry) => !same(entry.key, k))
          }
          expect(JSON.stringify(old)).toBe(before)
          expect([...headers]).toEqual(list)
          expect(headers.get(k)).toBe(list.find((entry) => same(entry.key, k))?.value)
          expect(headers.getAll(k)).toEqual(list.filter((entry) => same(entry.key, k)).map((entry) => entry.value))
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('headers handed out', () => {
  it('cannot be changed, nor change with what they were made from', () => {
    const pairs: [string, string][] = [['a', '1']]
    const record = { key: 'b', value: '2' }
    const headers = new Headers([...pairs, record])
    pairs[0]![1] = 'changed'
    record.value = 'changed'
    expect(headers.entries()).toEqual([
      { key: 'a', value: '1' },
      { key: 'b', value: '2' },
    ])
    expect(Object.isFrozen(headers.entries())).toBe(true)
    expect(headers.entries().every(Object.isFrozen)).toBe(true)
    ;(headers.keys() as string[]).push('x')
    expect(headers.keys()).toEqual(['a', 'b'])
  })

  it('survive JSON', () => {
    const headers = sample()
    expect(new Headers(JSON.parse(JSON.stringify(headers))).entries()).toEqual(headers.entries())
    expect(new Headers(headers).entries()).toEqual(headers.entries())
  })
})

describe('headers that are none', () => {
  it('are refused with the name of the header', () => {
    expect(() => new Headers({ retries: 3 } as unknown as Record<string, string>)).toThrow(/"retries".*number/)
    expect(() => new Headers([[1, 'x']] as unknown as [string, string][])).toThrow(/key must be a string/)
    expect(() => new Headers([Object.freeze({ key: 'a', value: 1 })] as unknown as [string, string][])).toThrow(/"a"/)
    expect(() => new Headers('a=b' as unknown as Record<string, string>)).toThrow(TypeError)
    expect(() => new Headers(null as unknown as Record<string, string>)).toThrow(/null/)
    expect(() => Headers.empty.with('a', undefined as unknown as string)).toThrow(/"a"/)
  })
})
