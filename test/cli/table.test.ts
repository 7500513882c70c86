import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { counted, countText, renderBar } from '../../src/cli/terminal/bar.js'
import { coloured, painterFor, plain } from '../../src/cli/terminal/paint.js'
import { type Column, renderFacts, renderTable } from '../../src/cli/terminal/table.js'
import { cut, pad, widthOf } from '../../src/cli/terminal/width.js'
import { wrapText } from '../../src/cli/terminal/wrap.js'

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

describe('wrapped text', () => {
  it('breaks at spaces and between wide characters, keeps its lines, and leaves long words whole', () => {
    expect(wrapText('a b  c', 3)).toEqual(['a b', 'c'])
    expect(wrapText('世界地図を見る', 6)).toEqual(['世界地', '図を見', 'る'])
    expect(wrapText('id 01a1e2ac-7458 here', 8)).toEqual(['id', '01a1e2ac-7458', 'here'])
    expect(wrapText('one\ntwo three', 5)).toEqual(['one', 'two', 'three'])
    expect(wrapText('', 5)).toEqual([])
  })

  it('loses nothing but spaces, and is too wide only where one word is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), fc.integer({ min: 2, max: 20 }), (text, columns) => {
        const lines = wrapText(text, columns)
        expect(lines.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
        for (const line of lines) if (widthOf(line) > columns) expect(line).not.toMatch(/\s/)
      }),
      { numRuns: 1_000 },
    )
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

  it('leaves out what can be spared before it cuts what is kept, which is still cut before an id moves', () => {
    const columns = [
      { title: 'id', isId: true, spare: 0, below: '' },
      { title: 'type', min: 4, keep: 10 },
      { title: 'queue', spare: 1 },
    ]
    const row = ['0123456789', 'send-mail', 'default']
    expect(renderTable(columns, [row], { columns: 25 })).toEqual(['id          type', '0123456789  send-mail'])
    expect(renderTable(columns, [row], { columns: 18 })).toEqual(['id          type', '0123456789  send-…'])
  })

  it('gives the room of an id that moved below its row back to the columns that had to leave before it', () => {
    const items: readonly Column[] = [
      { title: 'id', isId: true, spare: 0, below: '' },
      { title: 'state' },
      { title: 'queue', spare: 3 },
      { title: 'when', spare: 1 },
      { title: 'worker', spare: 2 },
    ]
    const id = 'tenant/acme/order/2026-11-18/1'
    expect(renderTable(items, [[id, 'dead', 'default', '5 s ago', 'a worker']], { columns: 24 })).toEqual([
      'state  when     worker',
      'dead   5 s ago  a worker',
      `    ${id}`,
    ])
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

  it('never cuts an id: other columns leave, or move below their row, or are cut', () => {
    const ids: readonly Column[] = [
      { title: 'id', isId: true },
      { title: 'type', min: 4 },
      { title: 'class', spare: 1 },
      { title: 'error', min: 10, spare: 2, below: '' },
      { title: 'of', isId: true, spare: 3, below: 'of' },
    ]
    const id = '01a1e2ac-7458-720a-8564-e41ca4fc530a'
    const rows = [[id, 'a-long-type', 'poison', 'an error that is rather long', id]]
    expect(renderTable(ids, rows, { columns: 60 })).toEqual([
      'id                                    type         class',
      `${id}  a-long-type  poison`,
      '    an error that is rather long',
      `    of: ${id}`,
    ])
    expect(renderTable(ids, rows, { columns: 44 })[1]).toBe(`${id}  a-lon…`)
    expect(renderTable(ids, rows, { columns: 20 })[1]).toBe(id)
    expect(renderTable(ids, rows, { columns: Infinity })[1]).toBe(
      `${id}  a-long-type  poison  an error that is rather long  ${id}`,
    )
  })

  it('wraps what must be read whole, beside its row or below it, and only on a terminal', () => {
    const wide: readonly Column[] = [{ title: 'when' }, { title: 'what', min: 12, wraps: true, spare: 0, below: '' }]
    const rows = [['12:00', 'it was redriven\nby ada on her machine']]
    expect(renderTable(wide, rows, { columns: 22 })).toEqual([
      'when   what',
      '12:00  it was redriven',
      '       by ada on her',
      '       machine',
    ])
    expect(renderTable(wide, rows, { columns: 18 })).toEqual(
      ['when', '12:00', '    it was redriven', '    by ada on her', '    machine'].map((line) => line),
    )
    expect(renderTable(wide, rows, { columns: Infinity })).toEqual([
      'when   what',
      '12:00  it was redriven␊by ada on her machine',
    ])
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
