import {
  type AnyWorkBuilder,
  type DeadLettered,
  type Metrics,
  readEnvelope,
  WORK_METRICS,
  type WorkMetric,
} from 'millrace'
import type { Story } from './story.js'
import type { Bill } from './work.js'

export function printBills(bills: ReadonlyMap<string, Bill>): void {
  console.log('\nThe bills, as the lines of each order added up:\n')
  table(
    ['customer', 'total', 'lines'],
    [...bills].map(([customer, { cents, lines }]) => [customer, (cents / 100).toFixed(2), lines.join(', ')]),
  )
}

export function printTypes(metrics: Metrics, types: readonly AnyWorkBuilder[]): void {
  const columns: readonly (readonly [string, WorkMetric])[] = [
    ['runs', 'started'],
    ['done', 'succeeded'],
    ['retried', 'retried'],
    ['put off', 'deferred'],
    ['parked', 'failed'],
  ]
  console.log('\nWhat became of the work:\n')
  table(
    ['type', ...columns.map(([title]) => title)],
    types.map(({ type }) => [
      type,
      ...columns.map(([, name]) => String(metrics.get(WORK_METRICS[name], { type })?.value ?? 0)),
    ]),
  )
}

export function printParked(dead: readonly DeadLettered[], { parked }: Story): void {
  console.log('\nParked on the file, each with its reason:\n')
  table(
    ['item', 'class', 'attempts', 'error'],
    dead.map(({ body, error }) => {
      const reason = parked.get(readEnvelope(body)?.id ?? '')
      return [reason?.name ?? '?', reason?.class ?? '?', String(reason?.attempt ?? '?'), error]
    }),
  )
}

function table(titles: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = titles.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)))
  for (const row of [titles, ...rows]) {
    console.log(`  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('   ')}`.trimEnd())
  }
}
