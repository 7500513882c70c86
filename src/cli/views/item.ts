import { listedError } from '../../core/text/error-text.js'
import type { At } from '../../core/time/time.js'
import type { ItemReport } from '../../ops/api.js'
import { durationText, instantText } from '../../ops/duration-text.js'
import { counted } from '../terminal/bar.js'
import { cleanLines } from '../terminal/clean.js'
import type { Paint } from '../terminal/paint.js'
import { type Cell, type Column, renderFacts, renderTable } from '../terminal/table.js'
import { cut } from '../terminal/width.js'
import { wrapIndented } from '../terminal/wrap.js'
import { renderFailure } from './failure.js'
import { classCell, outcomeCell, stateCell } from './states.js'
import { instantAndAgo } from './times.js'

interface View {
  readonly now: At
  readonly columns: number
  readonly paint: Paint
  /** Shows the whole payload and the whole stack, however long. */
  readonly isFull: boolean
}

const ATTEMPTS: readonly Column[] = [
  { title: 'attempt', align: 'right' },
  { title: 'started' },
  { title: 'took', align: 'right' },
  { title: 'outcome' },
  { title: 'class', spare: 1 },
  { title: 'rule', spare: 2 },
  { title: 'fingerprint', isId: true, spare: 3 },
  { title: 'worker', isId: true, spare: 4 },
  { title: 'error', min: 40, spare: 5, below: '' },
]
const TIMELINE: readonly Column[] = [
  { title: 'when' },
  { title: 'what' },
  { title: '', min: 36, wraps: true, spare: 0, below: '' },
]
/** How much of an error stands among the facts; the last failure is shown whole. */
const FACT_CHARACTERS = 300
/** How much of an error the timeline shows. */
const TIMELINE_CHARACTERS = 120
/** How much of a payload is shown without `--full`. */
const FOLDED_LINES = 20
const FOLDED_CHARACTERS = 4_000

/** One item: its facts, attempts, timeline and payloads. */
export function renderItem(item: ItemReport, view: View): string[] {
  const { columns, paint } = view
  const lines = [...renderFacts(factsOf(item, view.now), { columns, paint })]
  if (item.attempts.length > 0) {
    const rows = item.attempts.map((one): Cell[] => [
      String(one.attempt),
      instantText(Math.round(one.startedAt)),
      durationText(one.endedAt - one.startedAt),
      outcomeCell(one.outcome),
      classCell(one.class),
      one.class === undefined ? '' : (one.rule ?? ''),
      one.fingerprint ?? '',
      one.worker,
      listedError(one.error ?? ''),
    ])
    lines.push('', paint('title', 'Attempts'), ...renderTable(ATTEMPTS, rows, { columns, paint }))
  }
  const failure = item.attempts.findLast(({ detail }) => detail !== undefined)
  if (failure?.detail !== undefined) {
    const title = `Last failure, attempt ${failure.attempt}`
    lines.push('', paint('title', title), ...renderFailure(failure.detail, view))
  }
  if (item.timeline.length > 0) {
    const rows = item.timeline.map((one): Cell[] => [
      instantText(Math.round(one.at)),
      one.what,
      // The errors stand above, in full.
      one.what === 'failed' || one.what === 'died' ? listedError(one.text, TIMELINE_CHARACTERS) : one.text,
    ])
    lines.push('', paint('title', 'Timeline'), ...renderTable(TIMELINE, rows, { columns, paint }))
  }
  if (item.input !== undefined) lines.push('', paint('title', 'Input'), ...renderPayload(item.input, view))
  if (item.result !== undefined) lines.push('', paint('title', 'Result'), ...renderPayload(item.result, view))
  return lines
}

function factsOf(item: ItemReport, now: At): [string, Cell | undefined][] {
  const { envelope, hold, group } = item
  const ended = [item.ending, item.class].filter((word) => word !== undefined).join(', ')
  const list = (ids: readonly string[] | undefined) =>
    ids === undefined || ids.length === 0 ? undefined : ids.join(', ')
  return [
    ['id', { text: item.id, tone: 'name' }],
    ['type', item.type],
    ['state', stateCell(item.state)],
    ['ended as', ended === '' ? undefined : ended],
    ['error', item.error === undefined ? undefined : listedError(item.error, FACT_CHARACTERS)],
    ['queue', item.queue],
    ['attempt', String(envelope.attempt)],
    ['priority', envelope.priority === 0 ? undefined : String(envelope.priority)],
    ['tags', list(envelope.tags)],
    ['enqueued', instantAndAgo(envelope.queueAt, now)],
    ['due', instantAndAgo(item.dueAt, now)],
    ['deadline', instantAndAgo(envelope.deadline, now)],
    ['taken', instantAndAgo(item.runAt, now)],
    ['running', item.running === undefined ? undefined : item.running ? 'yes' : 'not reported by the last heartbeat'],
    ['held by', item.worker],
    ['lease until', instantAndAgo(item.leaseUntil, now)],
    ['ended', instantAndAgo(item.endAt, now)],
    ['held', hold === undefined ? undefined : `${hold.by} ${hold.key}`],
    ['waits for', list(item.waitsFor)],
    ['to be cancelled', item.cancelReason === undefined ? undefined : item.cancelReason || 'no reason given'],
    ['progress', item.progress],
    ['lapsed leases', item.lapses ? `${item.lapses}, of which ${item.crashes ?? 0} while running` : undefined],
    ['redriven', envelope.redrives ? counted(envelope.redrives, 'time') : undefined],
    ['parent', envelope.parent],
    ['children', list(item.children)],
    ['group', groupText(envelope.groupId, group)],
  ]
}

function groupText(id: string, group: ItemReport['group']): string {
  if (group === undefined) return id
  return `${id} (${group.open} open${group.value === undefined ? '' : `, value ${group.value}`})`
}

/** A payload, indented if it is JSON, and shortened if it is long. */
function renderPayload(text: string, { columns, paint, isFull }: Pick<View, 'columns' | 'paint' | 'isFull'>): string[] {
  const pretty = indented(isFull ? text : text.slice(0, FOLDED_CHARACTERS), text)
  const lines = wrapIndented(cleanLines(pretty), columns - 2)
  // A path or a long text without spaces is one word.
  const shown = isFull ? lines : lines.slice(0, FOLDED_LINES).map((line) => cut(line, columns - 2))
  const isCut =
    !isFull &&
    (text.length > FOLDED_CHARACTERS || lines.length > FOLDED_LINES || shown.some((line, i) => line !== lines[i]))
  return [
    ...shown.map((line) => `  ${line}`),
    ...(isCut
      ? [paint('dim', cut(`  … ${counted(text.length, 'character')} in total; --full shows them`, columns))]
      : []),
  ]
}

function indented(shown: string, whole: string): string {
  // A shortened payload is no longer JSON.
  if (shown.length < whole.length) return shown
  try {
    return JSON.stringify(JSON.parse(whole), null, 2)
  } catch {
    return shown
  }
}
