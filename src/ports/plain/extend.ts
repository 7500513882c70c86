import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time.js'
import type { Lease } from '../item.js'
import type { LeaseWord } from '../ledger.js'
import { begin } from './begin.js'
import { type Outcome, outcomeOf } from './call.js'
import { type Desk, keptFor } from './desk.js'
import type { Held } from './held.js'
import type { PlainQueue } from './plain-queue.js'
import { type Entry, entry } from './plain-store.js'

interface Asked {
  readonly lease: Lease
  readonly running: boolean
  readonly progress?: string
}

/**
 * Heartbeats: the queue's lease, the token that keeps other deliveries away, and the sign of life. What fails for one lease
 * fails for no other, and a lease stays ours until its whole length has passed without a word from the queue.
 */
export async function extend(desk: Desk, asked: readonly Asked[], leaseMs: Ms): Promise<readonly LeaseWord[]> {
  const known = asked.map(({ lease }) => desk.leases.find(lease))
  // Not waited for: the queue must hear at once, whatever the store is doing.
  void begin(
    desk,
    asked.filter(({ running }) => running).map(({ lease }) => lease),
  )
  const all = known.filter((held) => held !== undefined)
  const beats = heartbeats(all, leaseMs)
  return Promise.all(
    asked.map(async (one, i) => {
      const held = known[i]
      return held === undefined ? 'lost' : extendOne(desk, held, leaseMs, beats.get(held)!, one)
    }),
  )
}

async function extendOne(
  desk: Desk,
  held: Held,
  leaseMs: Ms,
  beat: Promise<Outcome<boolean | void>>,
  told: Asked,
): Promise<LeaseWord> {
  const { store, clock } = desk
  const [answer, seen] = await Promise.all([
    beforeLapse(desk, held, beat),
    beforeLapse(desk, held, outcomeOf(signs(desk, held))),
  ])
  if (!seen.ok) desk.report(seen.error, 'queue')
  const [cancelled, holder] = seen.ok ? seen.value : []
  if (!answer.ok) {
    desk.report(answer.error, 'queue')
    if (clock.monotonic() - held.heardMs >= held.leaseMs) return lose(desk, held)
  } else {
    if (answer.value === false || (holder !== undefined && holder !== held.lease.token)) return lose(desk, held)
    held.heardMs = clock.monotonic()
    held.leaseMs = leaseMs
    const shown = await beforeLapse(desk, held, outcomeOf(store.write(signsOfLife(desk, held, leaseMs, told))))
    if (!shown.ok) desk.report(shown.error, 'queue')
    else if (held.begun !== undefined) held.isIdle = !told.running
  }
  return cancelled === undefined ? 'held' : 'cancelled'
}

/** Whether it was cancelled, and who runs it according to the store. */
async function signs({ keys, store }: Desk, held: Held): Promise<(string | undefined)[]> {
  const { id } = held.lease
  await held.begun
  return store.getAll([keys.cancel(id), ...(held.isMarked ? [keys.run(id)] : [])])
}

function signsOfLife(desk: Desk, held: Held, leaseMs: Ms, { running, progress }: Asked): readonly Entry[] {
  const { keys, clock } = desk
  const { id, token, fence } = held.lease
  // Beside the state, not in it: a settlement may be writing that just now.
  const hasChanged = held.begun !== undefined && held.isIdle === running
  return [
    ...(held.isMarked ? [entry(keys.run(id), token, leaseMs)] : []),
    entry(keys.heartbeat(id), String(clock.now()), leaseMs),
    ...(hasChanged ? [entry(keys.idle(id), running ? '' : String(fence), keptFor(desk))] : []),
    ...(progress === undefined ? [] : [entry(keys.progress(id), progress, keptFor(desk))]),
  ]
}

function lose(desk: Desk, held: Held): LeaseWord {
  desk.leases.drop(held)
  return 'lost'
}

/** One call for each queue that can, one for each lease otherwise. What stands in no queue needs none. */
function heartbeats(all: readonly Held[], leaseMs: Ms): ReadonlyMap<Held, Promise<Outcome<boolean | void>>> {
  const byQueue = new Map<PlainQueue, Held[]>()
  const beats = new Map<Held, Promise<Outcome<boolean | void>>>()
  for (const held of all) {
    if (held.pulled === undefined) beats.set(held, Promise.resolve({ ok: true, value: undefined }))
    else byQueue.set(held.queue, [...(byQueue.get(held.queue) ?? []), held])
  }
  for (const [queue, mine] of byQueue) {
    const answers = queue.heartbeats(
      mine.flatMap(({ pulled }) => pulled ?? []),
      leaseMs,
    )
    for (const [i, held] of mine.entries())
      beats.set(
        held,
        answers.then((outcomes) => outcomes[i]!),
      )
  }
  return beats
}

/** A call that hangs is worth as much as one that failed: its answer counts only while the lease can still be ours. */
async function beforeLapse<T>(desk: Desk, held: Held, call: Promise<Outcome<T>>): Promise<Outcome<T>> {
  const { clock } = desk
  let cancel: () => void = () => undefined
  const lapse = new Promise<Outcome<T>>((resolve) => {
    const left = Math.max(0, held.heardMs + held.leaseMs - clock.monotonic())
    cancel = clock.after(left, () => resolve({ ok: false, error: unanswered(held) }))
  })
  const answer = await Promise.race([call, lapse])
  cancel()
  return answer
}

function unanswered({ lease, leaseMs }: Held): MillraceError {
  return new MillraceError(
    'HEARTBEAT_UNANSWERED',
    `A heartbeat of item ${lease.id} (queue "${lease.queue}") was not answered within the ${leaseMs} ms of its lease. ` +
      'Look at the connections of queue and store, or raise `visibility`.',
    { facts: { id: lease.id, queue: lease.queue, leaseMs } },
  )
}
