import type { Ms } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import { nextTry, writeEnvelope } from '../envelope.js'
import type { Envelope } from '../item.js'
import type { ClosedGroup, CommitResult } from '../settlement.js'
import { cancelPopped, completeEnded } from './complete.js'
import { type Delivery, leaseOf } from './delivery.js'
import { type Desk, deliver, keptFor } from './desk.js'
import { refreshGate } from './gates.js'
import type { Held } from './held.js'
import type { Arrival } from './intake.js'
import type { Facts, Ruling } from './judge.js'
import { effectsOf } from './plan.js'
import { resumePlan } from './settle.js'
import { runOf, runOfState, type StoredState, stateOf, writeState } from './state.js'

/** What dealing with a delivery has to tell the engine. */
export interface Dealt {
  readonly unreadable?: { readonly queue: string; readonly body: string }
  readonly rescheduled?: { readonly envelope: Envelope; readonly byMs: Ms }
  readonly closed?: readonly ClosedGroup[]
}

const LONGEST_PAUSE_MS = 30_000
const LONGEST_GATE_POLL_MS = 60_000

/** Deals with a delivery that is not to run now. */
export function deal(
  desk: Desk,
  delivery: Delivery,
  facts: Facts,
  ruling: Exclude<Ruling, { kind: 'run' }>,
): Promise<Dealt> {
  switch (ruling.kind) {
    case 'complete':
      return endHere(desk, delivery, facts, (held) => completeEnded(desk, held, facts.isSettled))
    case 'resume':
      return endHere(desk, delivery, facts, (held) => resumePlan(desk, held, effectsOf(ruling.plan, desk.clock.now())))
    case 'cancel':
      return endHere(desk, delivery, facts, (held) => cancelPopped(desk, held, ruling.reason))
    case 'superseded':
      return reported(desk, () => makeWay(desk, delivery, ruling.by))
    case 'busy':
      return giveBack(desk, delivery, desk.options.putBackMs)
    case 'paused':
      return giveBackPaused(desk, delivery)
    case 'early':
      return reported(desk, () => pushAgain(desk, delivery, ruling.byMs))
    default:
      return unreachable(ruling)
  }
}

/** No envelope: it can never run, so it is taken out of the queue and reported. */
export function drop(desk: Desk, { queue, pulled }: Arrival): Promise<Dealt> {
  return reported(desk, async () => {
    await queue.ack(pulled)
    return { unreadable: { queue: queue.name, body: pulled.body } }
  })
}

export function giveBack(desk: Desk, { queue, pulled }: Arrival, delayMs: Ms): Promise<Dealt> {
  return reported(desk, async () => {
    await queue.fail(pulled, delayMs)
    return {}
  })
}

/** Longer each time, because nobody knows how long a pause will last. */
export function giveBackPaused(desk: Desk, arrival: Arrival): Promise<Dealt> {
  const { putBackMs } = desk.options
  return giveBack(desk, arrival, growing(putBackMs, arrival.pulled.attempt - 1, LONGEST_PAUSE_MS))
}

/** A held item whose gate has not decided hides for a while longer; twice as long each time, up to a minute. */
export function holdOn(desk: Desk, delivery: Delivery, state: StoredState): Promise<Dealt> {
  return reported(desk, async () => {
    const { queue, pulled, envelope } = delivery
    const { checks = 0, dueAt = Infinity, gate, pollMs = desk.options.gatePollMs } = state.marks ?? {}
    const delayMs = Math.min(growing(pollMs, checks, LONGEST_GATE_POLL_MS), dueAt - desk.clock.now())
    const marks = { ...state.marks, checks: checks + 1 }
    const next = writeState(stateOf(envelope, { status: 'pending', marks }))
    await desk.store.set(desk.keys.state(envelope.id), next, keptFor(desk, delayMs))
    if (gate !== undefined) await refreshGate(desk, gate, delayMs)
    await deliver(desk, queue, pulled.body, envelope, { delayMs, key: undefined, wake: false })
    await queue.ack(pulled)
    return {}
  })
}

/**
 * Too early, because a queue caps its delays or a clock is wrong: the same body again with what is left, then the ack. Never
 * a put-back, which some queues count as a failure. It wakes nobody, or a queue full of such bodies would spin.
 */
async function pushAgain(desk: Desk, delivery: Delivery, byMs: Ms): Promise<Dealt> {
  const { queue, pulled, envelope } = delivery
  await deliver(desk, queue, pulled.body, envelope, { delayMs: byMs, key: undefined, wake: false })
  await queue.ack(pulled)
  return { rescheduled: { envelope, byMs } }
}

/**
 * An old copy. The newer try was written down before it was pushed, and its process may have died in between: so it is
 * pushed once more, which the queue drops if it is there, before the old copy goes.
 */
async function makeWay(desk: Desk, delivery: Delivery, by: StoredState): Promise<Dealt> {
  const { queue, pulled, envelope } = delivery
  if (by.status === 'pending' && runOfState(by) === runOf(envelope)) {
    const next = nextTry(envelope, by.attempt, by.startAt)
    const delayMs = Math.max(0, by.startAt - desk.clock.now())
    await deliver(desk, queue, writeEnvelope(next), next, {
      delayMs,
      key: by.marks?.copy,
      wake: true,
    })
  }
  await queue.ack(pulled)
  return {}
}

/** The item ends here, by what others have decided. A failure gives it back: whoever gets it next goes on. */
async function endHere(
  desk: Desk,
  delivery: Delivery,
  facts: Facts,
  end: (held: Held) => Promise<CommitResult>,
): Promise<Dealt> {
  // Our own settlement of it is under way, or another copy of it.
  if (desk.leases.holderOf(delivery.envelope.id, desk.clock.monotonic()) !== undefined)
    return giveBack(desk, delivery, desk.options.putBackMs)
  const held = leaseOf(desk, delivery, facts.state)
  desk.leases.add(held)
  try {
    const result = await end(held)
    return result.kind === 'applied' && result.closed.length > 0 ? { closed: result.closed } : {}
  } catch (error) {
    desk.report(error, 'commit')
    desk.leases.drop(held)
    return giveBack(desk, delivery, desk.options.putBackMs)
  }
}

/** What fails is reported, and its lease runs out: the queue then delivers it again. */
async function reported(desk: Desk, act: () => Promise<Dealt>): Promise<Dealt> {
  try {
    return await act()
  } catch (error) {
    desk.report(error, 'queue')
    return {}
  }
}

const growing = (first: Ms, times: number, most: Ms): Ms =>
  Math.min(most, first * 2 ** Math.min(30, Math.max(0, times)))
