import { clean } from './clean.js'
import { type Paint, plain, type Tone } from './paint.js'
import { cut, pad, widthOf } from './width.js'

export interface Column {
  readonly title: string
  /** Numbers are aligned right. Default: left. */
  readonly align?: 'left' | 'right'
  /** May be cut to this width if the table is too wide. Default: never cut. */
  readonly min?: number
  /** May be left out if that is not enough; the highest first. Default: always shown. */
  readonly spare?: number
}

/** Untrusted text, cleaned here, optionally with a tone. */
export type Cell = string | { readonly text: string; readonly tone: Tone }

export interface TableOptions {
  /** The greatest width. */
  readonly columns: number
  readonly paint?: Paint
}

const GAP = '  '

/**
 * A table that fits: wide cells are cut with `…`, then whole columns are left out, and as a last resort the line is cut. A row
 * is always one line, for grep. A column whose cells are all empty is left out.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { columns: room, paint = plain }: TableOptions,
): string[] {
  const texts = rows.map((row) => row.map((cell) => clean(typeof cell === 'string' ? cell : cell.text)))
  const filled = columns.map((_, c) => c).filter((c) => texts.some((row) => (row[c] ?? '') !== ''))
  const { shown, widths } = layOut(columns, filled, texts, room)
  const line = (cellOf: (c: number) => string, toneOf: (c: number) => Tone): string => {
    let left = room
    const parts: string[] = []
    shown.forEach((c, i) => {
      const width = Math.min(widths.get(c)!, Math.max(0, left))
      const text = cut(cellOf(c), width)
      const isLast = i === shown.length - 1
      const { align = 'left' } = columns[c]!
      const padded = isLast && align === 'left' ? text : pad(text, width, align === 'right' ? 'right' : 'left')
      // Only the text is painted: padding would show if a tone has a background.
      parts.push(padded.replace(text, () => paint(toneOf(c), text)))
      left -= width + GAP.length
    })
    return parts.join(GAP).trimEnd()
  }
  const head = line(
    (c) => columns[c]!.title,
    () => 'dim',
  )
  const body = texts.map((row, r) =>
    line(
      (c) => row[c] ?? '',
      (c) => {
        const cell = rows[r]![c]
        return cell === undefined || typeof cell === 'string' ? 'plain' : cell.tone
      },
    ),
  )
  return [head, ...body]
}

/** Which columns are shown, and how wide each is. */
function layOut(
  columns: readonly Column[],
  filled: readonly number[],
  texts: readonly (readonly string[])[],
  room: number,
): { readonly shown: readonly number[]; readonly widths: ReadonlyMap<number, number> } {
  const natural = new Map(
    filled.map((c) => [c, Math.max(widthOf(columns[c]!.title), ...texts.map((row) => widthOf(row[c] ?? '')))]),
  )
  const leastOf = (c: number) => Math.min(natural.get(c)!, Math.max(columns[c]!.min ?? Infinity, 1))
  const sum = (shown: readonly number[], of: (c: number) => number) =>
    shown.reduce((total, c) => total + of(c), GAP.length * Math.max(0, shown.length - 1))
  let shown = [...filled]
  while (sum(shown, leastOf) > room) {
    const spare = shown.filter((c) => columns[c]!.spare !== undefined)
    if (spare.length === 0) break
    const goes = spare.reduce((a, b) => (columns[b]!.spare! >= columns[a]!.spare! ? b : a))
    shown = shown.filter((c) => c !== goes)
  }
  const widths = new Map(shown.map((c) => [c, natural.get(c)!]))
  let over = sum(shown, (c) => widths.get(c)!) - room
  // Shrinks the widest column first, so that short columns stay whole.
  while (over > 0) {
    const giving = shown.filter((c) => widths.get(c)! > leastOf(c))
    if (giving.length === 0) break
    const widest = Math.max(...giving.map((c) => widths.get(c)!))
    const wide = giving.filter((c) => widths.get(c) === widest)
    const others = giving.filter((c) => widths.get(c)! < widest).map((c) => widths.get(c)!)
    const floor = Math.max(0, ...others, ...wide.map(leastOf))
    const step = Math.max(1, Math.min(widest - floor, Math.ceil(over / wide.length)))
    for (const c of wide) {
      const by = Math.min(step, over, widths.get(c)! - leastOf(c))
      widths.set(c, widths.get(c)! - by)
      over -= by
    }
  }
  return { shown, widths }
}

/** Named facts, one for each line, without the undefined ones. */
export function renderFacts(
  facts: readonly (readonly [name: string, value: Cell | undefined])[],
  { columns: room, paint = plain }: TableOptions,
): string[] {
  const there = facts.filter((fact): fact is readonly [string, Cell] => fact[1] !== undefined)
  const width = Math.max(0, ...there.map(([name]) => widthOf(name)))
  return there.map(([name, cell]) => {
    const { text, tone } = typeof cell === 'string' ? { text: cell, tone: 'plain' as const } : cell
    return `${paint('dim', pad(name, width))}${GAP}${paint(tone, cut(clean(text), room - width - GAP.length))}`
  })
}
