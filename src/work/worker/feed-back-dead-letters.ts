import { doublingDelay } from '../../core/retry/backoff.js'
import { readEnvelope, redrivenEnvelope } from '../../ports/envelope.js'
import type { ItemView } from '../../ports/inspect.js'
import type { ClaimedItem, Envelope } from '../../ports/item.js'
import type { PulledWork, Queue } from '../../ports/ports.js'
import type { Settlement } from '../../ports/settlement.js'
import type { Feed } from '../../source/loop/feed.js'
import { act } from '../control/item-actions.js'
import type { EngineContext } from '../engine-context.js'
import { enqueueSettlement } from '../enqueue/enqueue-settlement.js'

const HOUR_MS = 3_600_000
const DELAYS = { baseMs: 1_000, maxMs: HOUR_MS }

/** Redrives items of the dead-letter queue (`dlq`) whenever a claim finds nothing else to do. */
export function redriveWhenIdle<R>(context: EngineContext, feed: Feed<ClaimedItem, R>): Feed<ClaimedItem, R> {
  const { dlq } = context.o.given
  if (dlq === undefined || context.o.redriveCount === 0) return feed
  return {
    ...feed,
    pull: async (max, signal) => {
      const pulled = await feed.pull(max, signal)
      if (pulled.items.length === 0 && !pulled.more) await redriveSome(context, dlq)
      return pulled
    },
  }
}

async function redriveSome(context: EngineContext, dlq: Queue): Promise<void> {
  const { redriveCount, visibility } = context.o
  try {
    const pulled = await dlq.pop(redriveCount, visibility)
    await Promise.all(pulled.map((one) => redrive(context, dlq, one)))
  } catch (error) {
    context.failed(error, 'queue')
  }
}

/** Each time after a longer wait, and at most `maxRedrives` times: an item that cannot succeed does not spin. */
async function redrive(context: EngineContext, dlq: Queue, pulled: PulledWork): Promise<void> {
  try {
    const dead = readEnvelope(pulled.body)
    if (dead === undefined) {
      await dlq.ack(pulled)
      return
    }
    const redrives = dead.redrives ?? 0
    const [view] = await context.ledger.read([dead.id])
    // Only an item that ran out of attempts may do better later. One that was aborted, expired or cancelled is left to a person.
    const isHopeless = view?.status === 'dead' && view.ending !== undefined && view.ending !== 'exhausted'
    if (redrives >= context.o.maxRedrives || isHopeless) {
      await dlq.fail(pulled, HOUR_MS)
      return
    }
    const now = context.now()
    const item = redrivenEnvelope(dead, now, now + doublingDelay(redrives, DELAYS))
    const result = await context.commits.add(redriveSettlement(context, item, view))
    if (result.kind !== 'applied' && result.kind !== 'repeated') {
      throw result.kind === 'failed' ? result.error : new Error(`redrive of ${item.id} was ${result.kind}`)
    }
    await dlq.ack(pulled)
    if (result.kind === 'applied') context.recorder.queued(item, context.now())
  } catch (error) {
    context.failed(error, 'queue')
  }
}

/** In place where the ledger keeps the payloads of dead items; otherwise the item is enqueued again. */
function redriveSettlement(context: EngineContext, item: Envelope, view: ItemView | undefined): Settlement {
  const { registry, ledger, o } = context
  const now = context.now()
  const delayMs = Math.max(0, item.startAt - now)
  const inPlace =
    view === undefined || ledger.inspect === undefined
      ? undefined
      : act(view, 'redrive', { who: 'dlq', why: 'fed back', keep: o.keep, delayMs })
  return inPlace ?? enqueueSettlement(item, registry.queueOf(item.type), now)
}
