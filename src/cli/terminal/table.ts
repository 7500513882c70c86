import { clean, cleanLines } from './clean.js'
import { type Paint, plain, type Tone } from './paint.js'
import { cut, pad, widthOf } from './width.js'
import { wrapText } from './wrap.js'

export interface Column {
  readonly title: string
  /** Numbers are aligned right. Default: left. */
  readonly align?: 'left' | 'right'
  /** What people copy into the next command: never cut, even if the line gets longer than the terminal. */
  readonly isId?: boolean
  /** May be cut to this width, or wrapped, if the table is too wide. Default: not before everything else has given way. */
  readonly min?: number
  /** As `min`, but only after all columns but the ids have left: what people type again, and would have to look up if it were cut. */
  readonly keep?: number
  /** Goes on over more lines instead of being cut. */
  readonly wraps?: boolean
  /** May leave the table if that is not enough; the highest first. Default: always stays. */
  readonly spare?: number
  /** Leaves the table for a line of its own below the row, with this label, instead of being left out. */
  readonly below?: string
}

/** Untrusted text, cleaned here, optionally with a tone. */
export type Cell = string | { readonly text: string; readonly tone: Tone }

export interface TableOptions {
  /** The greatest width. */
  readonly columns: number
  readonly paint?: Paint
}

const GAP = '  '
/** Before a line that belongs to the row above. */
const INDENT = '    '

/**
 * A table that fits: columns leave it or move below their rows, then wide cells are cut with `…` or wrapped, and as a last resort the
 * line is cut; ids never are. Without a terminal a row is one line, for grep. A column whose cells are all empty is left out.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { columns: room, paint = plain }: TableOptions,
): string[] {
  const isOnTerminal = room !== Number.POSITIVE_INFINITY
  const texts = rows.map((row) =>
    row.map((cell, c) => {
      const text = typeof cell === 'string' ? cell : cell.text
      return columns[c]?.wraps === true && isOnTerminal ? cleanLines(text) : clean(text)
    }),
  )
  const filled = columns.map((_, c) => c).filter((c) => texts.some((row) => (row[c] ?? '') !== ''))
  const { shown, below, widths } = layOut(columns, filled, texts, room)
  /** One line of the screen: a piece of each shown cell. */
  const line = (pieceOf: (c: number) => string, toneOf: (c: number) => Tone): string => {
    let left = room
    const parts: string[] = []
    shown.forEach((c, i) => {
      const { align = 'left', isId = false, wraps = false } = columns[c]!
      const width = isId || wraps ? widths.get(c)! : Math.min(widths.get(c)!, Math.max(0, left))
      // What wraps was wrapped to its width; only a word that must stay whole is longer.
      const text = isId || wraps ? pieceOf(c) : cut(pieceOf(c), width)
      const isLast = i === shown.length - 1
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
  const body = texts.flatMap((row, r) => {
    const toneOf = (c: number): Tone => {
      const cell = rows[r]![c]
      return cell === undefined || typeof cell === 'string' ? 'plain' : cell.tone
    }
    const pieces = new Map(
      shown.map((c) => [c, columns[c]!.wraps === true ? wrapText(row[c] ?? '', widths.get(c)!) : [row[c] ?? '']]),
    )
    const height = Math.max(1, ...[...pieces.values()].map(({ length }) => length))
    const own = Array.from({ length: height }, (_, i) => line((c) => pieces.get(c)?.[i] ?? '', toneOf))
    return [...own, ...below.flatMap((c) => belowLines(columns[c]!, row[c] ?? '', toneOf(c), { room, paint }))]
  })
  return [head, ...body]
}

function belowLines(
  { below = '', wraps = false, isId = false }: Column,
  text: string,
  tone: Tone,
  { room, paint }: { readonly room: number; readonly paint: Paint },
): string[] {
  if (text === '') return []
  const label = below === '' ? '' : `${below}: `
  const space = Math.max(20, room - INDENT.length - widthOf(label))
  const pieces = wraps ? wrapText(text, space) : [isId ? text : cut(text, space)]
  return pieces.map((piece, i) => {
    const before = i === 0 ? paint('dim', label) : ' '.repeat(widthOf(label))
    return `${INDENT}${before}${paint(tone, piece)}`
  })
}

/** Which columns are shown, which stand below, and how wide each is. */
function layOut(
  columns: readonly Column[],
  filled: readonly number[],
  texts: readonly (readonly string[])[],
  room: number,
): {
  readonly shown: readonly number[]
  readonly below: readonly number[]
  readonly widths: ReadonlyMap<number, number>
} {
  const natural = new Map(
    filled.map((c) => [
      c,
      Math.max(widthOf(columns[c]!.title), ...texts.flatMap((row) => (row[c] ?? '').split('\n').map(widthOf))),
    ]),
  )
  const leastOf = (c: number) => Math.min(natural.get(c)!, Math.max(columns[c]!.min ?? Infinity, 1))
  const keptOf = (c: number) => Math.max(leastOf(c), Math.min(natural.get(c)!, columns[c]!.keep ?? 0))
  const sum = (shown: readonly number[], of: (c: number) => number) =>
    shown.reduce((total, c) => total + of(c), GAP.length * Math.max(0, shown.length - 1))
  let shown = [...filled]
  /** Columns that can be spared leave, down to that rank, until the others fit. */
  const spareDownTo = (rank: number, of: (c: number) => number) => {
    while (sum(shown, of) > room && shown.length > 1) {
      const spare = shown.filter((c) => (columns[c]!.spare ?? -1) >= rank)
      if (spare.length === 0) break
      const goes = spare.reduce((a, b) => (columns[b]!.spare! >= columns[a]!.spare! ? b : a))
      shown = shown.filter((c) => c !== goes)
    }
  }
  spareDownTo(1, keptOf)
  spareDownTo(0, leastOf)
  const below = filled.filter((c) => columns[c]!.below !== undefined && !shown.includes(c))
  // A wide column that moved below its rows may have left room for narrow ones that had to leave before it.
  const gone = filled.filter((c) => !shown.includes(c) && !below.includes(c))
  for (const c of gone.toSorted((a, b) => columns[a]!.spare! - columns[b]!.spare!)) {
    const wider = filled.filter((one) => shown.includes(one) || one === c)
    if (sum(wider, keptOf) <= room) shown = wider
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
  return { shown, below, widths }
}

/** The narrowest column in which the value of a fact is wrapped. */
const LEAST_VALUE = 8

/** Named facts, each with its value beside it, without the undefined ones. Long values are wrapped. */
export function renderFacts(
  facts: readonly (readonly [name: string, value: Cell | undefined])[],
  { columns: room, paint = plain }: TableOptions,
): string[] {
  const there = facts.filter((fact): fact is readonly [string, Cell] => fact[1] !== undefined)
  const width = Math.max(0, ...there.map(([name]) => widthOf(name)))
  return there.flatMap(([name, cell]) => {
    const { text, tone } = typeof cell === 'string' ? { text: cell, tone: 'plain' as const } : cell
    const pieces = wrapText(clean(text), Math.max(LEAST_VALUE, room - width - GAP.length))
    return (pieces.length === 0 ? [''] : pieces).map((piece, i) =>
      `${paint('dim', pad(i === 0 ? name : '', width))}${GAP}${paint(tone, piece)}`.trimEnd(),
    )
  })
}
