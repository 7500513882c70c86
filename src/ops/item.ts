import type { GateView, Inspect, ItemView } from '../ports/ledger.js'
import type { ItemReport } from './api.js'
import type { Desk } from './desk.js'
import { actsInLog, bulkActsOn } from './item-acts.js'
import { lineOf } from './item-line.js'
import { lifeOf } from './life.js'
import { readLog } from './pause-log.js'

/** What people may see of an input. */
export type Redact = (input: string, item: { readonly id: string; readonly type: string }) => string

const MOST_CHILDREN = 100
/** A group may be large, and its children few: so many pages of it are looked at. */
const MOST_PAGES = 10

/** One item with everything that is known about it. */
export async function readItem(desk: Desk, redact: Redact, id: string): Promise<ItemReport | undefined> {
  const { ledger } = desk
  const [[view], now] = await Promise.all([ledger.read([id]), desk.now()])
  if (view === undefined) return undefined
  const { inspect } = ledger
  const [attempts, log, input, children, [group], gate] = await Promise.all([
    inspect?.attempts(id) ?? [],
    readLog(inspect),
    inspect?.input(id),
    inspect === undefined ? [] : childrenOf(inspect, view),
    ledger.groups([view.envelope.groupId]),
    gateOf(inspect, view),
  ])
  const logged = actsInLog(log, id)
  const acts = [...logged, ...(inspect === undefined ? [] : await bulkActsOn(desk, view, attempts, logged, now))]
  return {
    ...lineOf(view, now),
    attempts,
    children,
    life: lifeOf({ view, attempts, waitsFor: gate?.waiting, acts, now }),
    ...(input === undefined ? {} : { input: seen(redact, input, view) }),
    ...(group === undefined
      ? {}
      : { group: { open: group.open, ...(group.value === undefined ? {} : { value: group.value }) } }),
    ...(gate === undefined ? {} : { waitsFor: gate.waiting }),
  }
}

export async function gateOf(inspect: Inspect | undefined, { hold }: ItemView): Promise<GateView | undefined> {
  return hold?.by === 'gate' ? inspect?.gate(hold.key) : undefined
}

/** A rule that fails must not be the one that lets the secret out. */
function seen(redact: Redact, input: string, { envelope: { id, type } }: ItemView): string {
  try {
    const shown: unknown = redact(input, { id, type })
    return typeof shown === 'string' ? shown : '[withheld: redact() did not return a text]'
  } catch (error) {
    // Its message could repeat the input; only its name is shown.
    return `[withheld: redact() threw ${error instanceof Error ? error.name : typeof error}]`
  }
}

/** Of the first pages of its group: what names it as its parent. */
async function childrenOf(inspect: Inspect, { envelope: { id, groupId } }: ItemView): Promise<string[]> {
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
