import type { Doer } from '../core/doer/doer.js'
import { MillraceError } from '../core/error.js'
import type { At, Maybe, Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { ClaimReply, ItemSummary } from '../ports/ledger.js'
import type { ClosedGroup } from '../ports/settlement.js'
import { ledgerFeed } from '../source/ledger-feed.js'
import type { Deliveries, Delivery } from '../source/loop/delivery.js'
import type { Feed } from '../source/loop/feed.js'
import { Loop } from '../source/loop/loop.js'
import type { Observer } from '../source/loop/observer.js'
import { type Backlog, openBacklog } from './backlog.js'
import { RunControls } from './controls/run-controls.js'
import { Direct } from './direct.js'
import { DoerAdmission } from './doer-admission.js'
import { Folds } from './folds.js'
import { GateRun } from './gate-run.js'
import { LoopDelay } from './loop-delay.js'
import { Place } from './place.js'
import { Presence } from './presence.js'
import { Redrive } from './redrive.js'
import { type Route, route } from './route.js'
import { Runner } from './runner.js'
import type { Shared } from './shared.js'
import { statesOf } from './states.js'
import { hintsOf } from './submitter.js'
import { Suspects } from './suspects.js'
import { UnknownTypes } from './unknown-types.js'
import { Unwritten } from './unwritten.js'
import type { WorkSettling } from './work-settling.js'

/** A body on the queue that is no envelope: removed, because nobody could ever run it. */
export class UnreadableBodyError extends MillraceError {
  constructor(queue: string, body: string) {
    super('UNREADABLE_BODY', `A body on queue "${queue}" is not an envelope and was dropped: ${body.slice(0, 200)}`, {
      facts: { queue },
    })
  }
}

/** How long `ctx.claim` remembers that a key was won. */
const CLAIM_TTL_MS = 86_400_000

/** How long a stop waits for handlers that were told to end and need a moment to obey. */
const STOP_GRACE_MS = 500

/** What the loop tells the system it belongs to. */
export interface WorkLoopEvents {
  settled(delivery: Delivery<Claimed>, settling: WorkSettling): void
  /** An item that waited has ended as unroutable, with this error, and these groups with it. */
  endedUnrun(view: ItemSummary, error: string, closed: readonly ClosedGroup[]): void
  /** A group closed without a settlement of ours: what a dead process had begun was completed. */
  closed(group: ClosedGroup): void
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
  readonly #direct: Direct
  readonly #delay: LoopDelay
  readonly #presence: Presence
  readonly #events: WorkLoopEvents
  /** Deliveries that ended before their run, with how. */
  readonly #ends = new WeakMap<Delivery<Claimed>, Extract<Route, { readonly kind: 'end' }>>()
  readonly #controls: RunControls
  #doers: DoerAdmission | undefined
  /** Outcomes on their way to the backend: what does not get there is told of by another run. */
  readonly #settlings = new WeakMap<Delivery<Claimed>, WorkSettling>()
  readonly #unwritten: Unwritten
  readonly #suspects: Suspects
  readonly #places = new WeakMap<Claimed, Place>()
  #directRun: Promise<unknown> | undefined
  /** The backend's time at the last claim. */
  #repliedAt: At = Number.NEGATIVE_INFINITY
  readonly #unknownTypes: UnknownTypes | undefined

  constructor(shared: Shared, events: WorkLoopEvents) {
    const { o } = shared
    this.#s = shared
    this.#events = events
    this.#backlog = openBacklog(shared)
    const gates = new GateRun(shared)
    this.#controls = new RunControls({
      shared,
      isSettling: (delivery) => this.#settlings.has(delivery),
      endUnstarted: (delivery) => this.#doers?.endUnstarted(delivery),
    })
    const { ledger, failed } = shared
    const told = () => shared.told()
    this.#presence = new Presence(ledger, told, o.visibility, o.clock, (error) => failed(error, 'queue'))
    this.#delay = new LoopDelay({
      clock: o.clock,
      limitMs: Math.ceil(o.visibility / 3),
      running: () => shared.recorder.active.runningTypes(),
      report: (error) => shared.failed(error, 'queue'),
    })
    this.#runner = new Runner({
      o,
      gate: (item, input) => gates.outcome(item, input),
      rules: shared.rules,
      worker: shared.worker.id,
      now: () => shared.now(),
      folds: new Folds({
        isCounted: shared.ledger.atomic,
        read: async (id) => (await shared.ledger.groups([id]))[0],
        onError: (error) => shared.failed(error, 'commit'),
        clock: o.clock,
        patienceMs: o.visibility / 4,
      }),
      services: {
        states: (ids) => statesOf(shared, ids),
        claim: async (key) => shared.ports.store.setIfNotExists(`${o.prefix}${key}`, shared.worker.id, CLAIM_TTL_MS),
        progress: (delivery, value) => this.#controls.progress(delivery, value),
      },
      ...this.#controls.forRuns(),
      placeOf: ({ item }) => this.#places.get(item),
      onError: shared.failed,
      started: (delivery, at) => this.#started(delivery, at),
    })
    this.#suspects = new Suspects(shared)
    this.#unknownTypes = UnknownTypes.of(shared, (view, error, closed) => events.endedUnrun(view, error, closed))
    this.#unwritten = new Unwritten(o.visibility)
    this.#feed = this.#withRedrive(
      ledgerFeed<WorkSettling>({
        ledger: shared.ledger,
        outcomes: shared.outcomes,
        queues: shared.worker.queues,
        leaseMs: o.visibility,
        heartbeatMs: o.heartbeat,
        worker: shared.worker,
        told,
        clock: o.clock,
        // Plain queues hand out anything: what finds no room is given back.
        rooms: () => (ledger.atomic ? this.#doers?.rooms : undefined),
        retryQueueMs: o.pollInterval,
        onReply: (reply, askedMs) => this.#heard(reply, askedMs),
      }),
    )
    this.#direct = new Direct(
      this.#feed,
      () => o.clock.monotonic(),
      (error) => shared.failed(error, 'queue'),
    )
    this.#loop = new Loop<Claimed, WorkSettling>(
      {
        name: 'work',
        clock: o.clock,
        turns: shared.turns,
        // An outcome is kept until it is written: a handler is never run again because a write failed.
        settle: { attempts: Infinity, baseMs: 100, maxMs: 5_000, timeoutMs: Infinity },
        maxSettleFailures: Infinity,
        fetchRetry: {
          attempts: Infinity,
          delayMs: (failures) => Math.min(30_000, o.pollInterval * 2 ** Math.min(failures - 1, 10)),
        },
        drainMs: o.stopDrain,
        graceMs: STOP_GRACE_MS,
        givesBackWhatRuns: false,
        idlePollMs: o.pollInterval,
      },
      this.#observer(),
    )
  }

  /** Works until it is stopped. */
  run(): Promise<unknown> {
    this.#doers = this.#admission()
    this.#controls.open()
    this.#presence.began()
    return this.#loop.run(this.#feed, this.#doers, (deliveries, stopping) => this.#executeAll(deliveries, stopping))
  }

  /**
   * Holds an item that is this process's from birth, in a second run of the same loop. What it yields runs it: to be called
   * when its turn has come, and resolved when its handler has ended or when it was given back meanwhile.
   */
  runDirectly(item: Claimed, askedMs: Ms, left: () => void): () => Promise<void> {
    this.#presence.began()
    this.#directRun ??= this.#loop
      .run(
        this.#direct.feed(),
        this.#direct.admission((delivery) => this.#s.recorder.taken(delivery)),
        ([delivery], stopping) => this.#execute(delivery, stopping),
      )
      .catch((error) => this.#s.failed(error, 'queue'))
    this.#direct.hold(item, askedMs, left)
    this.#controls.open()
    const doer = this.#s.doers.of(item.envelope.type)
    return () =>
      new Promise((leave) => {
        const free = this.#place([item], doer, leave, () => undefined)
        void this.#direct
          .run(item)
          .then(() => this.#controls.placeFree(item))
          .then(free)
      })
  }

  /** Ends its runs. `handedIn`: what was enqueued before has been answered. */
  async stop(drainMs: Ms, handedIn: Promise<void>): Promise<void> {
    // Work that skips the queue and was accepted meanwhile has begun a run of its own: that one ends, too.
    const { clock } = this.#s.o
    const untilMs = clock.monotonic() + drainMs
    const drain = async () => {
      do await this.#loop.stop(Math.max(0, untilMs - clock.monotonic()))
      while (this.#loop.isRunning)
    }
    await Promise.all([drain(), handedIn])
    await drain()
    await this.#directRun
    this.#directRun = undefined
    this.#controls.close()
    this.#backlog.behind(false)
    this.#delay.close()
    await this.#unknownTypes?.stop()
    await this.#presence.left()
  }

  async #execute(delivery: Delivery<Claimed>, stopping: AbortSignal): Promise<readonly WorkSettling[]> {
    return [this.#settling(delivery, await this.#outcome(delivery, stopping))]
  }

  /** A run of several deliveries is a batch of one type. */
  async #executeAll(deliveries: Deliveries<Claimed>, stopping: AbortSignal): Promise<readonly WorkSettling[]> {
    const [first] = deliveries
    const def = this.#s.registry.find(first.item.envelope.type)
    if (deliveries.length === 1 || def?.batch === undefined) return this.#execute(first, stopping)
    const ends = deliveries.map((delivery) => this.#end(delivery))
    const able = deliveries.filter((_, i) => ends[i] === undefined)
    const areMarked = await Promise.all(able.map((delivery) => this.#suspects.mark(delivery)))
    const running = able.filter((_, i) => areMarked[i])
    const ran = running.length === 0 ? [] : await this.#runner.runBatch(running, def, def.batch)
    const settlings = deliveries.map((delivery, i) => {
      return ends[i] ?? ran[running.indexOf(delivery)] ?? this.#putOff(delivery)
    })
    return deliveries.map((delivery, i) => this.#settling(delivery, settlings[i]!))
  }

  #settling(delivery: Delivery<Claimed>, settling: WorkSettling): WorkSettling {
    this.#s.recorder.settling(settling)
    this.#settlings.set(delivery, settling)
    // What ran on after its lease was over has been told that it does not count.
    if (delivery.state !== 'lost') this.#unwritten.add(settling)
    return settling
  }

  async #outcome(delivery: Delivery<Claimed>, stopping: AbortSignal): Promise<WorkSettling> {
    const { type } = delivery.item.envelope
    const def = this.#s.registry.find(type)
    const ended = this.#end(delivery)
    if (ended !== undefined) return ended
    if (def !== undefined) {
      // Fetched before so many of its type had lent their places: it goes back, and spends no attempt.
      if (this.#s.lending.isClosedTo(type)) return this.#putOff(delivery)
      const isSuspect = delivery.item.lapses > 0
      if (isSuspect && !(await this.#suspects.mayBegin(delivery, stopping))) {
        return this.#putOff(delivery, stopping.aborted ? 0 : undefined)
      }
      return await this.#runner.run(delivery, def)
    }
    return this.#runner.ended(delivery, { kind: 'unroutable', error: `unknown work type: ${type}` })
  }

  /** It is not to run now, for a reason that passes. */
  #putOff(delivery: Delivery<Claimed>, delayMs: Ms = this.#s.o.pollInterval): WorkSettling {
    return this.#runner.ended(delivery, { kind: 'waiting', delayMs })
  }

  /** The settlement of a delivery that is not to run. */
  #end(delivery: Delivery<Claimed>): WorkSettling | undefined {
    const kept = this.#unwritten.of(delivery.item)
    if (kept !== undefined) return kept.under(delivery.item)
    const ended = this.#ends.get(delivery)
    if (ended !== undefined) return this.#runner.ended(delivery, ended.outcome)
    // It may have waited for its turn: what was in time when it was fetched need not be any more.
    const way = this.#way(delivery.item)
    return way.kind === 'end' ? this.#runner.ended(delivery, way.outcome) : undefined
  }

  /** Where it goes by itself. Our own time may be a little behind that by which the backend found it expired. */
  #way(item: Claimed): Route {
    const { registry, ledger } = this.#s
    const isKnown = registry.find(item.envelope.type) !== undefined
    const known = isKnown ? 'known' : ledger.atomic ? 'not asked for' : 'unknown'
    return route(item, known, Math.max(this.#s.now(), this.#repliedAt))
  }

  #admission(): DoerAdmission {
    const { o, registry, recorder, doers, window, lending } = this.#s
    return new DoerAdmission({
      doers,
      isClosedTo: (type) => lending.isClosedTo(type),
      window,
      batchOf: (type) => registry.find(type)?.batch,
      putBack: (delivery) => {
        this.#ends.set(delivery, { kind: 'end', outcome: { kind: 'waiting', delayMs: o.pollInterval } })
      },
      clock: o.clock,
      pollInterval: o.pollInterval,
      backpressure: () => this.#backpressure(),
      route: (delivery) => this.#route(delivery),
      taken: (delivery) => recorder.taken(delivery),
      left: (delivery) => recorder.left(delivery),
      asked: (appetite) => {
        if (appetite <= 0) this.#backlog.behind(true)
      },
      failed: (error) => this.#s.failed(error, 'queue'),
      placeFree: ({ item }) => this.#controls.placeFree(item),
      place: (deliveries, doer, leave) => {
        const moved = (isLent: boolean) => {
          for (const delivery of deliveries) delivery.moveTo(isLent ? 'lent' : 'running')
        }
        const items = deliveries.map(({ item }) => item)
        return this.#place(items, doer, leave, moved)
      },
    })
  }

  /** Makes the place of a run. What it yields is called when the place is free again. */
  #place(items: readonly Claimed[], doer: Doer, leave: () => void, moved: (isLent: boolean) => void): () => void {
    // Where places are without number, or not known to be few, there is nothing to lend.
    if (!Number.isFinite(doer.concurrency)) return leave
    const { lending } = this.#s
    const { envelope } = items[0]!
    const place = new Place({ type: envelope.type, doer, hints: hintsOf(envelope), lending, leave, moved })
    for (const item of items) this.#places.set(item, place)
    return () => place.end()
  }

  #route(delivery: Delivery<Claimed>): Route {
    const { registry, o } = this.#s
    const { envelope } = delivery.item
    // Its handler has run already: nothing but the outcome is left to be written.
    const kept = this.#unwritten.of(delivery.item)
    if (kept !== undefined) return { kind: 'end', outcome: kept.ran.outcome }
    const way = this.#way(delivery.item)
    if (way.kind === 'end') this.#ends.set(delivery, way)
    if (way.kind === 'run' && this.#s.lending.isClosedTo(envelope.type))
      return { kind: 'back', afterMs: o.pollInterval }
    const { accept } = o.given
    if (way.kind !== 'run' || accept === undefined) return way
    const { id, type, groupId, attempt } = envelope
    let input: unknown
    try {
      input = registry.codecOf(type, o.codec).parse(envelope.input)
    } catch {
      return way // What cannot be read is parked by its run, with the reason.
    }
    return accept({ id, type, groupId, attempt, input }) === false ? { kind: 'back', afterMs: o.pollInterval } : way
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
    delivery.hasBegun = true
    this.#s.window.started()
    this.#delay.started(item.envelope.type)
    this.#s.saw(item.envelope, { status: 'running', runAt: at })
    if (ledger.begin === undefined) return
    try {
      const begun = ledger.begin([item.lease])
      if (begun instanceof Promise) begun.catch((error) => failed(error, 'commit'))
    } catch (error) {
      failed(error, 'commit')
    }
  }

  #heard(reply: ClaimReply, askedMs: Ms): void {
    this.#s.learnTime(reply.at, askedMs)
    this.#repliedAt = reply.at
    this.#unwritten.claimed(askedMs)
    const tookMs = this.#s.o.clock.monotonic() - askedMs
    this.#s.window.claimed(
      tookMs,
      reply.items.map(({ envelope }) => envelope.input.length),
    )
    for (const { error } of reply.failed ?? []) this.#s.failed(error, 'queue')
    for (const { queue, body } of reply.unreadable ?? []) this.#s.failed(new UnreadableBodyError(queue, body), 'queue')
    for (const closed of reply.closed ?? []) this.#events.closed(closed)
    for (const { envelope, byMs } of reply.rescheduled ?? []) this.#s.recorder.rescheduled(envelope, byMs)
    for (const type of reply.crashed ?? []) this.#s.recorder.crashed(type)
    if (reply.removed !== undefined) this.#s.recorder.removed(reply.removed)
    this.#presence.looked(askedMs)
    this.#unknownTypes?.looked(askedMs)
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
      canReopen: ledger.inspect !== undefined,
      read: async (id) => (await ledger.read([id]))[0],
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
    const leaving = (leave: (delivery: Delivery<Claimed>) => void, answer: 'lost' | 'over' | 'unknown') => {
      return (delivery: Delivery<Claimed>) => {
        leave(delivery)
        this.#suspects.left(delivery)
        const settling = this.#settlings.get(delivery)
        if (settling !== undefined) {
          if (answer === 'lost') this.#unwritten.lost(settling, this.#s.o.clock.monotonic())
          else if (answer === 'over') this.#unwritten.answered(settling)
          recorder.notSettled(settling)
        }
        this.#events.moved()
      }
    }
    const left = (delivery: Delivery<Claimed>) => recorder.left(delivery)
    return {
      settled: (delivery, settling) => {
        this.#suspects.left(delivery)
        this.#unwritten.answered(settling)
        this.#events.settled(delivery, settling)
      },
      settleRetry: (delivery) => recorder.commitFailed(delivery.item.envelope.type),
      unsettled: leaving((delivery) => {
        recorder.commitFailed(delivery.item.envelope.type)
        recorder.left(delivery)
      }, 'over'),
      lost: leaving((delivery) => recorder.lost(delivery), 'lost'),
      returned: leaving(left, 'over'),
      // Its outcome may still be on its way.
      abandoned: leaving(left, 'unknown'),
      failed: (phase, error) => (phase === 'settle' ? this.#s.notWritten(error) : failed(error, 'queue')),
    }
  }
}
