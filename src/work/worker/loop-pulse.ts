import type { Ms } from '../../core/time/time.js'

/** What one process knows of how its worker fares, in monotonic time: facts for `health()`. */
export class LoopPulse {
  readonly #monotonic: () => Ms
  readonly #rememberMs: Ms
  #turnedMs: Ms | undefined
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #pullBeganMs: Ms | undefined
  #pulledMs: Ms | undefined
  #failedPulls = 0
  #lost: { readonly sinceMs: Ms; count: number } | undefined
  #heartbeatFailedMs = Number.NEGATIVE_INFINITY
  #delay: { readonly atMs: Ms; readonly ms: Ms } | undefined

  /** `rememberMs`: for how long a lost lease, a failed heartbeat or a blocked event loop counts. */
  constructor(monotonic: () => Ms, rememberMs: Ms) {
    this.#monotonic = monotonic
    this.#rememberMs = rememberMs
  }

  /** The loop begins. What was known of an earlier one no longer counts. */
  began(): void {
    this.#turnedMs = this.#monotonic()
    this.#pullBeganMs = undefined
    this.#pulledMs = undefined
    this.#failedPulls = 0
    this.#pausedUntilMs = Number.NEGATIVE_INFINITY
  }

  /** The loop asks how much it may claim. */
  turned(): void {
    this.#turnedMs = this.#monotonic()
  }

  /** `backpressure` wants a pause. */
  paused(ms: Ms): void {
    this.#pausedUntilMs = this.#monotonic() + ms
  }

  pullBegan(): void {
    this.#pullBeganMs = this.#monotonic()
  }

  pullEnded(isAnswered: boolean): void {
    this.#pullBeganMs = undefined
    this.turned()
    if (!isAnswered) {
      this.#failedPulls += 1
      return
    }
    this.#pulledMs = this.#monotonic()
    this.#failedPulls = 0
  }

  lostLease(): void {
    if (this.#lost === undefined || !this.#isRecent(this.#lost.sinceMs)) {
      this.#lost = { sinceMs: this.#monotonic(), count: 0 }
    }
    this.#lost.count += 1
  }

  heartbeatFailed(): void {
    this.#heartbeatFailedMs = this.#monotonic()
  }

  /** The event loop came so late to a timer. */
  delayed(ms: Ms): void {
    if (this.#delay === undefined || !this.#isRecent(this.#delay.atMs) || ms > this.#delay.ms) {
      this.#delay = { atMs: this.#monotonic(), ms }
    }
  }

  /** For how long the loop has neither turned nor waited for an answer or a pause. 0: it turns. */
  get stillMs(): Ms {
    if (this.#turnedMs === undefined || this.#pullBeganMs !== undefined) return 0
    return Math.max(0, this.#monotonic() - Math.max(this.#turnedMs, this.#pausedUntilMs))
  }

  /** For how long the current claim has been unanswered. 0: there is none. */
  get unansweredMs(): Ms {
    return this.#pullBeganMs === undefined ? 0 : this.#monotonic() - this.#pullBeganMs
  }

  /** How many claims have failed in a row. */
  get failedPulls(): number {
    return this.#failedPulls
  }

  /** How long ago a claim was last answered. Undefined: none was. */
  get pulledMsAgo(): Ms | undefined {
    return this.#pulledMs === undefined ? undefined : this.#monotonic() - this.#pulledMs
  }

  get recentlyLost(): number {
    return this.#lost !== undefined && this.#isRecent(this.#lost.sinceMs) ? this.#lost.count : 0
  }

  get hasHeartbeatFailed(): boolean {
    return this.#isRecent(this.#heartbeatFailedMs)
  }

  get recentDelayMs(): Ms {
    return this.#delay !== undefined && this.#isRecent(this.#delay.atMs) ? this.#delay.ms : 0
  }

  #isRecent(atMs: Ms): boolean {
    return this.#monotonic() - atMs <= this.#rememberMs
  }
}
