import { MillraceError } from '../../core/error.js'
import { mintingIds } from '../../core/ids.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import { systemClock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import { withTimeout } from '../../core/time/with-timeout.js'
import { unreachable } from '../../core/unreachable.js'
import type { ScheduleRecord } from '../../ports/ledger.js'
import { ItemRefusedError } from '../enqueue/enqueue.js'
import type { ResolvedItem } from '../enqueue/resolve-item.js'
import { NEVER, type Schedule } from './config.js'
import { dueAt, idsOf, isMissed, isOthersTurn, turnAt } from './occurrence.js'
import { type Made, refusal, type ScheduleStore } from './schedule-store.js'

/** How soon it checks again when another process is about to fire, or after a failure. */
const SOON_MS: Ms = 1_000
const LONGEST_WAIT_MS: Ms = 15_000
/** How long to wait for `next` and then for `run`: together less than a claim lasts, so no other process starts meanwhile. */
const NEXT_MS: Ms = 25_000
const RUN_MS: Ms = 60_000
/** The longest sleep. A machine may be suspended without its timers noticing; then it is late by no more than this. */
const LONGEST_SLEEP_MS: Ms = 60_000

/** The work that `run` returned for an occurrence: kept until it is written, because `run` is called once. */
interface Fired {
  readonly at: At
  readonly made: Made | undefined
}

/**
 * One schedule in one process. It sleeps until the stored time of the next occurrence, and then competes with the other processes:
 * the one that claims the occurrence calls `run`, and moves the record on in the same step that enqueues the work. The others see
 * that the record has moved; if it has not, because that process died, they try again.
 */
export class Ticker {
  readonly #schedule: Schedule
  readonly #store: ScheduleStore
  #isOn = false
  /** It was stopped. A schedule that has come to its end is neither on nor off. */
  #isOff = false
  #isFirst = true
  #cancelTimer: () => void = () => undefined
  #checking: Promise<void> | undefined
  /** When there is something to do, as far as it is known. */
  #wakeAt: At = 0
  /** When it went to sleep, by both clocks. */
  #slept = { wall: 0, monotonic: 0 }
  /** The occurrence that it has seen due, and whether that was missed. */
  #seen: { readonly at: At; wasMissed: boolean } | undefined
  #fired: Fired | undefined
  /** The next occurrence by our rule, as last stored: a process with another rule may have replaced it. */
  #own: At | undefined
  #setbacks = 0

  constructor(schedule: Schedule, store: ScheduleStore) {
    const { clock } = store.context.o
    const late = (): never => {
      throw tooSlow(schedule.name)
    }
    // A `next` that never answers would silently end its schedule.
    this.#schedule = { ...schedule, next: (at) => withTimeout(clock, NEXT_MS, schedule.next(at), late) }
    this.#store = store
  }

  on(): void {
    if (this.#isOn) return
    this.#isOn = true
    this.#isOff = false
    this.#isFirst = true
    this.#wakeAt = 0
    this.#sleep(0)
  }

  /** Resolves when nothing of it runs any more. */
  off(): Promise<void> {
    this.#isOn = false
    this.#isOff = true
    this.#cancelTimer()
    return this.#checking ?? Promise.resolve()
  }

  #sleep(ms: Ms): void {
    this.#cancelTimer()
    if (!this.#isOn || this.#checking !== undefined) return
    const { clock } = this.#store.context.o
    // The timers of a custom clock may not follow its time, so sleeps are short.
    const longest = clock.isReal === true && clock !== systemClock ? SOON_MS : LONGEST_SLEEP_MS
    this.#slept = { wall: clock.now(), monotonic: clock.monotonic() }
    this.#cancelTimer = clock.after(Math.min(Math.max(0, ms), longest), () => this.#wake())
  }

  #wake(): void {
    if (!this.#isOn || this.#checking !== undefined) return
    const { context } = this.#store
    const left = this.#wakeAt - this.#store.now()
    const { wall, monotonic } = this.#slept
    const hasStoodStill = Math.abs(context.o.clock.now() - wall - (context.o.clock.monotonic() - monotonic)) > SOON_MS
    if (left > 0 && !hasStoodStill) {
      this.#sleep(left)
      return
    }
    let wait: Ms | undefined = SOON_MS
    this.#checking = this.#check()
      .then(
        (ms) => {
          wait = ms
        },
        (error) => {
          context.failed(error, 'queue')
          wait = this.#setback()
        },
      )
      .finally(() => {
        this.#checking = undefined
        // It has come to its end, and may be started again later.
        if (wait === undefined) this.#isOn = false
        else {
          this.#wakeAt = this.#store.now() + wait
          this.#sleep(wait)
        }
      })
  }

  /** Waits longer each time, until something has moved. */
  #setback(): Ms {
    this.#setbacks += 1
    return setbackMs(this.#setbacks)
  }

  /** Does what is due now. Returns how long until the next check; undefined: never. */
  async #check(): Promise<Ms | undefined> {
    const { context } = this.#store
    // The backend's time is the fleet's. This process may have been suspended meanwhile.
    if (context.ledger.atomic) await context.askTime()
    const record = await this.#store.record(this.#schedule.name)
    if (record !== undefined && this.#isLeftToOthers(record)) return SOON_MS
    const isFirst = this.#isFirst
    const begun = await this.#begin(record, isFirst)
    this.#isFirst = false
    if (begun !== 'agreed') return begun
    return record === undefined ? SOON_MS : this.#follow(record)
  }

  /** Taking over a record of another rule just when it is due would skip its occurrence, which another process may fire. */
  #isLeftToOthers({ spec, nextAt }: ScheduleRecord): boolean {
    if (spec === this.#schedule.spec || nextAt === this.#own) return false
    return isOthersTurn(nextAt, this.#store.now())
  }

  /** Writes the record if there is none that this schedule can follow. */
  async #begin(record: ScheduleRecord | undefined, isFirst: boolean): Promise<Ms | undefined | 'agreed'> {
    const { spec } = this.#schedule
    const isOver = record !== undefined && record.nextAt >= NEVER
    const isOwn = record !== undefined && record.spec === spec
    if (record !== undefined && !isOver && isOwn && !isFirst) return 'agreed'
    const now = this.#store.now()
    const isInBoth = record?.nextAt === this.#own
    if (record !== undefined && !isOver && (isOwn || isInBoth) && record.nextAt <= now) return 'agreed'
    const displaced = record !== undefined && !isOver && !isOwn ? await this.#displaced(now) : undefined
    const nextAt = displaced ?? (await this.#schedule.next(now))
    if (nextAt === undefined && (record === undefined || isOver)) return undefined
    if (record !== undefined && !isOver) {
      const { nextAt: agreed } = record
      // Another rule, of an earlier or a later version of this program: each version writes its own when it starts, and when it
      // would be due. The same rule, but a `next` whose code has changed: the earlier time counts.
      const isEarlier = nextAt !== undefined && nextAt < agreed - SOON_MS
      const isOurs = isOwn ? isEarlier : nextAt !== agreed && (isFirst || isEarlier || agreed <= now)
      if (nextAt === agreed) this.#own = agreed
      if (!isOurs && displaced === undefined) return 'agreed'
    }
    const result = await this.#store.move(this.#schedule, record?.nextAt, nextAt ?? NEVER)
    if (result.kind === 'failed') throw result.error
    if (result.kind === 'refused') throw refusal(result)
    if (result.kind !== 'applied') return this.#setback()
    this.#setbacks = 0
    this.#own = nextAt
    if (nextAt === undefined) return undefined
    return Math.max(0, dueAt(this.#schedule, nextAt) - this.#store.now())
  }

  /** Our occurrence that is due, where another rule has replaced the record: unless another process has fired it. */
  async #displaced(now: At): Promise<At | undefined> {
    const own = this.#own
    if (own === undefined || dueAt(this.#schedule, own) > now) return undefined
    if (!isMissed(this.#schedule, own, now) && (await this.#store.claim(this.#schedule.name, own))) return own
    this.#own = undefined
    return undefined
  }

  async #follow({ nextAt: at, spec }: ScheduleRecord): Promise<Ms | undefined> {
    const now = this.#store.now()
    if (spec === this.#schedule.spec) this.#own = at
    const left = dueAt(this.#schedule, at) - now
    if (left > 0) {
      this.#setbacks = 0
      return left
    }
    if (this.#seen?.at !== at) this.#seen = { at, wasMissed: isMissed(this.#schedule, at, now) }
    if (this.#fired?.at !== at) {
      // It was written after all, though the answer was lost.
      if (this.#fired?.made !== undefined) this.#store.ended(this.#fired.made)
      this.#fired = undefined
    }
    // Stopped meanwhile, before `run` was called: it is left to other processes.
    if (!this.#isOn && this.#fired === undefined) return SOON_MS
    if (!(await this.#store.claim(this.#schedule.name, at))) {
      // Another process fires it. If that process dies, it was started in time, and is not missed.
      this.#seen.wasMissed = false
      return this.#setback()
    }
    return this.#fire(at, now, this.#seen.wasMissed)
  }

  async #fire(at: At, now: At, wasMissed: boolean): Promise<Ms | undefined> {
    const schedule = this.#schedule
    // First, because a failing `next` must not cost an occurrence: the same one is tried again.
    const { fires, nextAt } = await turnAt(schedule, at, now, wasMissed)
    if (fires !== undefined) this.#fired ??= { at, made: await this.#run(fires) }
    const made = this.#fired?.made
    const item = made === undefined ? undefined : this.#item(made)
    // The error is reported once.
    if (made !== undefined && item === undefined) this.#fired = { at, made: undefined }
    let result = await this.#store.move(schedule, at, nextAt ?? NEVER, item)
    if (result.kind === 'refused') {
      // It can never be enqueued; the schedule goes on without it.
      const refused = refusal(result)
      this.#store.context.failed(refused, 'queue')
      if (made !== undefined) this.#store.ended(made, refused)
      this.#fired = { at, made: undefined }
      result = await this.#store.move(schedule, at, nextAt ?? NEVER)
    }
    switch (result.kind) {
      case 'failed':
        throw result.error
      case 'refused':
        throw refusal(result)
      case 'applied':
        if (this.#fired?.made !== undefined) this.#store.ended(this.#fired.made)
        this.#fired = undefined
        this.#setbacks = 0
        this.#own = nextAt
        if (nextAt === undefined) return undefined
        return Math.max(0, dueAt(schedule, nextAt) - this.#store.now())
      case 'stale':
      case 'repeated':
      case 'conflict':
        // Written by an earlier try whose answer was lost, or by another process: the record shows which.
        return this.#setback()
      default:
        return unreachable(result)
    }
  }

  /** Calls `run`. A failure is reported, and ends only this occurrence. */
  async #run(at: At): Promise<Made | undefined> {
    const { name, run } = this.#schedule
    const { context } = this.#store
    const asked = mintingIds(idsOf(name, at), () => run(Object.freeze({ name, at }))).then((work) =>
      work === undefined || work === null ? undefined : this.#store.made(work),
    )
    const returned = asked.catch((error: unknown) => {
      context.failed(error, 'queue')
      return undefined
    })
    const made = await withTimeout(context.o.clock, RUN_MS, returned, () => 'late' as const)
    if (made !== 'late') return made
    // The next occurrence does not wait for it; its work is enqueued when it comes.
    void returned.then((late) => (late === undefined ? undefined : this.#enqueueLate(late)))
    return undefined
  }

  /** Its record has moved on, so no other process will enqueue it. Its id makes it harmless to repeat this, until a stop. */
  async #enqueueLate(made: Made): Promise<void> {
    const { context } = this.#store
    for (let setbacks = 1; ; setbacks += 1) {
      const item = this.#item(made)
      if (item === undefined) return
      try {
        await this.#store.enqueue(item)
        this.#store.ended(made)
        return
      } catch (error) {
        context.failed(error, 'queue')
        if (!(error instanceof ItemRefusedError)) await context.o.clock.sleep(setbackMs(setbacks))
        if (error instanceof ItemRefusedError || this.#isOff) {
          this.#store.ended(made, error)
          return
        }
      }
    }
  }

  /** Undefined: it can never be enqueued, which is reported. */
  #item(made: Made): ResolvedItem | undefined {
    try {
      return this.#store.item(made, this.#schedule.options)
    } catch (error) {
      this.#store.context.failed(error, 'queue')
      this.#store.ended(made, error)
      return undefined
    }
  }
}

/** Longer each time, up to a quarter of a minute. */
function setbackMs(setbacks: number): Ms {
  return doublingDelay(setbacks - 1, { baseMs: SOON_MS, maxMs: LONGEST_WAIT_MS })
}

function tooSlow(name: string): MillraceError {
  return new MillraceError(
    'NEXT_TIMEOUT',
    `schedule "${name}": next(now) did not answer within ${NEXT_MS} ms. It is called again; answer faster.`,
    { facts: { name, ms: NEXT_MS } },
  )
}
