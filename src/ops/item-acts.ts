import type { At, Ms } from '../core/time.js'
import type { Attempt } from '../ports/item.js'
import type { ItemSummary, LogEntry } from '../ports/ledger.js'
import { ActionBook } from './acts/action-book.js'
import type { ActionRecord } from './acts/action-record.js'
import { ChangedPages } from './acts/changed-pages.js'
import type { Verb } from './api.js'
import type { Desk } from './desk.js'

/** What somebody did to an item. */
export interface ItemAct {
  readonly at: At
  readonly verb: Verb | 'repair'
  readonly who: string
  readonly why: string
  /** The bulk action that took it with others. */
  readonly action?: string
}

const VERBS: readonly Verb[] = ['redrive', 'discard', 'cancel', 'runNow']

/** What the log tells of one item. */
export function actsInLog(log: readonly LogEntry[], id: string): readonly ItemAct[] {
  return log.flatMap(({ at, who, why, what }): readonly ItemAct[] => {
    const verb = VERBS.find((one) => what === `${one} ${id}`)
    if (verb !== undefined) return [{ at, verb, who, why }]
    return what.startsWith('audit repaired ') && what.endsWith(` of ${id}`) ? [{ at, verb: 'repair', who, why }] : []
  })
}

/** A time in which an item was changed, or may have been. */
interface Window {
  readonly verb: Verb
  readonly from: At
  readonly until: At
  /** When exactly, if the item tells that itself. Of a bulk action only the moment before its commit is known. */
  readonly at?: At
}

/** A worker tells the ends of runs by what it believes to be the backend's time. */
const SKEW_MS: Ms = 100

/**
 * What bulk actions did to an item. They have no line for each item in the log; but they keep what they took, in the order of
 * time, and the item tells when something happened to it. What the log tells is not looked for again.
 */
export async function bulkActsOn(
  desk: Desk,
  view: ItemSummary,
  attempts: readonly Attempt[],
  logged: readonly ItemAct[],
  now: At,
): Promise<readonly ItemAct[]> {
  const actions = await new ActionBook(desk).recent()
  if (actions.length === 0) return []
  const { id } = view.envelope
  const pages = new ChangedPages(desk)
  const windows = windowsOf(view, attempts, now).filter(
    ({ verb, from, until }) => !logged.some((act) => act.verb === verb && act.at >= from && act.at <= until),
  )
  const found = await Promise.all(windows.map((window) => lastActIn(window, actions, pages, id)))
  // Times that touch both tell of the same act: no action changes an item twice.
  const byAction = new Map(found.flatMap((act) => (act === undefined ? [] : [[act.action, act] as const])))
  return [...byAction.values()]
}

/** Where two actions name the item, it was the one that came to it last: the other died before it could change it. */
async function lastActIn(
  { verb, from, until, at: exactly }: Window,
  actions: readonly ActionRecord[],
  pages: ChangedPages,
  id: string,
): Promise<ItemAct | undefined> {
  let last: ItemAct | undefined
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
  // The last redrive counts as its enqueue; those before it lie between two runs of which the second began anew.
  if (redrives > 0) windows.push({ verb: 'redrive', from: endBefore, until: queueAt, at: queueAt })
  for (const [i, next] of attempts.entries()) {
    const last = attempts[i - 1]
    if (last === undefined) continue
    const [from, until] = [last.endedAt, next.startedAt]
    if (!hasBegunAnew(last, next)) windows.push({ verb: 'runNow', from, until })
    else if (queueAt < from || queueAt > until) windows.push({ verb: 'redrive', from, until })
  }
  if (view.ending === 'cancelled' || view.cancelled !== undefined)
    windows.push({ verb: 'cancel', from: queueAt, until: view.endAt ?? now })
  const first = attempts.find(({ startedAt }) => startedAt >= queueAt)
  windows.push({ verb: 'runNow', from: queueAt, until: first?.startedAt ?? view.endAt ?? now })
  const last = attempts.at(-1)
  if (last !== undefined && last.endedAt >= queueAt && (view.status === 'pending' || view.status === 'running'))
    windows.push({ verb: 'runNow', from: last.endedAt, until: now })
  return windows
}

/** A failure that is tried again has a higher number then; only a deferral repeats it, and that is no failure. */
export function hasBegunAnew(last: Attempt, next: Attempt): boolean {
  return next.attempt < last.attempt || (next.attempt === last.attempt && last.class !== undefined)
}
