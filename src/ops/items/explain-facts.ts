import type { Redacted } from '../../core/text/redact.js'
import type { Inspect, ItemSummary } from '../../ports/inspect.js'
import type { OpsContext } from '../context.js'
import { pauseOf, readLog } from '../fleet/pauses.js'
import { type ExplainFacts, NAMED_MEMBERS, pausedBy } from './explain.js'
import { gateOf } from './item.js'
import { withShownError, withShownErrors } from './redacted.js'

/** Reads what an explanation is derived from: the item first, then everything that depends on it in parallel. */
export async function readExplainFacts(context: OpsContext, redacted: Redacted, id: string): Promise<ExplainFacts> {
  const { ledger } = context
  const { inspect } = ledger
  const [now, [found], workers] = await Promise.all([context.now(), context.summaries([id]), inspect?.workers()])
  if (found === undefined)
    return { id, now, view: undefined, workers, gate: undefined, members: new Map(), lastError: undefined, paused: {} }
  const view = withShownError(found, redacted)
  const isRetry = view.status === 'pending' && view.envelope.attempt > 1
  const [gate, paused, attempts] = await Promise.all([
    gateOf(inspect, view),
    pausesOf(context, inspect, view),
    isRetry ? inspect?.attempts(id) : undefined,
  ])
  const named = gate?.waiting.slice(0, NAMED_MEMBERS) ?? []
  const views = named.length === 0 ? [] : await context.summaries(named)
  const members = new Map(named.map((member, i) => [member, views[i]]))
  const lastError = withShownErrors(attempts?.slice(-1) ?? [], view, redacted)[0]?.error
  return { id, now, view, workers, gate, members, lastError, paused }
}

async function pausesOf(
  context: OpsContext,
  inspect: Inspect | undefined,
  view: ItemSummary,
): Promise<ExplainFacts['paused']> {
  if (view.status !== 'pending') return {}
  const queue = view.queue ?? 'default'
  const { type } = view.envelope
  const names = await context.ledger.paused?.({ queues: [queue], types: [type] })
  const heldBy = view.hold?.by === 'pause' ? pausedBy(view.hold).what : undefined
  const isQueue = names?.queues.includes(queue) === true || heldBy === 'queue'
  const isType = names?.types.includes(type) === true || heldBy === 'type'
  if (!isQueue && !isType) return {}
  const log = await readLog(inspect)
  const state = (what: 'queue' | 'type', name: string) => {
    const entry = pauseOf(log, what, name)
    return { [what]: entry === undefined ? {} : { entry } }
  }
  return { ...(isQueue ? state('queue', queue) : {}), ...(isType ? state('type', type) : {}) }
}
