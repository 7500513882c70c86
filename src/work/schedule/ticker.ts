import { systemClock } from '../../core/clock.js'
import { MillraceError } from '../../core/error.js'
import { mintingIds } from '../../core/ids.js'
import type { At, Ms } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ScheduleRecord } from '../../ports/ledger.js'
import type { ResolvedItem } from '../resolve-item.js'
import { RefusedError } from '../submitter.js'
import { NEVER, type Schedule } from './config.js'
import { noLongerThan } from './no-longer-than.js'
import { dueAt, idsOf, isMissed, isOthersTurn, turnAt } from './occurrence.js'
import { type Made, refusal, type ScheduleDesk } from './schedule-desk.js'

/** How soon it looks again when another process is about to fire, or when something failed. */
const SOON_MS: Ms = 1_000
const LONGEST_WAIT_MS: Ms = 15_000
/** How long `next` and then `run` are waited for. Together less than a claim lasts, so that nobody else begins meanwhile. */
const NEXT_MS: Ms = 25_000
const RUN_MS: Ms = 60_000
/** The longest sleep. A machine may stand still without its timers noticing; then it is late by no more than this. */
const LONGEST_SLEEP_MS: Ms = 60_000

/** What `run` has made of an occurrence: kept until it is written, so that `run` is called once. */
interface Fired {
  readonly at: At
  readonly made: Made | undefined
}

/**
 * One schedule in one process. It sleeps until the time that the fleet has agreed on, and then is one of those who try to fire:
 * whoever claims the occurrence calls `run`, and moves the record on in the same step that enqueues the work. The others see that
 * it has moved; if it has not, because that one died, they try again.
 */
export class Ticker {
  readonly #schedule: Schedule
  readonly #desk: ScheduleDesk
  #isOn = false
  /** It was told to stop. One that has come to its end is not on, but not off either. */
  #isOff = false
  #isFirst = true
  #cancelTimer: () => void = () => undefined
  #looking: Promise<void> | undefined
  /** When there is something to do, as far as it is known. */
  #wakeAt: At = 0
  /** When it went to sleep, by both clocks. */
  #slept = { wall: 0, monotonic: 0 }
  /** The occurrence it has seen due, and whether it came too late for it. */
  #seen: { readonly at: At; wasMissed: boolean } | undefined
  #fired: Fired | undefined
  /** The next occurrence by our own rule, as last agreed: those who have another rule may have put theirs in its place. */
  #own: At | undefined
  #setbacks = 0

  constructor(schedule: Schedule, desk: ScheduleDesk) {
    const { clock } = desk.shared.o
    const late = (): never => {
      throw tooSlow(schedule.name)
    }
    // A `next` that never answers would end its schedule without a word.
    this.#schedule = { ...schedule, next: (at) => noLongerThan(clock, NEXT_MS, schedule.next(at), late) }
    this.#desk = desk
  }

  on(): void {
    if (this.#isOn) return
    this.#isOn = true
    this.#isOff = false
    this.#isFirst = true
    this.#wakeAt = 0
    this.#sleep(0)
  }

  /** Resolves when nothing of it goes on any more. */
  off(): Promise<void> {
    this.#isOn = false
    this.#isOff = true
    this.#cancelTimer()
    return this.#looking ?? Promise.resolve()
  }

  #sleep(ms: Ms): void {
    this.#cancelTimer()
    if (!this.#isOn || this.#looking !== undefined) return
    const { clock } = this.#desk.shared.o
    // Timers that do not follow the clock they are used with cannot be slept on for long.
    const longest = clock.isReal === true && clock !== systemClock ? SOON_MS : LONGEST_SLEEP_MS
    this.#slept = { wall: clock.now(), monotonic: clock.monotonic() }
    this.#cancelTimer = clock.after(Math.min(Math.max(0, ms), longest), () => this.#wake())
  }

  #wake(): void {
    if (!this.#isOn || this.#looking !== undefined) return
    const { shared } = this.#desk
    const left = this.#wakeAt - this.#desk.now()
    const { wall, monotonic } = this.#slept
    const hasStoodStill = Math.abs(shared.o.clock.now() - wall - (shared.o.clock.monotonic() - monotonic)) > SOON_MS
    if (left > 0 && !hasStoodStill) {
      this.#sleep(left)
      return
    }
    let wait: Ms | undefined = SOON_MS
    this.#looking = this.#look()
      .then(
        (ms) => {
          wait = ms
        },
        (error) => {
          shared.failed(error, 'queue')
          wait = this.#setback()
        },
      )
      .finally(() => {
        this.#looking = undefined
        // It has come to its end, and may be started again.
        if (wait === undefined) this.#isOn = false
        else {
          this.#wakeAt = this.#desk.now() + wait
          this.#sleep(wait)
        }
      })
  }

  /** Waits longer each time, and no longer once something has moved. */
  #setback(): Ms {
    this.#setbacks += 1
    return setbackMs(this.#setbacks)
  }

  /** Does what is to be done now. How long until there is something to do; undefined: never. */
  async #look(): Promise<Ms | undefined> {
    const { shared } = this.#desk
    // The backend's time is the fleet's. It may have gone on while this process stood still.
    if (shared.ledger.atomic) await shared.askTime()
    const record = await this.#desk.record(this.#schedule.name)
    if (record !== undefined && this.#isLeftToOthers(record)) return SOON_MS
    const isFirst = this.#isFirst
    const begun = await this.#begin(record, isFirst)
    this.#isFirst = false
    if (begun !== 'agreed') return begun
    return record === undefined ? SOON_MS : this.#follow(record)
  }

  /** To take over a record of another rule just when it is due would cost its occurrence, so long as there is somebody to fire. */
  #isLeftToOthers({ spec, nextAt }: ScheduleRecord): boolean {
    if (spec === this.#schedule.spec || nextAt === this.#own) return false
    return isOthersTurn(nextAt, this.#desk.now())
  }

  /** Writes the record if there is none that this schedule could follow. */
  async #begin(record: ScheduleRecord | undefined, isFirst: boolean): Promise<Ms | undefined | 'agreed'> {
    const { spec } = this.#schedule
    const isOver = record !== undefined && record.nextAt >= NEVER
    const isOwn = record !== undefined && record.spec === spec
    if (record !== undefined && !isOver && isOwn && !isFirst) return 'agreed'
    const now = this.#desk.now()
    const isInBoth = record?.nextAt === this.#own
    if (record !== undefined && !isOver && (isOwn || isInBoth) && record.nextAt <= now) return 'agreed'
    const displaced = record !== undefined && !isOver && !isOwn ? await this.#displaced(now) : undefined
    const nextAt = displaced ?? (await this.#schedule.next(now))
    if (nextAt === undefined && (record === undefined || isOver)) return undefined
    if (record !== undefined && !isOver) {
      const { nextAt: agreed } = record
      // Another rule, of an earlier or a later version of this program: each asserts its own when it begins, and when it would
      // be due. The same rule, but code behind `next` that has changed: the earlier time counts.
      const isEarlier = nextAt !== undefined && nextAt < agreed - SOON_MS
      const isOurs = isOwn ? isEarlier : nextAt !== agreed && (isFirst || isEarlier || agreed <= now)
      if (nextAt === agreed) this.#own = agreed
      if (!isOurs && displaced === undefined) return 'agreed'
    }
    const result = await this.#desk.move(this.#schedule, record?.nextAt, nextAt ?? NEVER)
    if (result.kind === 'failed') throw result.error
    if (result.kind === 'refused') throw refusal(result)
    if (result.kind !== 'applied') return this.#setback()
    this.#setbacks = 0
    this.#own = nextAt
    if (nextAt === undefined) return undefined
    return Math.max(0, dueAt(this.#schedule, nextAt) - this.#desk.now())
  }

  /** Our own occurrence that is due, where the record has come to speak of another rule's: unless somebody has fired it. */
  async #displaced(now: At): Promise<At | undefined> {
    const own = this.#own
    if (own === undefined || dueAt(this.#schedule, own) > now) return undefined
    if (!isMissed(this.#schedule, own, now) && (await this.#desk.claim(this.#schedule.name, own))) return own
    this.#own = undefined
    return undefined
  }

  async #follow({ nextAt: at, spec }: ScheduleRecord): Promise<Ms | undefined> {
    const now = this.#desk.now()
    if (spec === this.#schedule.spec) this.#own = at
    const left = dueAt(this.#schedule, at) - now
    if (left > 0) {
      this.#setbacks = 0
      return left
    }
    if (this.#seen?.at !== at) this.#seen = { at, wasMissed: isMissed(this.#schedule, at, now) }
    if (this.#fired?.at !== at) {
      // Written after all, though nobody said so here.
      if (this.#fired?.made !== undefined) this.#desk.ended(this.#fired.made)
      this.#fired = undefined
    }
    // Stopped meanwhile, and nothing has begun: it is left to the others.
    if (!this.#isOn && this.#fired === undefined) return SOON_MS
    if (!(await this.#desk.claim(this.#schedule.name, at))) {
      // Somebody is at it. Should he die, it was begun in time, and is not missed.
      this.#seen.wasMissed = false
      return this.#setback()
    }
    return this.#fire(at, now, this.#seen.wasMissed)
  }

  async #fire(at: At, now: At, wasMissed: boolean): Promise<Ms | undefined> {
    const schedule = this.#schedule
    // First of all, so that a failing `next` does not cost an occurrence: it is tried again with the same one.
    const { fires, nextAt } = await turnAt(schedule, at, now, wasMissed)
    if (fires !== undefined) this.#fired ??= { at, made: await this.#run(fires) }
    const made = this.#fired?.made
    const item = made === undefined ? undefined : this.#item(made)
    // It is reported once.
    if (made !== undefined && item === undefined) this.#fired = { at, made: undefined }
    let result = await this.#desk.move(schedule, at, nextAt ?? NEVER, item)
    if (result.kind === 'refused') {
      // It can never be enqueued, and the schedule goes on without it.
      const refused = refusal(result)
      this.#desk.shared.failed(refused, 'queue')
      if (made !== undefined) this.#desk.ended(made, refused)
      this.#fired = { at, made: undefined }
      result = await this.#desk.move(schedule, at, nextAt ?? NEVER)
    }
    switch (result.kind) {
      case 'failed':
        throw result.error
      case 'refused':
        throw refusal(result)
      case 'applied':
        if (this.#fired?.made !== undefined) this.#desk.ended(this.#fired.made)
        this.#fired = undefined
        this.#setbacks = 0
        this.#own = nextAt
        if (nextAt === undefined) return undefined
        return Math.max(0, dueAt(schedule, nextAt) - this.#desk.now())
      case 'stale':
      case 'repeated':
      case 'conflict':
        // Written by an earlier try whose answer was lost, or by another process. The record tells.
        return this.#setback()
      default:
        return unreachable(result)
    }
  }

  /** Asks the user what to enqueue. A failure is reported, and is the end of this occurrence alone. */
  async #run(at: At): Promise<Made | undefined> {
    const { name, run } = this.#schedule
    const { shared } = this.#desk
    const asked = mintingIds(idsOf(name, at), () => run(Object.freeze({ name, at }))).then((work) =>
      work === undefined || work === null ? undefined : this.#desk.made(work),
    )
    const told = asked.catch((error: unknown) => {
      shared.failed(error, 'queue')
      return undefined
    })
    const made = await noLongerThan(shared.o.clock, RUN_MS, told, () => 'late' as const)
    if (made !== 'late') return made
    // The next occurrence does not wait for it; what it returns is enqueued when it comes.
    void told.then((late) => (late === undefined ? undefined : this.#enqueueLate(late)))
    return undefined
  }

  /** Its record has moved on, and nobody else will enqueue it. Its id makes it harmless to try again, until this is off. */
  async #enqueueLate(made: Made): Promise<void> {
    const { shared } = this.#desk
    for (let setbacks = 1; ; setbacks += 1) {
      const item = this.#item(made)
      if (item === undefined) return
      try {
        await this.#desk.enqueue(item)
        this.#desk.ended(made)
        return
      } catch (error) {
        shared.failed(error, 'queue')
        if (!(error instanceof RefusedError)) await shared.o.clock.sleep(setbackMs(setbacks))
        if (error instanceof RefusedError || this.#isOff) {
          this.#desk.ended(made, error)
          return
        }
      }
    }
  }

  /** Undefined: it can never be enqueued. That is reported. */
  #item(made: Made): ResolvedItem | undefined {
    try {
      return this.#desk.item(made, this.#schedule.options)
    } catch (error) {
      this.#desk.shared.failed(error, 'queue')
      this.#desk.ended(made, error)
      return undefined
    }
  }
}

/** Longer each time, up to a quarter of a minute. */
function setbackMs(setbacks: number): Ms {
  return Math.min(LONGEST_WAIT_MS, SOON_MS * 2 ** (setbacks - 1))
}

function tooSlow(name: string): MillraceError {
  return new MillraceError(
    'NEXT_TIMEOUT',
    `schedule "${name}": next(now) did not answer within ${NEXT_MS} ms. It is asked again; answer sooner, from what is at hand.`,
    { facts: { name, ms: NEXT_MS } },
  )
}
