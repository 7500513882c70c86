import { WorkDelayError } from '../../core/failure/control-errors.js'
import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem, Ending } from '../../ports/item.js'
import type { CommitResult, Effect, Settlement } from '../../ports/settlement.js'
import { ControlHistory } from './control-history.js'
import { BrokenPromiseError } from './errors.js'
import { GateHistory } from './gate-history.js'
import type { Ground } from './remote-backend.js'

/** One run of a handler, as seen from outside of Millrace. */
export interface SimulatedRun {
  readonly id: string
  readonly type: string
  readonly groupId: string
  readonly fence: number
  readonly attempt: number
  readonly process: string
  readonly startedMs: Ms
  endedMs?: Ms
  /** Its signal fired. */
  notifiedMs?: Ms
  /** The code of the reason that its signal gave. */
  notifiedWhy?: string
  /** When it was settled it had taken all the time that its type allows. Its signal may have fired for another reason before. */
  hasRunOut?: boolean
  /** It was settled as something else before its handler returned: it was cancelled, or timed out. */
  isOverruled?: boolean
  outcome?:
    | { readonly kind: 'returned'; readonly children: readonly string[] }
    | { readonly kind: 'threw'; readonly error: unknown }
  /** What it came to was sent to the backend, once at least. */
  isOffered?: boolean
  /** The backend has refused it: its lease went to another claim. */
  isRefused?: boolean
  /** The fence of the lease under which it was settled, where that was a later one of the same process. */
  settledUnder?: number
  /** A batch failed as a whole, and its items ran once more, one by one, under the same leases. */
  isRepeated?: boolean
  /** It ended without a word about its item, which is to run again. */
  isPutOff?: boolean
  /**
   * The backend took its settlement, as the how many-th of all. Known only where the backend's commits can be watched: on
   * native ground.
   */
  settledNth?: number
}

/** How an item ended, as the backend accepted it. */
export interface End {
  readonly ms: Ms
  readonly fence: number | undefined
  readonly ending: Ending
}

/** All that is known of one item without asking Millrace. */
export class ItemHistory {
  readonly id: string
  /** `enqueue` was called for it. */
  offeredMs: Ms | undefined
  /** `accepted()` resolved: from here on it may not be lost. */
  acceptedMs: Ms | undefined
  /** The run whose settlement made it. */
  bornOf: string | undefined
  /** A schedule fired it: the process that fires the occurrence repeats the enqueue until it is stored. */
  isScheduled = false
  groupId: string | undefined
  type: string | undefined
  /** How long one run of it may take. */
  runTimeout: Ms | undefined
  /** Its leases, in order. */
  readonly leases: { readonly fence: number; readonly ms: Ms; readonly process?: string }[] = []
  /** Why an enqueue of it was not accepted. It may be there all the same. */
  readonly refusals: unknown[] = []
  readonly ends: End[] = []
  readonly runs: SimulatedRun[] = []
  /** Settlements that the backend took from one of its leases. */
  settlements = 0
  /** Those of them that spent an attempt. */
  spent = 0
  reopened = 0

  constructor(id: string) {
    this.id = id
  }

  get hasEnded(): boolean {
    return this.ends.length > this.reopened
  }

  /** The fence of its last lease. */
  get fence(): number | undefined {
    return this.leases.at(-1)?.fence
  }

  /**
   * The run that is settled under a lease: its own, or one of the same process that ended under an earlier lease and could not
   * be settled before that was over.
   */
  run(fence: number): SimulatedRun | undefined {
    const own = this.runs.findLast((run) => (run.settledUnder ?? run.fence) === fence)
    const holder = this.leases.find((lease) => lease.fence === fence)?.process
    return own ?? this.runs.findLast((run) => run.fence < fence && run.process === holder && isUnsettled(run))
  }
}

/** It records a run beside what comes of it. */
function tellsOfRun(effect: Effect): boolean {
  return effect.do === 'recordAttempt'
}

/** It is over, and the backend has not taken what it came to. A handler that ran out of time is over before it ends. */
function isUnsettled({ outcome, isOffered, settledNth }: SimulatedRun): boolean {
  return (outcome !== undefined || isOffered === true) && settledNth === undefined
}

/** It asked to run again later: that is not kept beyond its lease, since it runs again in any case. */
function isDeferral({ outcome }: SimulatedRun): boolean {
  return outcome?.kind === 'threw' && outcome.error instanceof WorkDelayError
}

/** What is known of one process. */
export interface ProcessHistory {
  /** How long its leases live without a heartbeat. */
  readonly leaseMs: Ms
  /** When it last went on after having stood still. */
  awakeMs: Ms
  /** When it crashed or had stopped. */
  goneMs?: Ms
}

/** One wait for an item or a group. */
export interface Wait {
  readonly kind: 'result' | 'group'
  readonly id: string
  readonly groupId: string
  readonly process: string
  /** It may stop waiting by itself. */
  readonly isLimited: boolean
  readonly sinceMs: Ms
  settled?: { readonly ms: Ms; readonly value: unknown } | { readonly ms: Ms; readonly error: unknown }
}

/**
 * What happened, kept outside of the system: who was promised what, which handlers ran under which lease, and what the
 * backend let happen. The invariants compare the system's own account with this one.
 */
export class History {
  readonly items = new Map<string, ItemHistory>()
  readonly waits: Wait[] = []
  /** How often each group was closed. */
  readonly closings = new Map<string, number>()
  /** How often each group was reported closed. */
  readonly groupsDone = new Map<string, number>()
  readonly processes = new Map<string, ProcessHistory>()
  /** The occurrences of each schedule that were fired, in order. Known only on native ground. */
  readonly fires = new Map<string, number[]>()
  readonly broken: BrokenPromiseError[] = []
  /** Every commit of the backend is seen. Not so on plain ports, where a settlement is many calls. */
  readonly isExact: boolean
  /** Groups close when nothing in them is open. On minimal ports a crash between a marker and its count puts that off. */
  readonly areCountsExact: boolean
  readonly controls = new ControlHistory()
  readonly #gates = new GateHistory(this.items)
  readonly #now: () => Ms
  #settled = 0

  constructor(ground: Ground, now: () => Ms) {
    this.isExact = ground === 'native'
    this.areCountsExact = ground !== 'minimal'
    this.#now = now
  }

  item(id: string): ItemHistory {
    let item = this.items.get(id)
    if (item === undefined) {
      item = new ItemHistory(id)
      this.items.set(id, item)
    }
    return item
  }

  /** A promise that broke while the world was going on: it ends there. */
  breaks(promise: string, what: string): void {
    this.broken.push(new BrokenPromiseError(promise, what))
  }

  offered(id: string, groupId?: string): void {
    const item = this.item(id)
    item.offeredMs ??= this.#now()
    item.groupId ??= groupId
  }

  scheduled(id: string): void {
    this.offered(id, id)
    this.item(id).isScheduled = true
  }

  accepted(id: string): void {
    this.item(id).acceptedMs ??= this.#now()
  }

  refused(id: string, error: unknown): void {
    this.item(id).refusals.push(error)
  }

  waitBegan(wait: Omit<Wait, 'sinceMs' | 'settled'>): Wait {
    const waiting: Wait = { ...wait, sinceMs: this.#now() }
    this.waits.push(waiting)
    return waiting
  }

  waitEnded(wait: Wait, how: { readonly value: unknown } | { readonly error: unknown }): void {
    wait.settled = { ms: this.#now(), ...how }
  }

  /** A process reported a closed group. */
  groupDone(groupId: string): void {
    const times = (this.groupsDone.get(groupId) ?? 0) + 1
    this.groupsDone.set(groupId, times)
    if (times > 1 + this.#reopenings(groupId)) {
      this.breaks('a group is reported done once', `${groupId} was reported done ${times} times`)
    }
  }

  // ── handlers ──

  started(run: Omit<SimulatedRun, 'startedMs'>): SimulatedRun {
    const item = this.item(run.id)
    const began: SimulatedRun = { ...run, startedMs: this.#now() }
    this.#checkStart(item, began)
    item.runs.push(began)
    return began
  }

  /** As `started`, in a batch, whose items may run twice under one lease. */
  startedInBatch(run: Omit<SimulatedRun, 'startedMs'>): SimulatedRun {
    const before = this.item(run.id).runs.find(({ fence, process }) => fence === run.fence && process === run.process)
    if (before?.endedMs === undefined) return this.started(run)
    before.isRepeated = true
    return before
  }

  ended(run: SimulatedRun, outcome: NonNullable<SimulatedRun['outcome']>): void {
    run.endedMs = this.#now()
    run.outcome = outcome
  }

  notified(run: SimulatedRun, reason: unknown): void {
    run.notifiedMs = this.#now()
    const { code } = (reason ?? {}) as { readonly code?: unknown }
    if (typeof code === 'string') run.notifiedWhy = code
  }

  #checkStart(item: ItemHistory, run: SimulatedRun): void {
    const who = `${run.id} (fence ${run.fence}) on ${run.process}`
    if (item.runs.some(({ fence }) => fence === run.fence)) {
      this.breaks('a lease runs its handler once', `${who} was started twice under the same lease`)
    }
    if (!this.isExact) return
    const fault = this.controls.faultOfStart(run.id, run.fence)
    if (fault !== undefined) this.breaks('what was cancelled is not begun again', fault)
    if (item.hasEnded) this.breaks('what has ended does not run again', `${who} was started after its end`)
    else if (item.fence !== run.fence) {
      this.breaks(
        'a handler starts only under a lease that holds',
        `${who} was started while fence ${item.fence} held it`,
      )
    }
    const before = item.runs.at(-1)
    // A run that knows that its lease has ended can settle nothing.
    const wasNotified = (before?.notifiedMs ?? Infinity) <= (before?.endedMs ?? 0)
    const isSame =
      before?.process === run.process &&
      before.attempt === run.attempt &&
      item.leases.every(({ fence, process }) => fence <= before.fence || process === run.process)
    if (
      isSame &&
      isUnsettled(before) &&
      before.isOffered === true &&
      before.isRefused !== true &&
      before.isPutOff !== true &&
      !isDeferral(before) &&
      !wasNotified
    ) {
      this.breaks(
        'a process does not run again what it has run',
        `${who} was started although the run under fence ${before.fence} had ended there`,
      )
    }
    if (run.attempt !== 1 + item.spent) {
      this.breaks(
        'only settled failures spend attempts',
        `${who} runs as attempt ${run.attempt}, after ${item.spent} settled failures`,
      )
    }
  }

  // ── the backend ──

  leased(claimed: ClaimedItem, process: string): void {
    const { lease } = claimed
    const fault = this.isExact ? this.controls.faultOfLease(claimed) : undefined
    if (fault !== undefined) this.breaks('nothing paused is handed out', fault)
    const { leases, fence: last } = this.item(lease.id)
    if (last !== undefined && lease.fence <= last) {
      this.breaks('fences rise', `${lease.id} was leased with fence ${lease.fence} after ${last}`)
    }
    leases.push({ fence: lease.fence, ms: this.#now(), process })
  }

  /** A process sends what came of a run. */
  outcomeSent({ guard }: Settlement): void {
    const run = guard.by === 'lease' ? this.item(guard.lease.id).run(guard.lease.fence) : undefined
    if (run !== undefined) run.isOffered = true
  }

  committed({ guard, effects }: Settlement, result: CommitResult): void {
    if (result.kind === 'stale' && guard.by === 'lease') {
      const run = this.item(guard.lease.id).run(guard.lease.fence)
      if (run !== undefined) run.isRefused = true
    }
    if (result.kind !== 'applied') return
    const by = guard.by === 'lease' ? guard.lease : undefined
    if (by !== undefined) {
      const item = this.item(by.id)
      if (item.fence !== by.fence) {
        this.breaks(
          'a stale lease settles nothing',
          `${by.id} was settled with fence ${by.fence}, held by ${item.fence}`,
        )
      }
      item.settlements += 1
      const ran = item.run(by.fence)
      // What ends without a run is not the outcome of an earlier one.
      const run = ran?.fence === by.fence || effects.some(tellsOfRun) ? ran : undefined
      this.#settled += 1
      const isPutBack = effects.some((effect) => effect.do === 'release')
      if (run !== undefined && isPutBack) run.isPutOff = true
      if (run !== undefined && !isPutBack) {
        run.settledNth = this.#settled
        if (run.fence !== by.fence) run.settledUnder = by.fence
        // Only a run that was asked to stop may be settled as something else than it returned; or a run that timed out
        // in a process that stood still and could not be notified.
        const tookMs = (run.endedMs ?? this.#now()) - run.startedMs
        run.hasRunOut = tookMs >= (item.runTimeout ?? Number.POSITIVE_INFINITY)
        const wasOver = run.notifiedMs !== undefined || run.hasRunOut
        if (wasOver && !effects.some((effect) => effect.do === 'complete')) run.isOverruled = true
      }
    }
    for (const effect of effects) {
      this.controls.applied(effect, guard, (id) => this.item(id).fence, this.#now())
      this.#applied(effect, by)
    }
    const pushed =
      guard.by === 'schedule' ? effects.flatMap((effect) => (effect.do === 'enqueue' ? [effect.item.id] : [])) : []
    for (const id of pushed) this.accepted(id)
    if (guard.by === 'schedule' && guard.at !== undefined && pushed.length > 0) this.#fired(guard.name, guard.at)
    // Work that came too late for the move of its schedule is enqueued by itself, under the id of its occurrence.
    if (guard.by === 'absent') this.#firedLate(guard.id)
    for (const { groupId } of result.closed) this.#closed(groupId)
  }

  #applied(effect: Effect, by: { readonly id: string; readonly fence: number } | undefined): void {
    switch (effect.do) {
      case 'enqueue': {
        const item = this.item(effect.item.id)
        item.groupId ??= effect.item.groupId
        item.type ??= effect.item.type
        item.runTimeout ??= effect.item.runTimeout
        item.bornOf ??= by?.id
        this.#gates.born(item)
        if (effect.leasedTo !== undefined) item.leases.push({ fence: 1, ms: this.#now() })
        return
      }
      case 'retry':
        if (effect.reason === 'retry') this.item(effect.id).spent += 1
        return
      case 'openGate':
        this.#gates.opened(effect)
        return
      case 'complete':
      case 'deadLetter':
        this.#checkGate(effect)
        this.#ended(this.item(effect.id), { ms: this.#now(), fence: by?.fence, ending: effect.ending })
        return
      case 'redrive': {
        const item = this.item(effect.id)
        item.reopened += 1
        item.spent = 0
        return
      }
      case 'delete':
        this.items.delete(effect.id)
        return
      default:
        return // Counters, gates and signals are compared at the end.
    }
  }

  #firedLate(id: string): void {
    if (this.items.get(id)?.isScheduled !== true) return
    const [, name, at] = /^(.+)@(.+?)$/.exec(id) ?? []
    if (name !== undefined && at !== undefined) this.#fired(name, Date.parse(at))
  }

  #fired(name: string, at: number): void {
    const fires = this.fires.get(name) ?? []
    this.fires.set(name, fires)
    if (fires.includes(at)) this.breaks('an occurrence fires once', `${name} fired twice for ${at}`)
    fires.push(at)
  }

  #ended(item: ItemHistory, end: End): void {
    if (item.hasEnded) this.breaks('every item ends once', `${item.id} ended again (${end.ending}, fence ${end.fence})`)
    item.ends.push(end)
  }

  #checkGate(effect: Extract<Effect, { readonly do: 'complete' | 'deadLetter' }>): void {
    const error = effect.do === 'deadLetter' ? effect.error : undefined
    const fault = this.#gates.fault(this.item(effect.id), effect.ending, error)
    if (fault !== undefined)
      this.breaks('a gate opens when its condition is met, and gives up only when it cannot be', fault)
  }

  #closed(groupId: string): void {
    const times = (this.closings.get(groupId) ?? 0) + 1
    this.closings.set(groupId, times)
    if (times > 1 + this.#reopenings(groupId))
      this.breaks('a group closes once', `${groupId} was closed ${times} times`)
  }

  #reopenings(groupId: string): number {
    let count = 0
    for (const item of this.items.values()) if (item.groupId === groupId) count += item.reopened
    return count
  }
}
