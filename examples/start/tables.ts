import { type Books, problemOf, totals } from './books.js'
import { ink } from './ink.js'
import { beside, room, wrapped } from './lines.js'
import type { EffectSum } from './outside.js'
import type { Bill } from './work.js'

/** Everything in the end, as tables. */
export function printTables(books: Books, bills: ReadonlyMap<string, Bill>, sums: readonly EffectSum[]): void {
  heading('What became of the work:')
  table(
    ['type', 'items', 'completed', 'dead', 'retries', 'as planned'],
    totals(books.items).map((total) => {
      const { type, items, completed, dead, retries } = total
      return [
        type,
        `${items}`,
        `${completed}`,
        `${dead}`,
        `${retries}`,
        problemOf(total, books.writs) === undefined ? 'yes' : 'NO',
      ]
    }),
  )
  heading('The bills, as the lines of each order added up:')
  table(
    ['customer', 'total', 'lines'],
    [...bills].map(([customer, { cents, lines }]) => [customer, money(cents), lines.join(', ')]),
  )
  heading('Dead, each with its reason:')
  table(
    ['item', 'class', 'attempts', 'error'],
    books.items
      .filter(({ state }) => state === 'dead')
      .map((item) => [item.id, item.class ?? '?', `${item.attempt}`, item.error ?? '?']),
  )
  heading('What the guild owed:')
  table(
    ['writ', 'phase', 'rigs', 'why'],
    books.writs.map(({ title, phase, rigs, killedRigs, why }) => {
      const note =
        killedRigs === 0 ? '' : ` ${killedRigs} of its rigs was given up: its engine had been killed three times.`
      return [title, phase, `${rigs}`, `${why}${note}`.trim()]
    }),
  )
  heading('What happened outside, each once, even where a run that was cut off asked for it again:')
  table(
    ['effect', 'happened', 'asked for', 'amount'],
    sums.map(({ kind, effects, calls, amount }) => [
      kind,
      `${effects}`,
      `${calls}`,
      kind === 'payment' ? money(amount) : `${amount}`,
    ]),
  )
}

function money(cents: number): string {
  return (cents / 100).toFixed(2)
}

function heading(text: string): void {
  console.log()
  for (const line of wrapped(text, room())) console.log(ink('bold', line))
  console.log()
}

function table(titles: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = titles.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)))
  for (const [i, row] of [titles, ...rows].entries()) {
    const cells = row.slice(0, -1).map((cell, column) => `${cell.padEnd(widths[column] ?? 0)}   `)
    // Only the last column has texts of any length.
    for (const line of beside(`  ${cells.join('')}`, INDENT, row.at(-1) ?? ''))
      console.log(i === 0 ? ink('dim', line.trimEnd()) : line.trimEnd())
  }
}

/** Where a text begins that has no room beside its row. */
const INDENT = 6
