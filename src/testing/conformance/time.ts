import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { type Clock, systemClock } from '../../core/time/clock.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import { FakeClock } from '../fake-clock.js'

/** The time of one clause: a fake clock that the clause moves, or real time where the backend's own cannot be replaced. */
export interface TestTime {
  readonly clock: Clock
  /** Nothing moves but by `pass`: boundaries can be met to the millisecond. */
  readonly exact: boolean
  /** Clauses measure in ticks: a second of fake time, or as much real time as the suite was given. */
  ms(ticks: number): Ms
  pass(ms: Ms): Promise<void>
  /** Waits in real time, a moment, for what travels outside the clock (a server's reply, a notification). */
  eventually(isTrue: () => MaybePromise<boolean>): Promise<boolean>
  /** Leaves room for something that must not happen. */
  quiet(): Promise<void>
  /**
   * Waits for work that may itself wait on the clock (a lock, a pause between tries): when it stands still, time moves to the
   * next timer. Where the suite has no `stallMs`, and in real time, it only waits.
   */
  through<T>(work: Promise<T>): Promise<T>
}

/** How a suite lives by time: by a clock that it moves, or by that of a server. */
export interface TimeOptions {
  /** The backend's time cannot be replaced: clauses really wait. Default false. */
  readonly realTime?: boolean
  /** Real length of a tick where `realTime` is set. A clause that broke while the machine was busy gets longer ones. Default 250. */
  readonly tickMs?: Ms
  /** How long, in real time, a notification or message may take. Default 2000. */
  readonly timeoutMs?: Ms
  /** How long, in real time, to listen for what must not come. Default 0: a few turns of the event loop. */
  readonly quietMs?: Ms
  /**
   * How long, in real time, a call of a ledger may stand still before fake time is moved for it, because it waits on the
   * clock itself. Only for ledgers over plain ports, which lock with pauses. Default: it is never moved.
   */
  readonly stallMs?: Ms
  /**
   * Whether no real I/O is in flight, where the backend is on a server: fake time stands still until its calls are answered and
   * its messages have been heard. Default: always at rest.
   */
  readonly resting?: () => boolean
}

const FAKE_TICK_MS = 1000
export const DEFAULT_TICK_MS: Ms = 250
const MOST_MOVES = 10_000

export function testTime(options: TimeOptions): TestTime {
  const { realTime = false, tickMs = DEFAULT_TICK_MS, timeoutMs = 2000, quietMs = 0, stallMs, resting } = options
  // Ports in memory come to rest within a turn, and those of a server are not waited for by the clock at all.
  const fake = new FakeClock({ quietTurns: 2, ...(resting === undefined ? {} : { resting }) })
  const common = {
    eventually: async (isTrue: () => MaybePromise<boolean>) => {
      const until = systemClock.monotonic() + timeoutMs
      while (!(await isTrue())) {
        if (systemClock.monotonic() > until) return false
        await fake.settle()
        if (!(await isTrue())) await wait(5)
      }
      return true
    },
    quiet: async () => {
      await fake.settle()
      if (quietMs > 0) await wait(quietMs)
    },
  }
  const through = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false
    const over = () => {
      isOver = true
    }
    work.then(over, over)
    // A turn of the event loop is enough for whatever does not wait for anything.
    if (stallMs !== undefined) await nextTurn()
    for (let moves = 0; !isOver && stallMs !== undefined; moves += 1) {
      await fake.settle()
      if (!isOver && stallMs > 0) await wait(stallMs)
      if (moves > MOST_MOVES) break
      const dueAt = fake.nextDueAt()
      if (!isOver && dueAt !== undefined) await fake.advance(Math.max(0, dueAt - fake.now()))
    }
    return work
  }
  if (realTime)
    return {
      ...common,
      clock: systemClock,
      exact: false,
      through: (work) => work,
      ms: (ticks) => ticks * tickMs,
      // Not on the system's clock: its timers do not keep a process alive, and a runner may have nothing else to wait for.
      pass: (ms) => wait(ms),
    }
  return {
    ...common,
    clock: fake,
    exact: true,
    through,
    ms: (ticks) => ticks * FAKE_TICK_MS,
    pass: (ms) => fake.advance(ms),
  }
}
