import { MillraceError } from '../core/error.js'
import type { At, Maybe, Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { ClaimReply } from '../ports/ledger.js'
import { ledgerFeed } from '../source/ledger-feed.js'
import type { Delivery } from '../source/loop/delivery.js'
import type { Feed } from '../source/loop/feed.js'
import { Loop } from '../source/loop/loop.js'
import type { Observer } from '../source/loop/observer.js'
import { type Backlog, openBacklog } from './backlog.js'
import { Direct } from './direct.js'
import { DoerAdmission } from './doer-admission.js'
import { Redrive } from './redrive.js'
import { type Route, route } from './route.js'
import { Runner, type WorkSettling } from './runner.js'
import type { Shared } from './shared.js'
import { stateOf } from './states.js'

/** A body on the queue that is no envelope: removed, because nobody could ever run it. */
export class UnreadableBodyError extends MillraceError {
  constructor(queue: string, body: string) {
    super('UNREADABLE_BODY', `A body on queue "${queue}" is not an envelope and was dropped: ${body.slice(0, 200)}`, {
      facts: { queue },
    })
  }
}

/** What the loop tells the system it belongs to. */
export interface WorkLoopEvents {
  settled(delivery: Delivery<Claimed>, settling: WorkSettling): void
  /** A look at the queues is over, or something left: what is owed may have changed. */
  moved(): void
}

/** The consume loop with everything that makes it a worker: the ledger as feed, doers as policy, handlers to run. */
export class WorkLoop {
  readonly #s: Shared
  readonly #runner: Runner
  readonly #loop: Loop<Claimed, WorkSettling>
  readonly #feed: Feed<Claimed, WorkSettling>
  readonly #backlog: Backlog
  readonly #direct = new Direct()
  readonly #events: WorkLoopEvents
  /** Deliveries that ended before their run, with how. */
  readonly #ends = new WeakMap<Delivery<Claimed>, Extract<Route, { readonly kind: 'end' }>>()
  #directRun: Promise<unknown> | undefined

  constructor(shared: Shared, events: WorkLoopEvents) {
    const { o } = shared
    this.#s = shared
    this.#events = events
    this.#backlog = openBacklog(shared)
    this.#runner = new Runner({
      o,
      rules: shared.rules,
      worker: shared.worker.id,
      now: () => shared.now(),
      groupValue: async (id) => (await shared.ledger.groups([id]))[0],
      services: {
        states: (ids) => statesOf(shared, ids),
        claim: async (key) =>
          shared.ports.store.setIfNotExists(`${o.prefix}${key}`, shared.worker.id, o.keep.successMs),
      },
      onError: shared.failed,
      started: (delivery, at) => this.#started(delivery, at),
    })
    this.#feed = this.#withRedrive(
      ledgerFeed<WorkSettling>({
        ledger: shared.ledger,
        commits: shared.commits,
        queues: shared.worker.queues,
        leaseMs: o.visibility,
        heartbeatMs: o.heartbeat,
        worker: shared.worker,
        clock: o.clock,
        startNow: (n) => n,
        retryQueueMs: o.pollInterval,
        onReply: (reply, askedMs) => this.#heard(reply, askedMs),
      }),
    )
    this.#loop = new Loop<Claimed, WorkSettling>(
      {
        name: 'work',
        clock: o.clock,
        // An outcome is kept until it is written: a handler is never run again because a write failed.
        settle: { attempts: Infinity, baseMs: 100, maxMs: 5_000, timeoutMs: Math.max(5_000, o.visibility) },
        maxSettleFailures: Infinity,
        fetchRetry: {
          attempts: Infinity,
          delayMs: (failures) => Math.min(30_000, o.pollInterval * 2 ** Math.min(failures - 1, 10)),
        },
        drainMs: o.stopDrain,
        graceMs: 0,
        idlePollMs: o.pollInterval,
      },
      this.#observer(),
    )
  }

  /** Works until it is stopped. */
  run(): Promise<unknown> {
    return this.#loop.run(this.#feed, this.#admission(), ([delivery]) => this.#execute(delivery))
  }

  /** Runs an item that this process holds already, started or not: a second run of the same loop. */
  runDirectly(item: Claimed, askedMs: Ms): Promise<void> {
    this.#directRun ??= this.#loop
      .run(
        this.#direct.feed(this.#feed),
        this.#direct.admission((delivery) => this.#s.recorder.taken(delivery)),
        ([delivery]) => this.#execute(delivery),
      )
      .catch((error) => this.#s.failed(error, 'queue'))
    return this.#direct.run(item, askedMs)
  }

  async stop(drainMs: Ms): Promise<void> {
    await this.#loop.stop(drainMs)
    await this.#directRun
    this.#directRun = undefined
    this.#backlog.behind(false)
  }

  async #execute(delivery: Delivery<Claimed>): Promise<readonly WorkSettling[]> {
    const ended = this.#ends.get(delivery)
    if (ended !== undefined) return [this.#runner.ended(delivery, ended.outcome)]
    const { type } = delivery.item.envelope
    const def = this.#s.registry.find(type)
    if (def !== undefined) return [await this.#runner.run(delivery, def)]
    return [this.#runner.ended(delivery, { kind: 'unroutable', error: `unknown work type: ${type}` })]
  }

  #admission(): DoerAdmission {
    const { o, registry, recorder } = this.#s
    const own = [...registry.definitions].map((def) => def.options.doer).filter((doer) => doer !== undefined)
    return new DoerAdmission({
      global: o.doer,
      doerOf: (type) => registry.find(type)?.options.doer,
      doers: [...new Set([o.doer, ...own])],
      pollInterval: o.pollInterval,
      backpressure: () => this.#backpressure(),
      route: (delivery) => this.#route(delivery),
      taken: (delivery) => recorder.taken(delivery),
      left: (delivery) => recorder.left(delivery),
      asked: (appetite) => {
        if (appetite <= 0) this.#backlog.behind(true)
      },
    })
  }

  #route(delivery: Delivery<Claimed>): Route {
    const { registry, o } = this.#s
    const { envelope } = delivery.item
    const way = route(delivery.item, registry.find(envelope.type) !== undefined, this.#s.now())
    if (way.kind === 'end') this.#ends.set(delivery, way)
    const { accept } = o.given
    if (way.kind !== 'run' || accept === undefined) return way
    const { id, type, groupId, attempt } = envelope
    let input: unknown
    try {
      input = registry.codecOf(type, o.codec).parse(envelope.input)
    } catch {
      return way // What cannot be read is parked by its run, with the reason.
    }
    return accept({ id, type, groupId, attempt, input }) ? way : { kind: 'back', afterMs: o.pollInterval }
  }

  #backpressure(): Maybe<Ms> {
    const { o, recorder, failed } = this.#s
    const { backpressure } = o.given
    if (backpressure === undefined) return 0
    const pauseAfter = (error: unknown) => {
      failed(error, 'queue')
      return o.pollInterval
    }
    try {
      const asked = backpressure({ metrics: o.metrics, active: recorder.active.size })
      return asked instanceof Promise ? asked.then((ms) => ms ?? 0, pauseAfter) : (asked ?? 0)
    } catch (error) {
      return pauseAfter(error)
    }
  }

  #started(delivery: Delivery<Claimed>, at: At): void {
    const { item } = delivery
    const { ledger, recorder, failed } = this.#s
    recorder.started(delivery, at)
    this.#s.saw(item.envelope, { status: 'running', runAt: at })
    if (item.started || ledger.begin === undefined) return
    try {
      const begun = ledger.begin([item.lease])
      if (begun instanceof Promise) begun.catch((error) => failed(error, 'commit'))
    } catch (error) {
      failed(error, 'commit')
    }
  }

  #heard(reply: ClaimReply, askedMs: Ms): void {
    this.#s.learnTime(reply.at, askedMs)
    for (const { error } of reply.failed ?? []) this.#s.failed(error, 'queue')
    for (const { queue, body } of reply.unreadable ?? []) this.#s.failed(new UnreadableBodyError(queue, body), 'queue')
    for (const { envelope, byMs } of reply.rescheduled ?? []) this.#s.recorder.rescheduled(envelope, byMs)
    this.#backlog.behind(reply.more)
    this.#events.moved()
  }

  /** When a look at the queues brings nothing, the dead letters get a chance. */
  #withRedrive(feed: Feed<Claimed, WorkSettling>): Feed<Claimed, WorkSettling> {
    const { o, registry, ledger, commits, recorder } = this.#s
    const { dlq } = o.given
    if (dlq === undefined || o.redriveCount === 0) return feed
    const redrive = new Redrive({
      dlq,
      count: o.redriveCount,
      maxRedrives: o.maxRedrives,
      visibility: o.visibility,
      now: () => this.#s.now(),
      keep: o.keep,
      queueOf: (type) => registry.queueOf(type),
      read: async (id) => (ledger.inspect === undefined ? undefined : (await ledger.read([id]))[0]),
      commit: (settlement) => commits.add(settlement),
      queued: (item) => recorder.queued(item, this.#s.now()),
      onError: (error) => this.#s.failed(error, 'queue'),
    })
    return {
      ...feed,
      pull: async (max, signal) => {
        const pulled = await feed.pull(max, signal)
        if (pulled.items.length === 0 && !pulled.more) await redrive.round()
        return pulled
      },
    }
  }

  #observer(): Observer<Claimed, WorkSettling> {
    const { recorder, failed } = this.#s
    const leaving = (leave: (delivery: Delivery<Claimed>) => void) => (delivery: Delivery<Claimed>) => {
      leave(delivery)
      this.#events.moved()
    }
    const left = leaving((delivery) => recorder.left(delivery))
    return {
      settled: (delivery, settling) => this.#events.settled(delivery, settling),
      unsettled: leaving((delivery) => {
        recorder.commitFailed(delivery.item.envelope.type)
        recorder.left(delivery)
      }),
      lost: leaving((delivery) => recorder.lost(delivery)),
      returned: left,
      abandoned: left,
      failed: (phase, error) => failed(error, phase === 'settle' ? 'commit' : 'queue'),
    }
  }
}

/** The states of these items; what the ledger no longer knows, this process may. */
async function statesOf({ ledger, known }: Shared, ids: readonly string[]) {
  const views = await ledger.read(ids)
  return ids.map((id, i) => {
    const view = views[i]
    return view === undefined ? known?.get(id) : stateOf(view)
  })
}
