import type { RedactAbout, Redacted } from '../core/redact.js'
import type { GateView, Inspect, ItemSummary, ItemView } from '../ports/ledger.js'
import type { ItemReport } from './api.js'
import type { Desk } from './desk.js'
import { actsInLog, bulkActsOn } from './item-acts.js'
import { lineOf } from './item-line.js'
import { lifeOf } from './life.js'
import { readLog } from './pause-log.js'
import { withShownError, withShownErrors } from './redacted.js'

const MOST_CHILDREN = 100
/** A group may be large, and its children few: so many pages of it are looked at. */
const MOST_PAGES = 10

/** One item with everything that is known about it. */
export async function readItem(desk: Desk, redacted: Redacted, id: string): Promise<ItemReport | undefined> {
  const { ledger } = desk
  const [[found], now] = await Promise.all([ledger.read([id]), desk.now()])
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
  const logged = actsInLog(log, id)
  const acts = [...logged, ...(inspect === undefined ? [] : await bulkActsOn(desk, view, attempts, logged, now))]
  return {
    ...lineOf(view, now),
    attempts,
    children,
    life: lifeOf({ view, attempts, waitsFor: gate?.waiting, acts, now }),
    ...(input === undefined ? {} : { input: shown('input', input) }),
    ...(group === undefined
      ? {}
      : { group: { open: group.open, ...(group.value === undefined ? {} : { value: shown('group', group.value) }) } }),
    ...(gate === undefined ? {} : { waitsFor: gate.waiting }),
  }
}

export async function gateOf(inspect: Inspect | undefined, { hold }: ItemSummary): Promise<GateView | undefined> {
  return hold?.by === 'gate' ? inspect?.gate(hold.key) : undefined
}

/** Everything that it carries, as it may be shown. */
function shownView(view: ItemView, redacted: Redacted): ItemView {
  const { result, progress, envelope } = view
  return {
    ...withShownError(view, redacted),
    ...(result === undefined ? {} : { result: redacted('result', result, envelope) }),
    ...(progress === undefined ? {} : { progress: redacted('progress', progress, envelope) }),
  }
}

/** Of the first pages of its group: what names it as its parent. */
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
