import { doublingDelay } from '../../core/retry/backoff.js'
import type { Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import { nextTry, writeEnvelope } from '../../ports/envelope.js'
import type { Envelope } from '../../ports/item.js'
import { GATE_POLL_MS } from '../../ports/limits.js'
import type { ClosedGroup, CommitResult } from '../../ports/settlement.js'
import { cancelDelivered, completeEnded } from './after-outcome.js'
import type { PlainContext } from './context.js'
import type { DeliveryDecision, DeliveryFacts } from './decide-delivery.js'
import { refreshGate } from './gates.js'
import { type Arrival, type HeldLease, leaseOf, type PlainDelivery } from './held-leases.js'
import { runOf, type StoredState, storedStateOf, writeState } from './item-state.js'
import { resumePlan } from './settle.js'

/** What a claim reports to the engine about a delivery that it did not hand out. */
export interface DeliveryReport {
  readonly unreadable?: { readonly queue: string; readonly body: string }
  readonly rescheduled?: { readonly envelope: Envelope; readonly byMs: Ms }
  readonly closed?: readonly ClosedGroup[]
}

const LONGEST_PAUSE_MS = 30_000
const LONGEST_GATE_POLL_MS = 60_000

/** Handles a delivery that is not to run now. */
export function putBack(
  context: PlainContext,
  delivery: PlainDelivery,
  facts: DeliveryFacts,
  decision: Exclude<DeliveryDecision, { kind: 'run' }>,
): Promise<DeliveryReport> {
  switch (decision.kind) {
    case 'complete':
      return endHere(context, delivery, facts, (held) => completeEnded(context, held, facts.isSettled))
    case 'resume':
      return endHere(context, delivery, facts, (held) => resumePlan(context, held, decision.plan))
    case 'cancel':
      return endHere(context, delivery, facts, (held) => cancelDelivered(context, held, decision.reason))
    case 'superseded':
      return makeWay(context, delivery, decision.by)
    case 'busy':
      return fail(delivery, context.options.putBackMs)
    case 'paused':
      return failPaused(context, delivery)
    case 'early':
      return pushAgain(context, delivery, decision.byMs)
    default:
      return unreachable(decision)
  }
}

/** No envelope: it can never run, so it is taken out of the queue and reported. */
export async function drop({ queue, pulled }: Arrival): Promise<DeliveryReport> {
  await queue.ack(pulled)
  return { unreadable: { queue: queue.name, body: pulled.body } }
}

/** Gives the message back to its queue. */
export async function fail({ queue, pulled }: Arrival, delayMs: Ms): Promise<DeliveryReport> {
  await queue.fail(pulled, delayMs)
  return {}
}

/** Longer each time, because a pause may last. */
export function failPaused({ options }: PlainContext, arrival: Arrival): Promise<DeliveryReport> {
  return fail(
    arrival,
    doublingDelay(arrival.pulled.attempt - 1, { baseMs: options.putBackMs, maxMs: LONGEST_PAUSE_MS }),
  )
}

/** A held item whose gate has not decided hides for a while longer; twice as long each time, up to a minute. */
export async function holdAgain(
  context: PlainContext,
  delivery: PlainDelivery,
  state: StoredState,
): Promise<DeliveryReport> {
  const { envelope } = delivery
  const { checks = 0, dueAt = Infinity, gate, pollMs = GATE_POLL_MS } = state.marks ?? {}
  const delayMs = Math.min(
    doublingDelay(checks, { baseMs: pollMs, maxMs: LONGEST_GATE_POLL_MS }),
    dueAt - context.clock.now(),
  )
  const next = storedStateOf(envelope, { status: 'pending', marks: { ...state.marks, checks: checks + 1 } })
  await context.store.set(context.keys.state(envelope.id), writeState(next), context.keptFor(delayMs))
  if (gate !== undefined) await refreshGate(context, gate, delayMs)
  await replace(context, delivery, delayMs)
  return {}
}

/** Too early, because a queue caps its delays or a clock is wrong: the same body again with what is left. */
async function pushAgain(context: PlainContext, delivery: PlainDelivery, byMs: Ms): Promise<DeliveryReport> {
  await replace(context, delivery, byMs)
  return { rescheduled: { envelope: delivery.envelope, byMs } }
}

/**
 * The same body once more, then the ack. Never a `fail`, which some queues count as a failure. It wakes no loop, or a queue
 * full of such bodies would spin.
 */
async function replace(context: PlainContext, { queue, pulled, envelope }: PlainDelivery, delayMs: Ms): Promise<void> {
  await context.push(queue, pulled.body, { priority: envelope.priority, delayMs, key: undefined, wake: false })
  await queue.ack(pulled)
}

/**
 * An old copy. The newer try was stored before it was pushed, and its process may have died in between: so it is pushed once
 * more, which the queue drops if it is there, before the old copy goes.
 */
async function makeWay(context: PlainContext, delivery: PlainDelivery, by: StoredState): Promise<DeliveryReport> {
  const { queue, pulled, envelope } = delivery
  if (by.status === 'pending' && runOf(by.envelope) === runOf(envelope)) {
    const next = nextTry(envelope, by.attempt, by.startAt)
    const delayMs = Math.max(0, by.startAt - context.clock.now())
    const { priority } = next
    await context.push(queue, writeEnvelope(next), { priority, delayMs, key: by.marks?.copy, wake: true })
  }
  await queue.ack(pulled)
  return {}
}

/** The item ends here, by what others have decided. A failure gives it back: its next holder continues. */
async function endHere(
  context: PlainContext,
  delivery: PlainDelivery,
  facts: DeliveryFacts,
  end: (held: HeldLease) => Promise<CommitResult>,
): Promise<DeliveryReport> {
  const { leases, clock, options } = context
  // Our own settlement of it is in flight, or another copy of it.
  if (leases.isHeld(delivery.envelope.id, clock.monotonic())) return fail(delivery, options.putBackMs)
  const held = leaseOf(context, delivery, facts.state)
  leases.add(held)
  try {
    const result = await end(held)
    return result.kind === 'applied' ? { closed: result.closed } : {}
  } catch (error) {
    context.report(error, 'commit')
    leases.drop(held)
    return fail(delivery, options.putBackMs)
  }
}
