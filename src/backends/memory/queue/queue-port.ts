import { newToken } from '../../../core/ids.js'
import type { Ms } from '../../../core/time/time.js'
import type { DeadLetter, DeadLetterSink, NewDeadLetter, PulledWork, PushOptions, Queue } from '../../../ports/ports.js'
import { checkText } from '../../shared/check-text.js'
import { withHidden } from '../../shared/hidden.js'
import { PulledMessage } from '../../shared/pulled-message.js'
import { givenDuration, type Time } from '../time.js'
import { deadQueue } from './dead-letter-queue.js'
import type { DeadLettered } from './dead-letters.js'
import { type Message, MessageLease } from './message.js'
import { type MessageQueue, PROMOTE_STEP } from './message-queue.js'

/** A queue in memory: every method is synchronous, and its dead letters can be read. */
export interface MemoryQueue extends Queue {
  push(body: string, options?: PushOptions): void
  pop(max: number, visibility: Ms): PulledWork[]
  heartbeat(pulled: PulledWork, visibility: Ms): boolean
  ack(pulled: PulledWork): void
  fail(pulled: PulledWork, delay?: Ms, note?: string): void
  deadLetter(body: string, error: string): void
  /** Leased, visible, delayed and held bodies. */
  size(): number
  /** What was given up: a live array, the oldest first, bounded by `maxDead`. */
  readonly dead: readonly DeadLettered[]
  /** The dead letters as a queue to redrive from: `ack` takes one out of `dead`. */
  deadQueue(): Queue
  pushMany(bodies: readonly { readonly body: string; readonly options?: PushOptions }[]): void
  ackMany(pulled: readonly PulledWork[]): void
  heartbeatMany(pulled: readonly PulledWork[], visibility: Ms): readonly boolean[]
  start(pulled: readonly PulledWork[]): readonly boolean[]
  readonly deadLetters: DeadLetterSink
}

/** What a port calls in its backend. */
export interface PortHooks {
  /** Throws if bodies must not be popped here. */
  popping(): void
  /** Throws if this body must not be pushed here. */
  pushing(body: string): void
  /** A body was pushed. Called before `settled`. */
  pushed(queue: MessageQueue, message: Message): void
  /** A message was acked. Called before `settled`. */
  acked(message: Message): void
  /** A call has changed something: write it to the file, then wake listeners. */
  settled(): void
}

/**
 * The plain port of a queue: a bag of closures without `this`, so that a spread of it is a queue too. Members that the
 * three-port contract does not know are not enumerable: a spread loses them, and with them a promise it could not keep.
 */
export function queuePort(queue: MessageQueue, time: Time, hooks: PortHooks): MemoryQueue {
  const pushOne = (body: string, options: PushOptions | undefined): boolean => {
    checkText('push', 'body', body)
    hooks.pushing(body)
    const delay = givenDuration('push.delay', options?.delay)
    const dedupeKey = options?.dedupeKey
    if (dedupeKey !== undefined && queue.hasKey(dedupeKey)) return false
    const now = time.wall()
    const priority = options?.priority ?? 0
    const message = queue.draft(body, now + delay, Number.isFinite(priority) ? priority : 0, dedupeKey)
    queue.enter(message, now)
    hooks.pushed(queue, message)
    return true
  }
  const ackOne = (pulled: PulledWork): boolean => {
    const message = queue.leasedBy(pulled.handle)
    if (message === undefined) return false
    queue.remove(message)
    hooks.acked(message)
    return true
  }
  const heartbeatOne = (pulled: PulledWork, visibility: Ms): boolean => {
    const leaseMs = givenDuration('heartbeat.visibility', visibility)
    const message = queue.leasedBy(pulled.handle)
    if (message === undefined) return false
    queue.extend(message, leaseMs, time.steady(), time.wall())
    return true
  }

  const deadLetters = {
    add({ id = newToken(), body, error, detail }: NewDeadLetter): void {
      checkText('deadLetter', 'body', body)
      checkText('deadLetter', 'error', error)
      queue.dead.add({ body, error }, body, { id, at: time.wall(), detail })
      hooks.settled()
    },
    list: ({ after, limit }: { readonly after?: string; readonly limit: number }): readonly DeadLetter[] =>
      queue.dead.letters(Number(after ?? 0), limit),
    count: (): number => queue.dead.letterCount,
    redrive(letters: readonly DeadLetter[]): number {
      for (const { body } of letters) hooks.pushing(body)
      const now = time.wall()
      let count = 0
      for (const letter of letters) {
        const entry = queue.dead.entryOf(letter)
        if (entry === undefined) continue
        queue.dead.remove(entry)
        const message = queue.draft(entry.body, now, 0)
        message.ownId = letter.id
        queue.enter(message, now)
        hooks.pushed(queue, message)
        count += 1
      }
      hooks.settled()
      return count
    },
    discard(letters: readonly DeadLetter[]): number {
      const entries = letters.flatMap((letter) => queue.dead.entryOf(letter) ?? [])
      for (const entry of entries) queue.dead.remove(entry)
      hooks.settled()
      return entries.length
    },
  }
  const port = {
    push(body: string, options?: PushOptions): void {
      if (pushOne(body, options)) hooks.settled()
    },
    pop(max: number, visibility: Ms): PulledWork[] {
      const now = time.wall()
      const steady = time.steady()
      const leaseMs = givenDuration('pop.visibility', visibility)
      hooks.popping()
      queue.reclaim(steady, now)
      queue.promote(now, Math.max(PROMOTE_STEP, Number.isNaN(max) ? 0 : max))
      const taken: PulledWork[] = []
      while (taken.length < max) {
        const message = queue.nextReady()
        if (message === undefined) break
        const lease = new MessageLease(newToken(), undefined, leaseMs, steady, now)
        queue.lease(message, lease)
        queue.indexToken(message, lease)
        taken.push(new PulledMessage({ body: message.body, handle: lease.token, attempt: message.deliveries }, message))
      }
      hooks.settled()
      return taken
    },
    heartbeat: heartbeatOne,
    ack(pulled: PulledWork): void {
      if (ackOne(pulled)) hooks.settled()
    },
    fail(pulled: PulledWork, delay?: Ms, note?: string): void {
      const wait = givenDuration('fail.delay', delay)
      const message = queue.leasedBy(pulled.handle)
      if (message === undefined) return
      const now = time.wall()
      if (note !== undefined) queue.keepNote(message, note)
      queue.refile(message, now, wait > 0 ? now + wait : undefined, undefined)
      hooks.settled()
    },
    deadLetter(body: string, error: string): void {
      deadLetters.add({ body, error })
    },
    size: (): number => queue.size,
    dead: queue.dead.list,
  }
  const beyond = {
    deadQueue: () => deadQueue(queue.dead, time, () => hooks.settled()),
    pushMany(bodies: readonly { readonly body: string; readonly options?: PushOptions }[]): void {
      // All or none: a bad one in the middle must not leave half of them behind.
      for (const { body, options } of bodies) {
        checkText('push', 'body', body)
        hooks.pushing(body)
        givenDuration('push.delay', options?.delay)
      }
      for (const { body, options } of bodies) pushOne(body, options)
      hooks.settled()
    },
    ackMany(pulled: readonly PulledWork[]): void {
      for (const one of pulled) ackOne(one)
      hooks.settled()
    },
    heartbeatMany: (pulled: readonly PulledWork[], visibility: Ms) =>
      pulled.map((one) => heartbeatOne(one, visibility)),
    start(pulled: readonly PulledWork[]): readonly boolean[] {
      const held = pulled.map(({ handle }) => {
        const message = queue.leasedBy(handle)
        if (message !== undefined) queue.start(message)
        return message !== undefined
      })
      hooks.settled()
      return held
    },
    deadLetters,
  }
  return withHidden(port, beyond)
}
