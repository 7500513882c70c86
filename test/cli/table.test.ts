import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { counted, countText, renderBar } from '../../src/cli/terminal/bar.js'
import { coloured, painterFor, plain } from '../../src/cli/terminal/paint.js'
import { type Column, renderFacts, renderTable } from '../../src/cli/terminal/table.js'
import { cut, pad, widthOf } from '../../src/cli/terminal/width.js'

describe('the width of a text', () => {
  it('is what a terminal gives to it', () => {
    expect(['abc', 'é', 'e\u0301', '世界', '👍', '👩‍👩‍👧', '…'].map(widthOf)).toEqual([3, 1, 1, 4, 2, 2, 1])
  })

  it('is never exceeded by a cut, which ends in … and splits no character', () => {
    expect(cut('abcdef', 4)).toBe('abc…')
    expect(cut('世界地図', 5)).toBe('世界…')
    expect(cut('世界地図', 4)).toBe('世…')
    expect(cut('abc', 3)).toBe('abc')
    expect(cut('abc', 0)).toBe('')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 12 }), fc.nat(30), (text, columns) => {
        expect(widthOf(cut(text, columns))).toBeLessThanOrEqual(columns)
      }),
      { numRuns: 1_000 },
    )
  })

  it('is filled up by spaces', () => {
    expect(pad('世', 4)).toBe('世  ')
    expect(pad('7', 3, 'right')).toBe('  7')
  })
})

describe('a table', () => {
  const columns: readonly Column[] = [
    { title: 'id', min: 6 },
    { title: 'count', align: 'right' },
    { title: 'spare', spare: 1 },
    { title: 'error', min: 8 },
  ]

  it('aligns columns, with numbers on the right', () => {
    const lines = renderTable(
      columns,
      [
        ['a', '1', 'x', 'broken'],
        ['bcd', '1,000', 'y', ''],
      ],
      { columns: Infinity },
    )
    expect(lines).toEqual(['id   count  spare  error', 'a        1  x      broken', 'bcd  1,000  y'])
  })

  it('cuts what may be cut when there is too little room, the widest first', () => {
    const rows = [['an-id-of-some-length', '1', 'x', 'an error that is rather long']]
    const lines = renderTable(columns, rows, { columns: 50 })
    expect(lines[1]).toBe('an-id-of-some-le…      1  x      an error that is…')
    expect(lines[1]).toHaveLength(50)
  })

  it('leaves out what can be spared before it cuts below the least', () => {
    const [head] = renderTable(columns, [['an-id-of-some-length', '1', 'x', 'an error']], { columns: 26 })
    expect(head).not.toContain('spare')
    expect(head).toContain('error')
  })

  it('leaves out an empty column', () => {
    expect(renderTable(columns, [['a', '1', '', '']], { columns: 80 })).toEqual(['id  count', 'a       1'])
  })

  it('is one line for each row, never wider than there is room, whatever is in it', () => {
    const cell = fc.string({ unit: 'binary', maxLength: 12 })
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cell, cell, cell, cell), { maxLength: 3 }),
        fc.integer({ min: 1, max: 120 }),
        (rows, room) => {
          const lines = renderTable(columns, rows, { columns: room })
          expect(lines).toHaveLength(rows.length + 1)
          for (const line of lines) {
            expect(line).not.toContain('\n')
            expect(widthOf(line)).toBeLessThanOrEqual(room)
          }
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('paints the text and not the space around it', () => {
    const rows = [[{ text: 'a', tone: 'bad' as const }, '1', 'x', 'y']]
    const [, row] = renderTable(columns, rows, { columns: 80, paint: (tone, text) => `<${tone}>${text}</>` })
    expect(row).toBe('<bad>a</>       <plain>1</>  <plain>x</>      <plain>y</>')
  })

  it('of facts leaves out the missing ones', () => {
    expect(
      renderFacts(
        [
          ['id', 'a'],
          ['error', undefined],
          ['queue', 'bulk\nx'],
        ],
        { columns: 20 },
      ),
    ).toEqual(['id     a', 'queue  bulk␊x'])
  })
})

describe('a progress bar', () => {
  it('says how far it has come', () => {
    expect(renderBar('redrive', 6_000, 12_000, 80, plain)).toBe(
      `redrive  ${'█'.repeat(15)}${' '.repeat(15)}   50%  6,000 of 12,000`,
    )
    expect(renderBar('redrive', 0, 0, 80, plain)).toContain('100%')
  })

  it('fits', () => {
    for (const columns of [10, 20, 40, 80, 200])
      expect(widthOf(renderBar('redrive', 123, 456, columns, plain))).toBeLessThanOrEqual(columns)
  })

  it('counts as people do', () => {
    expect([countText(12_345), counted(1, 'item'), counted(12_345, 'item')]).toEqual([
      '12,345',
      '1 item',
      '12,345 items',
    ])
  })
})

describe('colours', () => {
  it('are only for a terminal that may have them', () => {
    expect(painterFor(true, {})('bad', 'x')).toBe('\u001b[31mx\u001b[39m')
    expect(painterFor(true, {})).toBe(coloured)
    expect(painterFor(false, {})).toBe(plain)
    expect(painterFor(true, { NO_COLOR: '1' })).toBe(plain)
    expect(painterFor(true, { NO_COLOR: '' })).toBe(coloured)
    expect(painterFor(true, { TERM: 'dumb' })).toBe(plain)
  })
})
