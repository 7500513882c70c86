import type { RigReport, WritReport, WritSummary } from '../../ops/api.js'
import { instantText } from '../../ops/duration-text.js'
import { cleanLines } from '../terminal/clean.js'
import type { Paint, Tone } from '../terminal/paint.js'
import { type Cell, type Column, renderFacts, renderTable } from '../terminal/table.js'
import { cut } from '../terminal/width.js'
import { renderReasons, type ShownReason } from './reasons.js'
import { isoText } from './times.js'

interface View {
  readonly columns: number
  readonly paint: Paint
}

/** How many lines of a body are shown. */
const BODY_LINES = 20

export const WRIT_COLUMNS: readonly Column[] = [
  { title: 'writ', isId: true, spare: 0, below: '' },
  { title: 'phase' },
  { title: 'type', min: 8 },
  { title: 'title', min: 14 },
  { title: 'parent', isId: true, spare: 2, below: 'parent' },
  { title: 'updated', spare: 1 },
]

const ENGINE_COLUMNS: readonly Column[] = [
  { title: 'engine', min: 8 },
  { title: 'design', min: 8, spare: 2 },
  { title: 'status' },
  { title: 'after', min: 8, spare: 3 },
  { title: 'retries', align: 'right', spare: 5 },
  { title: 'started', spare: 4 },
  { title: 'ended', spare: 1 },
  { title: 'note', min: 30, wraps: true, spare: 6, below: '' },
]

export function writCells(writ: WritSummary): Cell[] {
  return [
    writ.id,
    { text: writ.phase, tone: toneOf(writ.phase) },
    writ.type,
    writ.title,
    writ.parentId ?? '',
    isoText(writ.updatedAt),
  ]
}

/** A writ as it is shown: its reasons with the commands that resolve them. */
type ShownWrit = Omit<WritReport, 'reasons'> & { readonly reasons: readonly ShownReason[] }

export function renderWrit(writ: ShownWrit, { columns, paint }: View): string[] {
  const { cap, rigs, retry } = writ
  const title = (text: string) => ['', paint('title', text)]
  const lines = renderFacts(
    [
      ['writ', { text: writ.id, tone: 'name' }],
      ['title', writ.title],
      ['type', writ.type],
      ['phase', { text: writ.phase, tone: toneOf(writ.phase) }],
      ['resolution', writ.resolution],
      ['rigs', cap === undefined ? String(rigs.length) : `${rigs.length} of at most ${cap}`],
      ['parent', writ.parentId],
      ['created', isoText(writ.createdAt)],
      ['updated', isoText(writ.updatedAt)],
      ['not before', writ.runAt === undefined ? undefined : isoText(writ.runAt)],
      ['deadline', writ.deadline === undefined ? undefined : isoText(writ.deadline)],
      ['retry', retry === undefined ? undefined : `${retry.decision}: ${retry.why}`],
    ],
    { columns, paint },
  )
  if (writ.reasons.length > 0)
    lines.push(...title('Why it does not continue'), ...renderReasons(writ.reasons, columns, paint))
  if (writ.links.length > 0) {
    const rows = writ.links.map(({ from, label, to }) => [from, label, to])
    const heads = [{ title: 'from', isId: true }, { title: 'label' }, { title: 'to', isId: true }]
    lines.push(...title('Links'), ...renderTable(heads, rows, { columns, paint }))
  }
  if (writ.children.length > 0)
    lines.push(...title('Children'), ...renderTable(WRIT_COLUMNS, writ.children.map(writCells), { columns, paint }))
  if (writ.log.length > 0) {
    const heads = [{ title: 'when' }, { title: 'who', min: 8 }, { title: 'what', min: 16 }, { title: 'why', min: 8 }]
    const rows = writ.log.map(({ at, who, what, why }) => [instantText(at), who, what, why])
    lines.push(...title('What people did'), ...renderTable(heads, rows, { columns, paint }))
  }
  rigs.forEach((rig, i) => {
    lines.push(...title(`Rig ${i + 1}`), ...renderRig(rig, { columns, paint }))
  })
  if (writ.body !== '') {
    const body = cleanLines(writ.body).split('\n')
    const shown = body.slice(0, BODY_LINES).map((line) => cut(`  ${line}`, columns))
    lines.push(...title('Body'), ...shown)
    if (body.length > BODY_LINES)
      lines.push(paint('dim', cut(`  … ${body.length} lines in total; --json has them`, columns)))
  }
  return lines
}

export function renderRig(rig: RigReport, { columns, paint }: View): string[] {
  const facts = renderFacts(
    [
      ['rig', { text: rig.id, tone: 'name' }],
      ['writ', rig.writId],
      ['status', { text: rig.status, tone: toneOf(rig.status) }],
      ['created', isoText(rig.createdAt)],
    ],
    { columns, paint },
  )
  if (rig.engines.length === 0) return facts
  const rows = rig.engines.map((engine): Cell[] => [
    engine.id,
    engine.designId,
    { text: engine.status, tone: toneOf(engine.status) },
    engine.upstream.join(', '),
    engine.retries === undefined ? '' : String(engine.retries),
    isoText(engine.startedAt),
    isoText(engine.completedAt),
    engine.error ??
      engine.blockedBy ??
      (engine.carriedFrom === undefined ? '' : `carried over from ${engine.carriedFrom}`),
  ])
  return [...facts, '', ...renderTable(ENGINE_COLUMNS, rows, { columns, paint })]
}

/** The tone of a phase or status. Phases of custom types have none. */
function toneOf(word: string): Tone {
  if (['completed', 'done'].includes(word)) return 'good'
  if (['failed', 'stuck'].includes(word)) return 'bad'
  if (['running', 'active', 'open'].includes(word)) return 'busy'
  return ['blocked', 'waiting'].includes(word) ? 'warn' : 'plain'
}
