import type { Io, Sink } from './io.js'
import { cleanJson } from './terminal/clean.js'
import { type Paint, painterFor, plain } from './terminal/paint.js'
import { type Cell, type Column, renderFacts, renderTable } from './terminal/table.js'
import { wrapText } from './terminal/wrap.js'

/** The output of commands: lines and tables or one JSON document on stdout, notes on stderr. */
export interface Screen {
  readonly paint: Paint
  /** How wide a line of the output may be. */
  readonly columns: number
  line(text?: string): void
  lines(texts: readonly string[]): void
  table(columns: readonly Column[], rows: readonly (readonly Cell[])[]): void
  facts(facts: readonly (readonly [name: string, value: Cell | undefined])[]): void
  /** The one document of `--json`, or one line of many. */
  json(value: unknown, form?: 'document' | 'line'): void
  /** A remark on stderr, which is not part of the result. */
  note(text: string): void
}

export function openScreen({ out, err, env }: Pick<Io, 'out' | 'err' | 'env'>, mayColour: boolean): Screen {
  const paint = mayColour ? painterFor(out.isTerminal, env) : plain
  const columns = widthFor(out)
  const lines = (texts: readonly string[]) => {
    if (texts.length > 0) out.write(`${texts.join('\n')}\n`)
  }
  return {
    paint,
    columns,
    line: (text = '') => lines([text]),
    lines,
    table: (heads, rows) => lines(renderTable(heads, rows, { columns, paint })),
    facts: (facts) => lines(renderFacts(facts, { columns, paint })),
    json: (value, form = 'document') => lines([jsonText(value, form)]),
    note: (text) => err.write(`${text}\n`),
  }
}

/** Paint and width of stderr. */
export function notesOf({ err, env }: Pick<Io, 'err' | 'env'>, mayColour: boolean): { paint: Paint; columns: number } {
  return { paint: mayColour ? painterFor(err.isTerminal, env) : plain, columns: widthFor(err) }
}

/** A line that fills the last column makes some terminals wrap. */
function widthFor(sink: Sink): number {
  return sink.isTerminal ? Math.max(20, sink.columns - 1) : Infinity
}

/** JSON for programs, without infinite numbers, which JSON cannot hold. */
export function jsonText(value: unknown, form: 'document' | 'line'): string {
  const text = JSON.stringify(
    value,
    (_key, one: unknown) => (typeof one === 'number' && !Number.isFinite(one) ? undefined : one),
    form === 'document' ? 2 : 0,
  )
  return cleanJson(text)
}

/** Text wrapped to that width, or to a readable one if that is less; each line indented. */
export function wrap(text: string, columns: number, indent = ''): string[] {
  const room = Math.max(20, Math.min(columns, READABLE) - indent.length)
  return wrapText(text, room).map((line) => indent + line)
}

/** Longer lines are hard to read. */
const READABLE = 100
