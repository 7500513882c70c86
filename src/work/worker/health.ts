import { number, readOptions } from '../../core/read-options.js'
import { errorMessage } from '../../core/text/error-text.js'
import { hidePasswords } from '../../core/text/secrets.js'
import { secondsText } from '../../core/time/seconds-text.js'
import type { Ms } from '../../core/time/time.js'
import { withTimeout } from '../../core/time/with-timeout.js'
import type { EngineContext } from '../engine-context.js'

/** What a process is doing. `adding`: it was never started, and only adds work. */
export type WorkActivity = 'adding' | 'working' | 'stopping' | 'stopped'

/** Why a process is not live, or not ready. */
export interface HealthReason {
  readonly code: 'loop' | 'backend' | 'claims' | 'leases' | 'event-loop' | 'stopping' | 'stopped'
  readonly text: string
}

/** How a process is, as a plain object that can be sent as JSON. */
export interface WorkHealth {
  /** False: only a restart helps. A backend that is away, or a slow handler, is no reason for one. */
  readonly live: boolean
  /** Its backend answers and, if it works: claims succeed, leases are kept, the event loop is not blocked, and it is not stopping. */
  readonly ready: boolean
  readonly activity: WorkActivity
  /** Empty: all is well. */
  readonly reasons: readonly HealthReason[]
  /** How long the backend took to answer a call that reads nothing. Absent: it did not. */
  readonly backendMs?: Ms
  /** How long ago a claim was last answered. */
  readonly claimedMsAgo?: Ms
  /** How many items it holds. */
  readonly active: number
}

/** Options of `health`. */
export interface HealthOptions {
  /** How long the backend may take to answer. Default 1000. */
  readonly within?: Ms
}

const WITHIN_MS: Ms = 1_000
/** A loop asks at least as often as it polls. One that has not for this long does not turn any more. */
const STUCK_MS: Ms = 60_000
/** One claim may fail in passing. */
const FAILED_CLAIMS = 2

/** What `health()` asks the engine. */
export interface HealthFacts {
  readonly activity: WorkActivity
  /** The loop has ended, though it was not stopped. */
  readonly hasEnded: boolean
}

/** Answers probes. Probes that overlap share one call of the backend, so that a backend that hangs is not asked again and again. */
export class Health {
  readonly #context: EngineContext
  #asking: Promise<unknown> | undefined

  constructor(context: EngineContext) {
    this.#context = context
  }

  async ask(options: HealthOptions | undefined, facts: () => HealthFacts): Promise<WorkHealth> {
    const { within } = readOptions('health', options, { within: number({ above: 0, default: WITHIN_MS }) })
    const { o, pulse, recorder } = this.#context
    const askedMs = o.clock.monotonic()
    const unreached = await this.#reach(within)
    const backendMs = o.clock.monotonic() - askedMs
    const { activity, hasEnded } = facts()
    const fatal = activity === 'working' ? this.#fatal(hasEnded) : []
    const reasons = [...fatal, ...unreached, ...this.#unready(activity)]
    return {
      live: fatal.length === 0,
      ready: reasons.length === 0,
      activity,
      reasons,
      ...(unreached.length > 0 ? {} : { backendMs }),
      ...(activity !== 'working' || pulse.pulledMsAgo === undefined ? {} : { claimedMsAgo: pulse.pulledMsAgo }),
      active: recorder.active.size,
    }
  }

  async #reach(within: Ms): Promise<HealthReason[]> {
    this.#asking ??= this.#context.ping().finally(() => {
      this.#asking = undefined
    })
    try {
      const late = { code: 'backend', text: `the backend did not answer within ${secondsText(within)}` } as const
      const answer = this.#asking.then(() => undefined)
      const found = await withTimeout<undefined, HealthReason>(this.#context.o.clock, within, answer, () => late)
      return found === undefined ? [] : [found]
    } catch (error) {
      return [{ code: 'backend', text: hidePasswords(errorMessage(error)) }]
    }
  }

  #fatal(hasEnded: boolean): HealthReason[] {
    if (hasEnded) return [{ code: 'loop', text: 'the loop that claims work has ended' }]
    const { o, pulse } = this.#context
    const limitMs = Math.max(STUCK_MS, 2 * o.visibility, 3 * o.pollInterval)
    return pulse.stillMs > limitMs
      ? [{ code: 'loop', text: `the loop that claims work has not turned for ${secondsText(pulse.stillMs)}` }]
      : []
  }

  #unready(activity: WorkActivity): HealthReason[] {
    if (activity === 'stopping') return [{ code: 'stopping', text: 'the worker is stopping, and claims nothing new' }]
    if (activity === 'stopped') return [{ code: 'stopped', text: 'the worker has stopped' }]
    if (activity === 'adding') return []
    const { o, pulse } = this.#context
    const reasons: HealthReason[] = []
    if (pulse.failedPulls >= FAILED_CLAIMS)
      reasons.push({ code: 'claims', text: `the last ${pulse.failedPulls} claims failed` })
    else if (pulse.unansweredMs > o.visibility / 3)
      reasons.push({ code: 'claims', text: `a claim has not been answered for ${secondsText(pulse.unansweredMs)}` })
    if (pulse.recentlyLost > 0)
      reasons.push({
        code: 'leases',
        text: `${pulse.recentlyLost} leases were lost within ${secondsText(o.visibility)}`,
      })
    else if (pulse.hasHeartbeatFailed)
      reasons.push({ code: 'leases', text: `a heartbeat failed within the last ${secondsText(o.visibility)}` })
    if (pulse.recentDelayMs > o.visibility / 3)
      reasons.push({ code: 'event-loop', text: `the event loop was blocked for ${secondsText(pulse.recentDelayMs)}` })
    return reasons
  }
}
