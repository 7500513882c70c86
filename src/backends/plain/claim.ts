import type { Ms } from '../../core/time/time.js'
import { withTimeout } from '../../core/time/with-timeout.js'
import { readEnvelope } from '../../ports/envelope.js'
import type { ClaimedItem, Envelope } from '../../ports/item.js'
import type { ClaimReply, ClaimRequest } from '../../ports/ledger.js'
import type { PlainContext } from './context.js'
import { readPaused } from './control.js'
import { type DeliveryDecision, decideDelivery, readFacts } from './decide-delivery.js'
import { checkGate, type GateVerdict } from './gates.js'
import { type Arrival, leaseOf, type PlainDelivery } from './held-leases.js'
import { type StoredState, storedStateOf, writeState } from './item-state.js'
import { callOutcomeOf, type PlainQueue } from './plain-ports.js'
import { type DeliveryReport, drop, fail, failPaused, holdAgain, putBack } from './put-back.js'

/** How long a claim waits for slow queues after a fast one has answered, and for what it puts back. */
const SLOW_MS = 50

/** What became of a delivery: handed out, or put back, which may take longer than the claim waits. */
type Routed = { readonly item: ClaimedItem } | { readonly report: Promise<DeliveryReport> }

/** Pulls from the queues and sorts what came. Most of it is handed out; the rest is put back, or ended. */
export class Claims {
  readonly #context: PlainContext
  readonly #poller: QueuePoller
  #pausedQueues: readonly string[] = []
  /** Reports of deliveries that were put back since the last reply, or before it without its claim having waited. */
  #reports: DeliveryReport[] = []
  /** The types of the runs that were found cut off since the last reply. */
  #crashed: string[] = []

  constructor(context: PlainContext) {
    this.#context = context
    this.#poller = new QueuePoller(context)
  }

  async claim(ask: ClaimRequest): Promise<ClaimReply> {
    const { clock, notifier, options } = this.#context
    // What falls due while the queues are being asked may have been missed by them: it still counts as due next.
    const askedAt = clock.now()
    const names = [...new Set(ask.queues.map(({ queue }) => queue))]
    const refreshed = this.#refreshPauses(names)
    // A queue known to be paused is checked before it is popped; the others meanwhile.
    if (names.some((queue) => this.#pausedQueues.includes(queue))) await refreshed
    const from = ask.queues.filter(({ queue }) => !this.#pausedQueues.includes(queue))
    const [pulled] = await Promise.all([this.#poller.pull(from, ask.leaseMs), refreshed])
    const failedQueues = [...pulled.failed]
    const pausedTypes = new Map<string, Promise<boolean>>()
    const reports: Promise<void>[] = []
    const routed = await Promise.all(
      pulled.arrivals.map(async (arrival) => {
        try {
          const route = await this.#route(arrival, ask, pausedTypes)
          if ('item' in route) return [route.item]
          reports.push(this.#keep(route.report))
        } catch (error) {
          failedQueues.push({ queue: arrival.queue.name, error })
          reports.push(this.#keep(fail(arrival, options.putBackMs)))
        }
        return []
      }),
    )
    const items = routed.flat()
    // Not for long: a queue that does not answer must not hold up the others.
    if (reports.length > 0) await withTimeout(clock, SLOW_MS, Promise.all(reports), () => undefined)
    const now = clock.now()
    const nextDueAt = notifier.nextDueAt(names, askedAt)
    const kept = this.#reports.splice(0)
    return {
      ...withoutEmpty({
        crashed: this.#crashed.splice(0),
        unreadable: kept.flatMap(({ unreadable }) => unreadable ?? []),
        rescheduled: kept.flatMap(({ rescheduled }) => rescheduled ?? []),
        closedGroups: kept.flatMap(({ closed }) => closed ?? []),
        failedQueues,
      }),
      ...(nextDueAt === undefined ? {} : { nextDueAt }),
      items,
      more: pulled.isFull && items.length > 0,
      now,
    }
  }

  /**
   * A plain queue cannot hold its bodies, so each round reads a key: paused queues are not popped, and what is met of a paused
   * type is put back for longer and longer. A store that cannot be asked pauses nothing.
   */
  async #refreshPauses(queues: readonly string[]): Promise<void> {
    const paused = await callOutcomeOf(readPaused(this.#context, { queues, types: [] }))
    if (!paused.ok) this.#context.report(paused.error, 'queue')
    this.#pausedQueues = paused.ok ? paused.value.queues : []
  }

  async #route(arrival: Arrival, ask: ClaimRequest, pausedTypes: Map<string, Promise<boolean>>): Promise<Routed> {
    const context = this.#context
    const { pulled, queue } = arrival
    const envelope = readEnvelope(pulled.body)
    if (envelope === undefined) return { report: drop(arrival) }
    if (this.#pausedQueues.includes(queue.name)) return { report: failPaused(context, arrival) }
    const { type } = envelope
    const isTypePaused =
      pausedTypes.get(type) ??
      readPaused(context, { queues: [], types: [type] }).then(({ types }) => types.includes(type))
    pausedTypes.set(type, isTypePaused)
    const facts = await readFacts(context, envelope, isTypePaused)
    const decision = decideDelivery(facts)
    const delivery: PlainDelivery = { ...arrival, envelope, worker: ask.worker, leaseMs: ask.leaseMs }
    if (decision.kind !== 'run') return { report: putBack(context, delivery, facts, decision) }
    return this.#handOut(delivery, facts.state, decision)
  }

  async #handOut(
    delivery: PlainDelivery,
    found: StoredState | undefined,
    decision: Extract<DeliveryDecision, { kind: 'run' }>,
  ): Promise<Routed> {
    const context = this.#context
    const { clock, leases, options } = context
    const { envelope, pulled } = delivery
    let state = found
    if (decision.hasCrashed && found !== undefined) {
      state = await countCrash(context, envelope, found)
      this.#crashed.push(envelope.type)
    }
    let gate: GateVerdict
    if (decision.gate !== undefined && state !== undefined) {
      const checked = await checkGate(context, decision.gate, context.newLeaseToken(), true)
      gate = checked?.verdict
      const isDue = (state.marks?.dueAt ?? Infinity) <= clock.now()
      if (checked !== undefined && gate === undefined && !isDue) return { report: holdAgain(context, delivery, state) }
    }
    // Nothing waits between this check and the entry: of two copies in one claim only the first gets through.
    if (leases.isHeld(envelope.id, clock.monotonic())) return { report: fail(delivery, options.putBackMs) }
    const held = leaseOf(context, delivery, state)
    leases.add(held)
    const { lease, crashes } = held
    // Put-backs and lapses look the same to a plain queue: only lapses of runs that had started are known.
    const counts = { lapses: crashes, crashes, deliveries: pulled.attempt }
    return { item: { lease, envelope, ...counts, ...(gate === undefined ? {} : { gate }) } }
  }

  /** What could not be put back is reported: its lease runs out, and the queue delivers it again. */
  async #keep(report: Promise<DeliveryReport>): Promise<void> {
    try {
      this.#reports.push(await report)
    } catch (error) {
      this.#context.report(error, 'queue')
    }
  }
}

/** The lists that are not empty. */
function withoutEmpty<T extends Readonly<Record<string, readonly unknown[]>>>(lists: T): Partial<T> {
  // The entries are those of T; only empty ones are left out.
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)) as Partial<T>
}

/**
 * A run of this try had started, and neither ended nor lives: that is a crash. The state goes back to `pending` with the new
 * count, so that a put-back before the next start is not taken for another crash.
 */
async function countCrash(context: PlainContext, envelope: Envelope, before: StoredState): Promise<StoredState> {
  const { keys, store, counters } = context
  const crashes = (before.marks?.crashes ?? 0) + 1
  const state = storedStateOf(envelope, { status: 'pending', marks: { ...before.marks, holder: undefined, crashes } })
  // The counter is for people and tools; the count that decides travels with the state.
  await counters
    .increment(keys.crash(envelope.id), 1, context.keptFor())
    .catch((error: unknown) => context.report(error, 'queue'))
  await store.set(keys.state(envelope.id), writeState(state), context.keptFor())
  return state
}

/** The polling of one queue: at most one pop in flight, and what came too late for the claim that asked. */
interface Poll {
  readonly queue: PlainQueue
  pop: Promise<void> | undefined
  isAwaited: boolean
  arrivals: Arrival[]
  failed: readonly unknown[]
  isFull: boolean
}

/**
 * Pops all queues together. A claim waits for them, but once one has answered the others get only a moment: what a slow
 * queue brings later is handed out by the next claim, which its arrival asks for. So neither an error nor slowness of one
 * queue keeps work of the others waiting.
 */
class QueuePoller {
  readonly #context: PlainContext
  readonly #polls: ReadonlyMap<string, Poll>

  constructor(context: PlainContext) {
    this.#context = context
    const idle = { pop: undefined, isAwaited: false, arrivals: [], failed: [], isFull: false }
    this.#polls = new Map([...context.queues].map(([name, queue]) => [name, { ...idle, queue }]))
  }

  async pull(from: ClaimRequest['queues'], leaseMs: Ms) {
    const asked = from.flatMap(({ queue, max }) => {
      const poll = this.#polls.get(queue)
      return poll === undefined || !(max > 0) ? [] : [{ poll, max }]
    })
    for (const { poll, max } of asked) this.#ask(poll, max, leaseMs)
    await this.#answered(asked.map(({ poll }) => poll))
    const taken = asked.map(({ poll, max }) => take(poll, max))
    const unknown = from.filter(({ queue }) => !this.#polls.has(queue))
    return {
      arrivals: taken.flatMap(({ arrivals }) => arrivals),
      failed: [
        ...taken.flatMap(({ failed }) => failed),
        ...unknown.map(({ queue }) => ({ queue, error: new RangeError(`there is no queue "${queue}" here`) })),
      ],
      /** A queue gave as much as it was asked for, or has more at hand. */
      isFull: taken.some(({ isFull }) => isFull),
    }
  }

  #ask(poll: Poll, max: number, leaseMs: Ms): void {
    poll.isAwaited = true
    // What came late is handed out first; and a queue that has not answered is not asked again.
    if (poll.pop !== undefined || poll.arrivals.length > 0) return
    const { queue } = poll
    poll.pop = callOutcomeOf(queue.pop(max, leaseMs)).then((outcome) => {
      poll.pop = undefined
      if (!outcome.ok) {
        poll.failed = [outcome.error]
        return
      }
      const confirmedMs = this.#context.clock.monotonic()
      poll.arrivals = outcome.value.map((pulled) => ({ queue, pulled, confirmedMs }))
      poll.isFull = poll.arrivals.length >= queue.full(max)
      if (!poll.isAwaited && poll.arrivals.length > 0) this.#late(poll, leaseMs)
    })
  }

  /** Resolves when all have answered, or a moment after the first has. */
  async #answered(polls: readonly Poll[]): Promise<void> {
    const pops = polls.flatMap(({ pop }) => pop ?? [])
    const all = Promise.all(pops)
    if (pops.length === polls.length && pops.length > 1) await Promise.race(pops)
    if (polls.length > 1) await withTimeout(this.#context.clock, SLOW_MS, all, () => undefined)
    else await all
    for (const poll of polls) poll.isAwaited = false
  }

  /** No further claim may come: then the queue gets them back well before their leases run out. */
  #late(poll: Poll, leaseMs: Ms): void {
    const { clock, notifier } = this.#context
    const late = new Set(poll.arrivals)
    clock.after(leaseMs / 3, () => {
      const left = poll.arrivals.filter((arrival) => late.has(arrival))
      poll.arrivals = poll.arrivals.filter((arrival) => !late.has(arrival))
      for (const { queue, pulled } of left)
        queue.fail(pulled).catch((error: unknown) => this.#context.report(error, 'queue'))
    })
    notifier.wake(poll.queue.name)
  }
}

function take(poll: Poll, max: number) {
  const arrivals = poll.arrivals.slice(0, max)
  poll.arrivals = poll.arrivals.slice(max)
  const failed = poll.failed.map((error) => ({ queue: poll.queue.name, error }))
  poll.failed = []
  return { arrivals, failed, isFull: poll.arrivals.length > 0 || (arrivals.length > 0 && poll.isFull) }
}
