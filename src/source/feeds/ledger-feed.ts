import type { Answer, GroupCommit } from '../../core/group-commit.js'
import type { Clock } from '../../core/time/clock.js'
import { type At, isPromise, type MaybePromise, type Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ClaimedItem, EnvelopeHead } from '../../ports/item.js'
import type { ClaimReply, LeaseStatus, Ledger, Room, WorkerRecord } from '../../ports/ledger.js'
import type { CommitResult, GroupValue, Settlement } from '../../ports/settlement.js'
import type { Feed, Pulled, SettleTry } from '../loop/feed.js'
import { QueueRotation, type Share } from './queue-rotation.js'

/**
 * What a run of a ledger's item yields: what to write, and what to write instead when the ledger answers that it cannot
 * be written so.
 */
export interface PendingSettlement {
  settlement: Settlement
  /** Called before it is sent, each time: the last moment to say what it is. It may have to wait for others. */
  prepare?(): MaybePromise<void>
  /** Called with every answer; undefined: there was none. */
  answered?(result: CommitResult | undefined): void
  /** The group's value moved on: fold on what it is now. */
  refold?(now: GroupValue): Settlement
  /** It can never be accepted as it is (too large): dead-letter the item instead of trying forever. */
  refused?(result: Extract<CommitResult, { readonly kind: 'refused' }>): Settlement
  /** How the ledger answered in the end. */
  result?: CommitResult
}

/** What became of an item, on its way to the backend. */
export interface Outgoing {
  readonly type: string
  readonly settlement: Settlement
}

export interface LedgerFeedOptions {
  readonly ledger: Ledger
  /** What runs came to goes through one coalescer, so that neighbours share a round trip. */
  readonly outcomes: GroupCommit<Outgoing, CommitResult>
  /** Names of the queues to serve. */
  readonly queues: readonly string[]
  readonly leaseMs: Ms
  readonly heartbeatMs: Ms
  readonly worker: WorkerRecord
  /** The record that a heartbeat carries. Default: the same each time. */
  readonly record?: () => WorkerRecord
  readonly clock: Clock
  /** What this worker has room for, by type. Undefined: for anything. */
  readonly rooms?: () => readonly Room[] | undefined
  /** Wait between two polls of a queue that does not answer: this, doubling up to 30 s. */
  readonly retryQueueMs: Ms
  /** Every claim's reply: the server's time, what could not be read, which queues failed. */
  readonly onReply?: (reply: ClaimReply, askedMs: Ms) => void
}

/** A ledger as the loop's feed: claims, batched heartbeats, and settlements that share their round trips. */
export function ledgerFeed<R extends PendingSettlement = PendingSettlement>(
  o: LedgerFeedOptions,
): Feed<ClaimedItem, R> {
  const rotation = new QueueRotation(o.queues, o.clock, o.retryQueueMs)
  let nextDueAt: At | undefined
  /** The backend's time minus ours: due times come in its time, our timers run in ours. */
  let aheadMs = 0

  const claim = async (queues: readonly Share[], askedMs: Ms): Promise<ClaimReply> => {
    const rooms = o.rooms?.()
    const ask = { queues, leaseMs: o.leaseMs, worker: o.worker.id }
    const reply = await o.ledger.claim(rooms === undefined ? ask : { ...ask, rooms })
    aheadMs = reply.now - o.clock.now()
    rotation.heard(queues, reply.failedQueues ?? [])
    o.onReply?.(reply, askedMs)
    // A room that was used up may have been refilled meanwhile, which nothing reports: worth another claim.
    return !reply.more && rooms?.some((room) => isUsedUp(room, reply.items)) ? { ...reply, more: true } : reply
  }

  return {
    async pull(max: number, signal: AbortSignal): Promise<Pulled<ClaimedItem>> {
      const rounds = rotation.rounds(max)
      let dueAt: At | undefined
      let more = false
      for (const [i, round] of rounds.entries()) {
        if (signal.aborted) break
        const askedMs = o.clock.monotonic()
        const reply = await claim(round, askedMs)
        if (reply.nextDueAt !== undefined) dueAt = Math.min(dueAt ?? Infinity, reply.nextDueAt - aheadMs)
        nextDueAt = dueAt
        more ||= reply.more
        if (reply.items.length > 0) return { items: reply.items, more: more || i + 1 < rounds.length, askedMs }
      }
      return { items: [], more }
    },
    settle: ({ item }, settling, by) => new Sending(o, item.envelope, settling, by).send(),
    async release(deliveries, delayMs): Promise<void> {
      const results = await o.outcomes.addMany(
        deliveries.map(({ item }) => ({
          type: item.envelope.type,
          settlement: {
            guard: { by: 'lease', lease: item.lease },
            effects: [{ do: 'release', id: item.envelope.id, ...(delayMs === undefined ? {} : { delayMs }) }],
          },
        })),
      )
      for (const result of results) if (result.kind === 'failed') throw result.error
    },
    lease: {
      ms: o.leaseMs,
      everyMs: o.heartbeatMs,
      // On plain ports settlements are steps: a guard cannot tell two that overlap apart.
      isGuarded: o.ledger.atomic,
      extend: (deliveries): Promise<readonly LeaseStatus[]> =>
        o.ledger.extend(
          deliveries.map(({ item, isRunning }) => ({ lease: item.lease, running: isRunning })),
          o.leaseMs,
          o.record?.() ?? o.worker,
        ),
    },
    onReady: (wake) => {
      const served = new Set(o.queues)
      return o.ledger.onReady((queue, dueAt) => {
        if (!served.has(queue)) return
        const localDueAt = dueAt === undefined ? undefined : dueAt - aheadMs
        if (localDueAt === undefined) wake()
        else if (nextDueAt === undefined || localDueAt < nextDueAt) {
          // Due later than now: the loop looks once, and then sleeps no longer than until then.
          nextDueAt = localDueAt
          wake()
        }
      })
    },
    nextDueAt: () => rotation.earlier(nextDueAt),
    // A backend that is away comes back: the worker waits for it, and the observer is notified.
    isTransient: () => true,
  }
}

/** One try to settle, until the ledger has given its last word. It is what travels, and what waits for the answer. */
class Sending implements Outgoing, Answer<CommitResult> {
  readonly type: string
  settlement: Settlement
  readonly #o: LedgerFeedOptions
  readonly #id: string
  readonly #settling: PendingSettlement
  readonly #by: SettleTry
  #wasRefused = false

  constructor(o: LedgerFeedOptions, { id, type }: EnvelopeHead, settling: PendingSettlement, by: SettleTry) {
    this.type = type
    this.settlement = settling.settlement
    this.#o = o
    this.#id = id
    this.#settling = settling
    this.#by = by
  }

  send(): void {
    const preparing = this.#settling.prepare?.()
    if (preparing === undefined || !isPromise(preparing)) this.#add()
    else {
      preparing.then(
        () => {
          if (!this.#isTimeUp()) this.#add()
          else this.#settling.answered?.(undefined)
        },
        (error: unknown) => this.#by.failed(error),
      )
    }
  }

  resolve(result: CommitResult): void {
    try {
      this.#settling.answered?.(result)
      this.#settling.result = result
      this.#answered(result)
    } catch (error) {
      this.#by.failed(error)
    }
  }

  reject(error: unknown): void {
    this.#settling.answered?.(undefined)
    this.#by.failed(error)
  }

  #add(): void {
    this.settlement = this.#settling.settlement
    this.#o.outcomes.addFor(this, this)
  }

  #answered(result: CommitResult): void {
    const settling = this.#settling
    switch (result.kind) {
      case 'applied':
      case 'repeated':
        this.#by.answered('settled')
        return
      case 'stale':
        this.#by.answered('lost')
        return
      case 'conflict':
        if (settling.refold === undefined) throw new TypeError(`nothing to fold again on group ${result.groupId}`)
        this.#again(settling.refold(result.now))
        return
      case 'refused':
        // The replacement of a refused settlement is refused, too: nothing else can be tried.
        if (settling.refused === undefined || this.#wasRefused) throw new TypeError(`${this.#id}: ${result.message}`)
        this.#wasRefused = true
        this.#again(settling.refused(result))
        return
      case 'failed':
        throw result.error
      default:
        unreachable(result)
    }
  }

  #again(settlement: Settlement): void {
    this.#settling.settlement = settlement
    if (!this.#isTimeUp()) this.send()
  }

  /** By now another try may be in flight: two together would only conflict with each other. */
  #isTimeUp(): boolean {
    if (!this.#by.aborted) return false
    this.#by.failed(this.#by.reason)
    return true
  }
}

function isUsedUp({ types, max }: Room, items: readonly ClaimedItem[]): boolean {
  if (max === 0 || items.length < max) return false
  return items.filter(({ envelope }) => types.includes(envelope.type)).length >= max
}
