import type { Redacted } from '../core/redact.js'
import type { Inspect, ItemSummary } from '../ports/ledger.js'
import type { Desk } from './desk.js'
import { type ExplainFacts, NAMED_MEMBERS, pausedBy } from './explain.js'
import { gateOf } from './item.js'
import { pauseOf, readLog } from './pause-log.js'
import { withShownError, withShownErrors } from './redacted.js'

/** Reads what an explanation stands on: what everything hangs on first, then side by side what that leads to. */
export async function readExplainFacts(desk: Desk, redacted: Redacted, id: string): Promise<ExplainFacts> {
  const { ledger } = desk
  const { inspect } = ledger
  const [now, [found], workers] = await Promise.all([desk.now(), desk.summaries([id]), inspect?.workers()])
  if (found === undefined)
    return { id, now, view: undefined, workers, gate: undefined, members: new Map(), lastError: undefined, paused: {} }
  const view = withShownError(found, redacted)
  const isRetry = view.status === 'pending' && view.envelope.attempt > 1
  const [gate, paused, attempts] = await Promise.all([
    gateOf(inspect, view),
    pausesOf(desk, inspect, view),
    isRetry ? inspect?.attempts(id) : undefined,
  ])
  const named = gate?.waiting.slice(0, NAMED_MEMBERS) ?? []
  const views = named.length === 0 ? [] : await desk.summaries(named)
  const members = new Map(named.map((member, i) => [member, views[i]]))
  const lastError = withShownErrors(attempts?.slice(-1) ?? [], view, redacted)[0]?.error
  return { id, now, view, workers, gate, members, lastError, paused }
}

async function pausesOf(desk: Desk, inspect: Inspect | undefined, view: ItemSummary): Promise<ExplainFacts['paused']> {
  if (view.status !== 'pending') return {}
  const queue = view.queue ?? 'default'
  const { type } = view.envelope
  const names = await desk.ledger.paused?.({ queues: [queue], types: [type] })
  const aside = view.hold?.by === 'pause' ? pausedBy(view.hold).what : undefined
  const isQueue = names?.queues.includes(queue) === true || aside === 'queue'
  const isType = names?.types.includes(type) === true || aside === 'type'
  if (!isQueue && !isType) return {}
  const log = await readLog(inspect)
  const state = (what: 'queue' | 'type', name: string) => {
    const act = pauseOf(log, what, name)
    return { [what]: act === undefined ? {} : { act } }
  }
  return { ...(isQueue ? state('queue', queue) : {}), ...(isType ? state('type', type) : {}) }
}
