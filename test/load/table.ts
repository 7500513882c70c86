import type { LoadResult } from './run-load.js'
import type { LoadBackend, ScenarioName } from './scenarios.js'

const COLUMNS = [
  'items',
  'success',
  'dead',
  '2nd runs',
  'onError',
  'lapsed',
  'held',
  'stall ms',
  'delay ms',
  'heap MB',
  'live MB',
  'rss MB',
  '/s',
  's',
]
const [FIRST, WIDTH] = [28, 9]

export const HEADER = ''.padEnd(FIRST) + COLUMNS.map((name) => name.padStart(WIDTH)).join('')

/** One run as a row, and below it what else it reported and which limits it broke. */
export function rowOf(backend: LoadBackend, scenario: ScenarioName, { report, broken }: LoadResult): string {
  const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((a, b) => a + b, 0)
  const values =
    report === undefined
      ? COLUMNS.map(() => '?')
      : [
          report.expected,
          report.done,
          sum(report.dead),
          report.secondRuns,
          sum(report.errors),
          report.lapses,
          report.held,
          report.stallMs,
          report.delayMs,
          report.heapMb,
          report.liveMb,
          report.rssMb,
          report.perSecond,
          (report.ms / 1_000).toFixed(1),
        ]
  const facts = Object.entries(report?.facts ?? {}).map(([name, value]) => `${name} ${value}`)
  return [
    `${backend} ${scenario}`.padEnd(FIRST) + values.map((value) => String(value).padStart(WIDTH)).join(''),
    ...(facts.length === 0 ? [] : [`    ${facts.join(', ')}`]),
    ...broken.map((fault) => `  ✗ ${fault}`),
  ].join('\n')
}
