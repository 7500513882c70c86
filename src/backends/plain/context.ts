import { MillraceError } from '../../core/error.js'
import { newToken } from '../../core/ids.js'
import type { Clock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import type { Ports } from '../../ports/ports.js'
import type { CommitResult } from '../../ports/settlement.js'
import type { OutcomeEffect, SortedEffects } from '../shared/sort-effects.js'
import { Counters, KeyedMutex, Records } from './counters.js'
import { type HeldLease, HeldLeases } from './held-leases.js'
import { type Keys, keysOf } from './keys.js'
import { NoticeOutbox, Notifier } from './notify.js'
import type { PlainOptions } from './over-plain-ports.js'
import { PlainQueue, PlainStore } from './plain-ports.js'

/** Everything the steps of the adapter work with: one for each adapter. */
export class PlainContext {
  readonly options: Readonly<Required<PlainOptions>>
  readonly clock: Clock
  readonly keys: Keys
  readonly store: PlainStore
  readonly counters: Counters
  readonly records: Records
  readonly mutex = new KeyedMutex()
  readonly queues: ReadonlyMap<string, PlainQueue>
  readonly leases = new HeldLeases()
  readonly notifier: Notifier
  readonly outbox: NoticeOutbox
  /** Enqueues in flight, so that one id enqueued twice at the same time is one item. */
  readonly enqueuing = new Map<string, Promise<CommitResult>>()
  /** Actions on items without a lease that have failed half-way: their repetition continues with these. */
  readonly unfinished = new Map<string, Pick<HeldLease, 'lease' | 'progress'>>()
  /** A name that no other adapter has: claims that outlive a single settlement carry it. */
  readonly name = newToken()

  constructor(ports: Ports, queues: ReadonlyMap<string, Ports['queue']>, options: Readonly<Required<PlainOptions>>) {
    const { clock, retryPort, prefix } = options
    this.options = options
    this.clock = clock
    this.keys = keysOf(prefix)
    this.store = new PlainStore(ports.store, retryPort)
    this.counters = new Counters(this.store, (error) => this.report(error, 'commit'))
    this.records = new Records(this.store, this.keys, clock)
    this.queues = new Map([...queues].map(([name, port]) => [name, new PlainQueue(name, port, retryPort)]))
    this.outbox = new NoticeOutbox(ports.pubsub, (error) => this.report(error, 'commit'))
    this.notifier = new Notifier(ports.pubsub, (error) => this.report(error, 'queue'))
  }

  report(error: unknown, phase: 'queue' | 'commit'): void {
    try {
      this.options.onError(error, phase)
    } catch {
      // An observer must not break what it observes, and there is no other place to report this.
    }
  }

  /** How long a record about something that is due in `delayMs` is kept. */
  keptFor(delayMs: Ms = 0): Ms {
    return this.options.retentionMs + (Number.isFinite(delayMs) ? Math.max(0, delayMs) : 0)
  }

  dueIn(delayMs: Ms): At {
    return this.clock.now() + Math.max(0, delayMs)
  }

  /** Lease tokens carry the name of their adapter, and an unguessable rest. */
  newLeaseToken(): string {
    return `${this.name}.${newToken()}`
  }

  queueNamed(name: string): PlainQueue {
    const found = this.queues.get(name)
    if (found !== undefined) return found
    throw new MillraceError(
      'BAD_NAME',
      `There is no queue "${name}" here, only ${[...this.queues.keys()].map((known) => `"${known}"`).join(', ')}. ` +
        'Give it to the system, as its queue or as the queue of a type.',
      { facts: { queue: name } },
    )
  }

  /** Pushes a body. `wake`: the loops of this process are notified. */
  async push(
    queue: PlainQueue,
    body: string,
    given: {
      readonly priority: number
      readonly delayMs: Ms
      /** A queue that knows keys keeps one copy per key. Undefined: this copy replaces one that is still there. */
      readonly key: string | undefined
      readonly wake: boolean
    },
  ): Promise<void> {
    const { priority, delayMs, key, wake } = given
    await queue.push(body, {
      delay: delayMs,
      ...(key === undefined ? {} : { dedupeKey: key }),
      ...(priority === 0 ? {} : { priority }),
    })
    if (wake) this.notifier.wake(queue.name, delayMs > 0 ? this.dueIn(delayMs) : undefined)
  }
}

export function notSupported(what: string, instead: string): MillraceError {
  return new MillraceError('NOT_SUPPORTED', `Plain ports cannot ${what}. ${instead}`, { facts: { what } })
}

/** What the settlement decides about its item. */
export function outcomeIn({ outcomes }: SortedEffects): OutcomeEffect | undefined {
  if (outcomes.length > 1)
    throw badSettlement(`it has ${outcomes.length} outcomes (${outcomes.map((one) => one.do).join(', ')})`)
  return outcomes[0]
}

export function badSettlement(what: string): MillraceError {
  return new MillraceError(
    'BAD_SETTLEMENT',
    `This settlement cannot be applied: ${what}. A settlement ends, retries or releases exactly one item.`,
  )
}
