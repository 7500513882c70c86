import type { RedactAbout, Redacted } from '../../core/text/redact.js'
import type { GateView, Inspect, ItemSummary, ItemView } from '../../ports/inspect.js'
import type { Attempt } from '../../ports/item.js'
import type { ItemReport, RunReport } from '../api.js'
import type { OpsContext } from '../context.js'
import { readLog } from '../fleet/pauses.js'
import { actionsInLog, bulkActionsOn, endOfRun } from './action-history.js'
import { listedItem } from './listed-item.js'
import { withShownError, withShownErrors } from './redacted.js'
import { timelineOf } from './timeline.js'

const MOST_CHILDREN = 100
/** A group may be large and have few children: this many of its pages are read. */
const MOST_PAGES = 10

/** One item with everything that is known about it. */
export async function readItem(context: OpsContext, redacted: Redacted, id: string): Promise<ItemReport | undefined> {
  const { ledger } = context
  const [[found], now] = await Promise.all([ledger.read([id]), context.now()])
  if (found === undefined) return undefined
  const view = shownView(found, redacted)
  const shown = (kind: RedactAbout['kind'], value: string) => redacted(kind, value, view.envelope)
  const { inspect } = ledger
  const [runs, log, input, children, [group], gate] = await Promise.all([
    inspect?.attempts(id) ?? [],
    readLog(inspect),
    inspect?.input(id),
    inspect === undefined ? [] : childrenOf(inspect, view),
    ledger.groups([view.envelope.groupId]),
    gateOf(inspect, view),
  ])
  const attempts = withShownErrors(runs, view, redacted)
  const logged = actionsInLog(log, id).map((action) =>
    action.verb === 'cancel' && action.why !== '' ? { ...action, why: shown('error', action.why) } : action,
  )
  const actions = [
    ...logged,
    ...(inspect === undefined ? [] : await bulkActionsOn(context, view, attempts, logged, now)),
  ]
  return {
    ...listedItem(view, now),
    attempts: attempts.map(runReport),
    children,
    timeline: timelineOf({ view, attempts, waitsFor: gate?.waiting, actions, now }),
    ...(input === undefined ? {} : { input: shown('input', input) }),
    ...(group === undefined
      ? {}
      : { group: { open: group.open, ...(group.value === undefined ? {} : { value: shown('group', group.value) }) } }),
    ...(gate === undefined ? {} : { waitsFor: gate.waiting }),
  }
}

/** What became of a run. */
function runReport(run: Attempt): RunReport {
  if (run.class !== undefined) return { ...run, outcome: 'failed' }
  return { ...run, outcome: endOfRun(run) ?? 'succeeded' }
}

export async function gateOf(inspect: Inspect | undefined, { hold }: ItemSummary): Promise<GateView | undefined> {
  return hold?.by === 'gate' ? inspect?.gate(hold.key) : undefined
}

/** The item with its payloads and error after `redact`. */
function shownView(view: ItemView, redacted: Redacted): ItemView {
  const { result, progress, envelope } = view
  return {
    ...withShownError(view, redacted),
    ...(result === undefined ? {} : { result: redacted('result', result, envelope) }),
    ...(progress === undefined ? {} : { progress: redacted('progress', progress, envelope) }),
  }
}

/** Items in the first pages of its group that name it as their parent. */
async function childrenOf(inspect: Inspect, { envelope: { id, groupId } }: ItemSummary): Promise<string[]> {
  const children: string[] = []
  let cursor: string | undefined
  for (let page = 0; page < MOST_PAGES && children.length < MOST_CHILDREN; page += 1) {
    const from = cursor === undefined ? {} : { cursor }
    const { items, next } = await inspect.list({ groupId, limit: MOST_CHILDREN, ...from })
    for (const { envelope } of items) if (envelope.parent === id) children.push(envelope.id)
    if (next === undefined) break
    cursor = next
  }
  return children.slice(0, MOST_CHILDREN)
}
