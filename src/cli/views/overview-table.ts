import type { Overview, OverviewRow, WorkerReport } from '../../ops/api.js'
import { durationText, instantText } from '../../ops/duration-text.js'
import type { ItemState } from '../../ports/words.js'
import { counted, countText } from '../terminal/bar.js'
import { clean } from '../terminal/clean.js'
import type { Paint, Tone } from '../terminal/paint.js'
import { type Cell, type Column, renderTable } from '../terminal/table.js'
import { cut } from '../terminal/width.js'

/** On a narrow screen, the waiting and dead counts stay longest. */
const COLUMNS: readonly Column[] = [
  { title: 'queue', min: 8 },
  { title: 'type', min: 10 },
  { title: 'waiting', align: 'right' },
  { title: 'oldest', align: 'right', spare: 4 },
  { title: 'active', align: 'right', spare: 2 },
  { title: 'retrying', align: 'right', spare: 1 },
  { title: 'scheduled', align: 'right', spare: 6 },
  { title: 'blocked', align: 'right', spare: 7 },
  { title: 'dead', align: 'right' },
  { title: 'done/min', align: 'right', spare: 5 },
  { title: 'failed/min', align: 'right', spare: 8 },
  { title: 'workers', align: 'right', spare: 3 },
]

interface View {
  readonly columns: number
  readonly paint: Paint
  /** The address of the backend. */
  readonly name: string
  /** The height of a screen that does not scroll. */
  readonly rows?: number
}

/** Items by queue, type and state, and the workers. */
export function renderOverview(overview: Overview, { columns, paint, name, rows: room = Infinity }: View): string[] {
  const { at, rows, workers, paused, writs } = overview
  const head = cut(`${clean(name)}  ${instantText(Math.round(at))}`, columns)
  const tail = [
    '',
    cut(workersText(workers), columns),
    ...(writs === undefined || writs.open + writs.stuck === 0 ? [] : [writsText(writs, columns, paint)]),
    ...(paused.queues.length + paused.types.length === 0 ? [] : [paint('warn', cut(pausedText(paused), columns))]),
  ]
  if (rows.length === 0) return [paint('title', head), '', 'There is no work.', ...tail]
  const shownRows = Math.max(1, room - tail.length - 5)
  const shown = rowsThatFit(rows, shownRows)
  const left = rows.length - shown.length
  const cells = [...shown.map(rowCells), ...(rows.length > 1 ? [totalCells(rows)] : [])]
  return [
    paint('title', head),
    '',
    ...renderTable(quietFirst(cells), cells, { columns, paint }),
    ...(left > 0 ? [paint('dim', `… and ${counted(left, 'more row')}`)] : []),
    ...tail,
  ]
}

/** More than any `spare` of a column. */
const QUIET = 100

/** On a narrow screen, columns that count nothing leave before those that do. */
function quietFirst(cells: readonly (readonly Cell[])[]): Column[] {
  const isQuiet = (cell: Cell | undefined) =>
    cell === undefined || ['', '0'].includes(typeof cell === 'string' ? cell : cell.text)
  return COLUMNS.map((column, c) =>
    column.spare !== undefined && cells.every((row) => isQuiet(row[c]))
      ? { ...column, spare: column.spare + QUIET }
      : column,
  )
}

/** The rows that fit, in order; rows without unfinished or dead items are left out first. */
function rowsThatFit(rows: readonly OverviewRow[], room: number): readonly OverviewRow[] {
  if (rows.length <= room) return rows
  const isQuiet = ({ counts: { completed: _, cancelled: __, ...rest } }: OverviewRow) =>
    Object.values(rest).every((count) => count === 0)
  const chosen = new Set([...rows.filter((row) => !isQuiet(row)), ...rows.filter(isQuiet)].slice(0, room))
  return rows.filter((row) => chosen.has(row))
}

function rowCells(row: OverviewRow): Cell[] {
  const { counts, oldestWaitMs } = row
  const isUnserved = row.workers === 0 && counts.waiting + counts.retrying > 0
  return [
    row.queue,
    row.type,
    number(counts.waiting),
    oldestWaitMs === undefined ? '' : durationText(oldestWaitMs),
    number(counts.active, 'busy'),
    number(counts.retrying, 'warn'),
    number(counts.scheduled),
    number(counts.blocked, 'warn'),
    number(counts.dead, 'bad'),
    number(row.completedPerMinute, 'good'),
    number(row.failedPerMinute, 'bad'),
    isUnserved ? { text: 'none', tone: 'bad' } : countText(row.workers),
  ]
}

function totalCells(rows: readonly OverviewRow[]): Cell[] {
  const sum = (of: (row: OverviewRow) => number) => rows.reduce((total, row) => total + of(row), 0)
  const state = (word: ItemState): Cell => ({ text: countText(sum((row) => row.counts[word])), tone: 'title' })
  const oldest = Math.max(...rows.map((row) => row.oldestWaitMs ?? -1))
  return [
    { text: 'all', tone: 'title' },
    '',
    state('waiting'),
    oldest < 0 ? '' : durationText(oldest),
    state('active'),
    state('retrying'),
    state('scheduled'),
    state('blocked'),
    state('dead'),
    { text: countText(sum((row) => row.completedPerMinute)), tone: 'title' },
    { text: countText(sum((row) => row.failedPerMinute)), tone: 'title' },
    '',
  ]
}

function number(count: number, tone: Tone = 'plain'): Cell {
  return count === 0 ? { text: '0', tone: 'dim' } : { text: countText(count), tone }
}

function workersText(workers: readonly WorkerReport[]): string {
  const alive = workers.filter((worker) => worker.isAlive)
  const gone = workers.length - alive.length
  const hosts = [...new Set(alive.map((worker) => worker.host))]
  const where = hosts.length === 0 ? '' : ` on ${hosts.map(clean).join(', ')}`
  return `${counted(alive.length, 'live worker')}${where}${gone === 0 ? '' : `; ${gone} not heard of lately`}`
}

/** Stuck writs need a person: says where to look. */
function writsText({ open, stuck }: NonNullable<Overview['writs']>, columns: number, paint: Paint): string {
  const text = `writs of the guild: ${countText(open)} open, ${countText(stuck)} stuck`
  return stuck === 0 ? cut(text, columns) : paint('bad', cut(`${text}: millrace writs --phase stuck`, columns))
}

function pausedText({ queues, types }: Overview['paused']): string {
  const names = [...queues.map((name) => `queue ${name}`), ...types.map((name) => `type ${name}`)]
  return `paused: ${names.map(clean).join(', ')}`
}
