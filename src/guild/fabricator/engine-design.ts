/** How an engine that failed is tried again inside its rig. */
export interface EngineRetry {
  /** How many times it is tried again, after the first. Required, unless `maxAttempts` says it. */
  readonly retries?: number
  /**
   * The same by its older name, which elsewhere counts the first attempt, too.
   * @deprecated Write `retries`.
   */
  readonly maxAttempts?: number
  readonly backoff?: {
    /** Before the first re-try. Default: 30 000. */
    readonly initialMs?: number
    /** At most. Default: 600 000. */
    readonly maxMs?: number
    /** From one to the next. Default: 2. */
    readonly factor?: number
  }
}

/** An engine of a rig, as a template or a graft describes it. */
export interface RigTemplateEngine {
  /** Its name in the rig. */
  readonly id: string
  /** Which design it is an instance of. */
  readonly designId: string
  /** Engines of the rig that must have ended first. */
  readonly upstream?: readonly string[]
  /** Values for `run`. A string may hold `${writ.…}`, `${vars.…}` and `${yields.<engine>.…}`. */
  readonly givens?: Readonly<Record<string, unknown>>
  /** `${yields.<engine>.<path>}`, with an optional `!` before it: when false, the engine is skipped. */
  readonly when?: string
}

/** Why an engine waits, or waited before it was run again. */
export interface BlockRecord {
  readonly type: string
  readonly condition: unknown
  readonly blockedAt: string
  readonly message?: string
  readonly lastCheckedAt?: string
}

/** What an engine's `run` and `collect` know besides their givens. */
export interface EngineRunContext {
  /** The writ that is worked on. */
  readonly writId: string
  readonly rigId: string
  /** From 1: which rig of the writ this is. */
  readonly rigAttempt: number
  readonly engineId: string
  /** What every completed engine of the rig yielded, by engine id. */
  readonly upstream: Readonly<Record<string, unknown>>
  /** The block that this engine came out of, if it did. */
  readonly priorBlock?: BlockRecord
  /** Aborted when the run must end: its lease was lost, or its rig was cancelled. */
  readonly signal?: AbortSignal
  /** From 1: which try of the engine in this rig. */
  readonly attempt?: number
  /**
   * The same for every run of this attempt, also after a crash, and another one for every new attempt: for effects that a new
   * attempt is to repeat.
   */
  readonly idempotencyKey?: string
  /**
   * A key that is the same in every attempt and every rig of the writ: for effects that the writ may have once only, such as a
   * charge. `step` distinguishes several effects; default: the engine's id.
   */
  writKey(step?: string): string
}

/** The result of a run. Its kind decides what happens: nothing of it is declared beforehand. */
export type EngineRunResult =
  | {
      readonly status: 'completed'
      /** Must survive JSON. */
      readonly yields: unknown
      /** Engines to add to the rig. */
      readonly graft?: readonly RigTemplateEngine[]
      /** The grafted engine that those downstream of this one wait for as well. */
      readonly graftTail?: string
    }
  /** A session was started elsewhere; it is collected when it has ended. */
  | { readonly status: 'launched'; readonly sessionId: string }
  /** It cannot go on before a condition holds; then it is run again. */
  | { readonly status: 'blocked'; readonly blockType: string; readonly condition: unknown; readonly message?: string }
  /** It failed, and states whether another attempt is worthwhile. What it throws is classified instead. */
  | {
      readonly status: 'failed'
      readonly error: string
      readonly retryable: boolean
      /** The next attempt, in this rig or another one, begins no earlier. */
      readonly retryAfterMs?: number
    }

/** What `collect` may return besides plain yields: recognised by `graft` being an array. */
export interface CollectedGraft {
  readonly yields: unknown
  readonly graft: readonly RigTemplateEngine[]
  readonly graftTail?: string
}

/**
 * A named implementation of an engine. Plugins contribute designs under `engines`, as a record.
 *
 * @example
 * ```ts
 * const greet: EngineDesign = {
 *   id: 'greet',
 *   run: async (givens) => ({ status: 'completed', yields: { text: `Hello, ${String(givens['name'])}` } }),
 * }
 * export default { kit: { engines: { greet } } }
 * ```
 */
export interface EngineDesign {
  readonly id: string
  run(givens: Readonly<Record<string, unknown>>, ctx: EngineRunContext): Promise<EngineRunResult>
  /** Turns a session that has ended into yields. Default: its id, status and output. */
  collect?(
    sessionId: string,
    givens: Readonly<Record<string, unknown>>,
    ctx: EngineRunContext,
  ): Promise<unknown | CollectedGraft>
  /** Default: it is not tried again inside its rig. */
  readonly retry?: EngineRetry
  /**
   * How long a call of `run` or `collect` may take. Then its signal fires with `RUN_TIMEOUT`, and it has failed in a way that may
   * pass, whether or not it listens. Default: no limit.
   */
  readonly timeoutMs?: number
  /**
   * Whether `run` launches sessions, which hold a place for as long as they take: with `maxConcurrentSessions` in `guild.json`,
   * they leave the other places to other engines. Default: true for a design with `collect`.
   */
  readonly launchesSessions?: boolean
  /**
   * Whether what it yielded is carried over when a writ gets another rig, so that the retry goes on from the engine that failed. It
   * is carried over only if everything upstream of it is, and if its givens have not changed. Default: no, a new rig starts afresh.
   */
  readonly carryOver?: boolean
}
