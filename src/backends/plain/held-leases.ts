import { MillraceError } from '../../core/error.js'
import type { At, Ms } from '../../core/time/time.js'
import { withTimeout } from '../../core/time/with-timeout.js'
import type { Envelope, Lease } from '../../ports/item.js'
import type { LeaseStatus, Ledger } from '../../ports/ledger.js'
import type { PulledWork } from '../../ports/ports.js'
import type { PlainContext } from './context.js'
import { type ItemStanding, type Marks, type StoredState, storedStateOf, writeState } from './item-state.js'
import { type CallOutcome, callOutcomeOf, type Entry, entry, type PlainQueue } from './plain-ports.js'

/**
 * How far the steps of one settlement have come. A step that succeeded is not done again when the settlement is repeated; one
 * that failed is; one that is still in flight is joined. It lives as long as the process: after a crash every step is
 * repeated, and each step is made so that this does no harm.
 */
export class StepProgress {
  readonly #steps = new Map<string, Promise<unknown>>()

  has(step: string): boolean {
    return this.#steps.has(step)
  }

  once<T>(step: string, run: () => Promise<T>): Promise<T> {
    const known = this.#steps.get(step)
    // Each step has one name and one type of answer.
    if (known !== undefined) return known as Promise<T>
    const running = run()
    this.#steps.set(step, running)
    running.catch(() => this.#steps.delete(step))
    return running
  }

  forget(step: string): void {
    this.#steps.delete(step)
  }
}

/** A message that a queue has delivered. */
export interface Arrival {
  readonly queue: PlainQueue
  readonly pulled: PulledWork
  /** Monotonic time at which the queue answered: its lease counts from there. */
  readonly confirmedMs: Ms
}

/** An arrival that carries an item. */
export interface PlainDelivery extends Arrival {
  readonly envelope: Envelope
  readonly worker: string
  readonly leaseMs: Ms
}

/** One lease of one item in this process, from the claim to its end. */
export interface HeldLease {
  readonly lease: Lease
  readonly envelope: Envelope
  /** As it was delivered: unknown fields, and the spelling of known ones, survive. */
  readonly body: string
  readonly queue: PlainQueue
  /** Undefined for an item that was born leased: nothing of it is in the queue. */
  readonly pulled: PulledWork | undefined
  readonly worker: string
  /** The state that was stored when it was claimed. */
  readonly state: StoredState | undefined
  readonly crashes: number
  readonly progress: StepProgress
  /** Monotonic time at which the lease was last known to be ours, and how long it lasts from there. */
  confirmedMs: Ms
  leaseMs: Ms
  /** When its run began, if it did. */
  runAt: At | undefined
  /** Monotonic time of the last check of who runs the item. */
  checkedMs: Ms
  /** The writing of its start, which must be over before anything else is written about it. */
  begun: Promise<void> | undefined
  /** `run:<id>` carries our token. */
  isMarked: boolean
  /** `idle:<id>` says that its handler no longer runs. */
  isIdle: boolean
  /** The outcome that is stored: from now on any process may complete it, and none may undo it. */
  decided: 'complete' | 'deadLetter' | 'retry' | undefined
}

/** What a lease cannot begin without. */
type Given = Pick<HeldLease, 'lease' | 'envelope' | 'body' | 'queue' | 'worker' | 'confirmedMs' | 'leaseMs'>

export function heldLease(given: Given & Partial<HeldLease>): HeldLease {
  return {
    pulled: undefined,
    state: undefined,
    crashes: given.state?.marks?.crashes ?? 0,
    progress: new StepProgress(),
    runAt: undefined,
    checkedMs: 0,
    begun: undefined,
    isMarked: false,
    isIdle: false,
    decided: undefined,
    ...given,
  }
}

/** The state of a held item after a step of its run. */
export function stateAfter(held: HeldLease, standing: ItemStanding): StoredState {
  const marks = { ...lastingMarks(held), ...standing.marks }
  return storedStateOf(held.envelope, { runAt: held.runAt, ...standing, marks })
}

/** The marks that stay with an item from one run to the next. */
export function lastingMarks({ queue, lease, crashes, state }: HeldLease): Marks {
  const { gate, dueAt } = state?.marks ?? {}
  return {
    queue: queue.name,
    fence: lease.fence,
    crashes: crashes === 0 ? undefined : crashes,
    gate,
    dueAt: gate === undefined ? undefined : dueAt,
  }
}

/** A lease of this delivery. The fence rises with every lease: from the stored one, and by time where none is stored. */
export function leaseOf(context: PlainContext, delivery: PlainDelivery, state: StoredState | undefined): HeldLease {
  const { queue, pulled, confirmedMs, envelope, leaseMs } = delivery
  const { clock } = context
  const now = clock.now()
  const lease = {
    id: envelope.id,
    queue: queue.name,
    token: context.newLeaseToken(),
    fence: Math.max(Math.floor(now), (state?.marks?.fence ?? 0) + 1),
    until: now + leaseMs - (clock.monotonic() - confirmedMs),
  }
  return heldLease({ ...delivery, lease, body: pulled.body, state })
}

const MAX_FINISHED = 10_000

/** The leases of this process, by token and by item. */
export class HeldLeases {
  readonly #byToken = new Map<string, HeldLease>()
  readonly #byId = new Map<string, HeldLease>()
  /** Tokens that settled: they distinguish a commit that is repeated after a lost reply from a stale one. */
  readonly #finished = new Set<string>()

  /** Ends an earlier lease of the same item, which has run out. */
  add(one: HeldLease): void {
    const last = this.#byId.get(one.lease.id)
    if (last !== undefined) this.drop(last)
    this.#byToken.set(one.lease.token, one)
    this.#byId.set(one.lease.id, one)
  }

  find(lease: Lease): HeldLease | undefined {
    const found = this.#byToken.get(lease.token)
    return found?.lease.id === lease.id ? found : undefined
  }

  /** Whether this process holds the item, by a lease that can still be ours. */
  isHeld(id: string, nowMs: Ms): boolean {
    const found = this.#byId.get(id)
    return found !== undefined && nowMs - found.confirmedMs < found.leaseMs
  }

  hasFinished(lease: Lease): boolean {
    return this.#finished.has(`${lease.id} ${lease.token}`)
  }

  /** The lease ended by a settlement. */
  finish(one: HeldLease): void {
    this.drop(one)
    this.#finished.add(`${one.lease.id} ${one.lease.token}`)
    const [oldest] = this.#finished
    if (this.#finished.size > MAX_FINISHED && oldest !== undefined) this.#finished.delete(oldest)
  }

  /** The lease was lost. */
  drop(one: HeldLease): void {
    this.#byToken.delete(one.lease.token)
    if (this.#byId.get(one.lease.id) === one) this.#byId.delete(one.lease.id)
  }
}

/**
 * Writes that these runs have begun, while they run: the token that keeps other deliveries away, then the state. Whatever
 * is written about the item later waits for it. A failure is reported and does not fail the run.
 */
export async function markStarted(context: PlainContext, leases: readonly Lease[]): Promise<void> {
  const started = leases.flatMap((lease) => context.leases.find(lease) ?? [])
  await Promise.all(started.map((held) => (held.begun ??= writeStart(context, held))))
}

async function writeStart(context: PlainContext, held: HeldLease): Promise<void> {
  const { keys, store, clock } = context
  const { lease, worker, confirmedMs, leaseMs } = held
  held.runAt = clock.now()
  const state = stateAfter(held, { status: 'running', marks: { holder: worker } })
  try {
    await store.write([
      // No longer than the lease itself: what outlived it would keep the next holder waiting.
      entry(keys.run(lease.id), lease.token, Math.max(1, confirmedMs + leaseMs - clock.monotonic())),
      entry(keys.state(lease.id), writeState(state), context.keptFor()),
    ])
    held.isMarked = true
  } catch (error) {
    context.report(error, 'commit')
  }
}

type Extension = Parameters<Ledger['extend']>[0][number]

/**
 * Heartbeats: the queue's lease, the token that keeps other deliveries away, and the sign of life. What fails for one lease
 * fails for no other, and a lease stays ours until its whole length has passed without an answer of the queue.
 */
export async function extend(
  context: PlainContext,
  asked: readonly Extension[],
  leaseMs: Ms,
): Promise<readonly LeaseStatus[]> {
  const known = asked.map(({ lease }) => context.leases.find(lease))
  const running = asked.filter((one) => one.running).map(({ lease }) => lease)
  // Not waited for: the queue must be asked immediately, whatever the store is doing.
  void markStarted(context, running)
  const beats = heartbeats(known, leaseMs)
  return Promise.all(
    asked.map(async (one, i) => {
      const held = known[i]
      return held === undefined ? 'lost' : extendOne(context, held, leaseMs, one, beats.get(held))
    }),
  )
}

async function extendOne(
  context: PlainContext,
  held: HeldLease,
  leaseMs: Ms,
  asked: Extension,
  beat: Promise<CallOutcome<boolean | void>> = Promise.resolve({ ok: true, value: undefined }),
): Promise<LeaseStatus> {
  const { keys, store, clock } = context
  const { id, token } = held.lease
  const read = async () => {
    await held.begun
    return store.getAll([keys.cancel(id), held.isMarked ? keys.run(id) : undefined])
  }
  const [answer, marks] = await Promise.all([
    beforeLapse(context, held, beat),
    beforeLapse(context, held, callOutcomeOf(read())),
  ])
  if (!marks.ok) context.report(marks.error, 'queue')
  const [cancelled, holder] = marks.ok ? marks.value : []
  if (!answer.ok) {
    context.report(answer.error, 'queue')
    if (clock.monotonic() - held.confirmedMs >= held.leaseMs) return lose(context, held)
  } else {
    if (answer.value === false || (holder !== undefined && holder !== token)) return lose(context, held)
    held.confirmedMs = clock.monotonic()
    held.leaseMs = leaseMs
    const shown = await beforeLapse(
      context,
      held,
      callOutcomeOf(store.write(signsOfLife(context, held, leaseMs, asked))),
    )
    if (!shown.ok) context.report(shown.error, 'queue')
    else if (held.begun !== undefined) held.isIdle = !asked.running
  }
  return cancelled === undefined ? 'held' : 'cancelled'
}

function signsOfLife(context: PlainContext, held: HeldLease, leaseMs: Ms, asked: Extension): readonly Entry[] {
  const { keys, clock } = context
  const { id, token, fence } = held.lease
  const { running, progress } = asked
  // Beside the state, not in it: a settlement may be writing that at the same time.
  const hasChanged = held.begun !== undefined && held.isIdle === running
  return [
    ...(held.isMarked ? [entry(keys.run(id), token, leaseMs)] : []),
    entry(keys.heartbeat(id), String(clock.now()), leaseMs),
    ...(hasChanged ? [entry(keys.idle(id), running ? '' : String(fence), context.keptFor())] : []),
    ...(progress === undefined ? [] : [entry(keys.progress(id), progress, context.keptFor())]),
  ]
}

function lose(context: PlainContext, held: HeldLease): LeaseStatus {
  context.leases.drop(held)
  return 'lost'
}

/** One call for each queue that can, one for each lease otherwise. What is in no queue needs none. */
function heartbeats(all: readonly (HeldLease | undefined)[], leaseMs: Ms) {
  const queued = all.flatMap((held) => (held?.pulled === undefined ? [] : [{ held, pulled: held.pulled }]))
  const beats = new Map<HeldLease, Promise<CallOutcome<boolean | void>>>()
  for (const queue of new Set(queued.map(({ held }) => held.queue))) {
    const own = queued.filter(({ held }) => held.queue === queue)
    const pulled = own.map((one) => one.pulled)
    const answers = queue.heartbeats(pulled, leaseMs)
    for (const [i, { held }] of own.entries()) beats.set(held, itsAnswer(answers, i))
  }
  return beats
}

const itsAnswer = async <T>(answers: Promise<readonly T[]>, i: number): Promise<T> => (await answers)[i]!

/** A call that hangs is worth as much as one that failed: its answer counts only while the lease can still be ours. */
function beforeLapse<T>(
  { clock }: PlainContext,
  held: HeldLease,
  call: Promise<CallOutcome<T>>,
): Promise<CallOutcome<T>> {
  const left = Math.max(0, held.confirmedMs + held.leaseMs - clock.monotonic())
  return withTimeout(clock, left, call, () => ({ ok: false, error: unanswered(held) }) as const)
}

function unanswered({ lease, leaseMs }: HeldLease): MillraceError {
  return new MillraceError(
    'HEARTBEAT_UNANSWERED',
    `A heartbeat of item ${lease.id} (queue "${lease.queue}") was not answered within the ${leaseMs} ms of its lease. ` +
      'Check the connections of queue and store, or raise `visibility`.',
    { facts: { id: lease.id, queue: lease.queue, leaseMs } },
  )
}
