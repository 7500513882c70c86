import type { At, Ms } from '../../core/time/time.js'
import type { ItemSummary, LogEntry } from '../../ports/inspect.js'
import type { Attempt, EndedRun } from '../../ports/item.js'
import type { ActionRecord } from '../actions/action-record.js'
import { ActionStore } from '../actions/action-store.js'
import { ChangedPages } from '../actions/changed-pages.js'
import type { BulkVerb } from '../api.js'
import type { OpsContext } from '../context.js'

/** Something that a person or a tool did to an item. */
export interface ItemAction {
  readonly at: At
  readonly verb: BulkVerb | 'repair'
  readonly who: string
  readonly why: string
  /** The bulk action it was part of. */
  readonly action?: string
}

const VERBS: readonly BulkVerb[] = ['redrive', 'discard', 'cancel', 'runNow']

/** The actions on one item that are in the log. */
export function actionsInLog(log: readonly LogEntry[], id: string): readonly ItemAction[] {
  return log.flatMap(({ at, who, why, what }): readonly ItemAction[] => {
    const verb = VERBS.find((one) => what === `${one} ${id}`)
    if (verb !== undefined) return [{ at, verb, who, why }]
    return what.startsWith('audit repaired ') && what.endsWith(` of ${id}`) ? [{ at, verb: 'repair', who, why }] : []
  })
}

/** A period in which an item was changed, or may have been. */
interface Window {
  readonly verb: BulkVerb
  readonly from: At
  readonly until: At
  /** The exact time, if the item itself has it. A bulk action only stores the moment before its commit. */
  readonly at?: At
}

/** A worker reports the ends of runs by its estimate of the backend's time. */
const SKEW_MS: Ms = 100

/**
 * What bulk actions did to an item. The log has no line for each item, but the actions store which items they changed, in order
 * of time, and the item shows when something happened to it. Periods covered by the log are skipped.
 */
export async function bulkActionsOn(
  context: OpsContext,
  view: ItemSummary,
  attempts: readonly Attempt[],
  logged: readonly ItemAction[],
  now: At,
): Promise<readonly ItemAction[]> {
  const actions = await new ActionStore(context).recent()
  if (actions.length === 0) return []
  const { id } = view.envelope
  const pages = new ChangedPages(context)
  const windows = windowsOf(view, attempts, now).filter(
    ({ verb, from, until }) => !logged.some((done) => done.verb === verb && done.at >= from && done.at <= until),
  )
  const found = await Promise.all(windows.map((window) => lastActionIn(window, actions, pages, id)))
  // Adjacent periods may both name the same action; no action changes an item twice.
  const byAction = new Map(found.flatMap((done) => (done === undefined ? [] : [[done.action, done] as const])))
  return [...byAction.values()]
}

/** If two actions name the item, the later one changed it: the other died before it could. */
async function lastActionIn(
  { verb, from, until, at: exactly }: Window,
  actions: readonly ActionRecord[],
  pages: ChangedPages,
  id: string,
): Promise<ItemAction | undefined> {
  let last: ItemAction | undefined
  for (const action of actions) {
    if (action.verb !== verb || action.startedAt > until) continue
    const at = await pages.lastChange(action, id, from - SKEW_MS, until)
    if (at === undefined || at <= (last?.at ?? Number.NEGATIVE_INFINITY)) continue
    last = { at, verb, who: action.who, why: action.why, action: action.id }
  }
  return last === undefined ? undefined : { ...last, at: exactly ?? Math.max(last.at, from) }
}

function windowsOf(view: ItemSummary, attempts: readonly Attempt[], now: At): readonly Window[] {
  const { queueAt, redrives = 0 } = view.envelope
  const windows: Window[] = []
  const endBefore = attempts.findLast(({ endedAt }) => endedAt <= queueAt)?.endedAt ?? 0
  // The last redrive sets the enqueue time; earlier ones lie between two runs of which the second starts over.
  if (redrives > 0) windows.push({ verb: 'redrive', from: endBefore, until: queueAt, at: queueAt })
  for (const [i, next] of attempts.entries()) {
    const last = attempts[i - 1]
    if (last === undefined) continue
    const [from, until] = [last.endedAt, next.startedAt]
    if (!hasStartedOver(last, next)) windows.push({ verb: 'runNow', from, until })
    else if (queueAt < from || queueAt > until) windows.push({ verb: 'redrive', from, until })
  }
  if (view.ending === 'cancelled' || view.cancelReason !== undefined)
    windows.push({ verb: 'cancel', from: queueAt, until: view.endAt ?? now })
  const first = attempts.find(({ startedAt }) => startedAt >= queueAt)
  windows.push({ verb: 'runNow', from: queueAt, until: first?.startedAt ?? view.endAt ?? now })
  const last = attempts.at(-1)
  if (last !== undefined && last.endedAt >= queueAt && (view.status === 'pending' || view.status === 'running'))
    windows.push({ verb: 'runNow', from: last.endedAt, until: now })
  return windows
}

/** Whether a redrive lies between two runs. A retry has a higher number; only a deferral repeats one. */
export function hasStartedOver(last: Attempt, next: Attempt): boolean {
  return next.attempt < last.attempt || (next.attempt === last.attempt && endOfRun(last) !== 'deferred')
}

const ENDED_RUNS: readonly (string | undefined)[] = ['cancelled', 'expired', 'deferred'] satisfies EndedRun[]

/** How a run ended that neither failed nor succeeded. */
export function endOfRun({ class: of, rule }: Attempt): EndedRun | undefined {
  // The list holds just these words.
  return of === undefined && ENDED_RUNS.includes(rule) ? (rule as EndedRun) : undefined
}
