import { MAX_DELAY_MS } from '../retry/backoff.js'
import { isObject, peek, peekString } from '../text/safe-read.js'
import { systemClock } from '../time/clock.js'
import type { At, Ms } from '../time/time.js'
import { declaredClass, type Said } from './declared-class.js'
import { aggregateMembers, causeChain, MAX_NODES } from './error-chain.js'
import type { FailureClass, Verdict } from './failure.js'
import { httpVerdict, parseRetryAfter } from './http-failure.js'
import { networkVerdict } from './network-failure.js'

/**
 * A rule of the user's: its class, a whole verdict, or nothing when the error is none of its business. A rule that
 * throws, or answers with anything else, is passed over. It must answer synchronously: a promise is no answer.
 */
export type ClassifyRule = (error: unknown) => FailureClass | Partial<Verdict> | undefined | void

/** Options of `classify`. */
export interface ClassifyOptions {
  /** Asked in this order, before everything built in. */
  readonly rules?: readonly ClassifyRule[] | undefined
  /** The present, for `Retry-After` dates and deferrals. Default: real time. */
  readonly now?: At | undefined
}

/**
 * What kind of failure is this? The one place where that is decided, for messages, work items and engines alike.
 *
 * 1. The user's `rules`, in order. They can overrule everything, because they know what no table can.
 * 2. What the error, or a cause of it, says of itself: `PoisonError`, `NonRetryableError`, `InvalidForStateError`,
 *    `GuardRejection`, `RetryableError`, `RetryAfterError`, `WorkDelayError` (a deferral, which has no class), `RetryAbort`
 *    (poison, unless its cause is classified as invalid for its state).
 * 3. From the outside in, for each error of the cause chain: network and DNS codes, timeouts and aborts, HTTP status with
 *    `Retry-After`, and the members of an AggregateError: retryable if any member is, else poison if any is.
 * 4. Decode and schema errors: poison. After the network, because a schema registry that is down is no bad payload.
 * 5. Anything else is retryable by `default`: a needless retry is cheap, a needless dead letter is not.
 *
 * Never throws, whatever was thrown, and never reads a message. `drop` is never the class of an error.
 * @example
 * ```ts
 * classify(new PoisonError('no such order')) // { class: 'poison', rule: 'explicit' }
 * classify(Object.assign(new Error(), { status: 429 })) // { class: 'retryable', rule: 'http-429' }
 * ```
 */
export function classify(error: unknown, options: ClassifyOptions = {}): Verdict {
  try {
    const now = options.now ?? systemClock.now()
    return Object.freeze(judge(error, { rules: options.rules ?? [], now, nodesLeft: MAX_NODES, opened: new Set() }))
  } catch {
    // Nothing above is known to throw; but every handler of a failure relies on this answer, so it must come.
    return DEFAULT
  }
}

interface Court {
  readonly rules: readonly ClassifyRule[]
  readonly now: At
  /** Shared by everything that one question examines, so that nested aggregates cannot multiply. */
  nodesLeft: number
  /** Aggregates already examined: one may contain itself. */
  readonly opened: Set<unknown>
}

const DEFAULT: Verdict = Object.freeze({ class: 'retryable', rule: 'default' })

function judge(error: unknown, court: Court): Verdict {
  const byRule = askRules(error, court.rules)
  if (byRule !== undefined) return byRule
  const chain = causeChain(error)
  court.nodesLeft -= chain.length
  for (const one of chain) {
    const said = declaredClass(one)
    const verdict = said === undefined ? undefined : explicitVerdict(one, said, court)
    if (verdict !== undefined) return verdict
  }
  for (const one of chain) {
    const verdict = networkVerdict(one) ?? httpVerdict(one, court.now) ?? membersVerdict(one, court)
    if (verdict !== undefined) return verdict
  }
  for (const one of chain) {
    const said = declaredClass(one)
    if (said === 'decode' || said === 'schema') return { class: 'poison', rule: said }
  }
  return DEFAULT
}

function explicitVerdict(error: unknown, said: Said, court: Court): Verdict | undefined {
  switch (said) {
    case 'poison':
    case 'invalidForState':
      return { class: said, rule: 'explicit' }
    case 'retryable': {
      const floorMs = askedFloor(error, court.now)
      return floorMs === undefined
        ? { class: 'retryable', rule: 'explicit' }
        : { class: 'retryable', rule: 'explicit', floorMs }
    }
    case 'abort':
      return { class: classOfAbort(error, court), rule: 'retry-abort' }
    case 'delay': {
      const deferTo = askedTime(peek(error, 'when'), court.now)
      // A time that cannot be read is no deferral: without one the item would come back immediately, forever, for free.
      return deferTo === undefined
        ? { class: 'retryable', rule: 'explicit' }
        : { class: 'unclassified', rule: 'deferred', deferTo }
    }
    case 'decode':
    case 'schema':
      return undefined
  }
}

/** The handler said "stop": it is not retried, whatever the cause. The cause only decides between poison and invalid for its state. */
function classOfAbort(abort: unknown, court: Court): FailureClass {
  const cause = peek(abort, 'cause')
  if (cause === undefined || court.nodesLeft <= 0) return 'poison'
  return judge(cause, court).class === 'invalidForState' ? 'invalidForState' : 'poison'
}

/** What the members of an AggregateError come to, `undefined` when it is none or when none of them says anything. */
function membersVerdict(error: unknown, court: Court): Verdict | undefined {
  const aggregate = aggregateMembers(error)
  if (aggregate === undefined || court.opened.has(error)) return undefined
  court.opened.add(error)
  const verdicts: Verdict[] = []
  for (const member of aggregate.members) {
    if (court.nodesLeft <= 0) break
    verdicts.push(judge(member, court))
  }
  // Members that were not examined could be retryable, so they count as that.
  const isWhole = aggregate.isWhole && verdicts.length === aggregate.members.length
  return isWhole && verdicts.every((verdict) => verdict.rule === DEFAULT.rule)
    ? undefined
    : worst(verdicts, isWhole, court.now)
}

function worst(verdicts: readonly Verdict[], isWhole: boolean, now: At): Verdict {
  const waits = verdicts.map(
    (verdict) => verdict.floorMs ?? (verdict.deferTo === undefined ? undefined : verdict.deferTo - now),
  )
  const asked = waits.filter((wait) => wait !== undefined)
  const floor = asked.length === 0 ? {} : { floorMs: clampWait(Math.max(...asked)) }
  const retryable = verdicts.find((verdict) => verdict.class === 'retryable')
  if (retryable !== undefined || !isWhole) {
    return { class: 'retryable', rule: ofMembers(retryable?.rule ?? DEFAULT.rule), ...floor }
  }
  if (verdicts.every((verdict) => verdict.deferTo !== undefined)) {
    const deferTo = Math.max(...verdicts.map((verdict) => verdict.deferTo ?? now))
    return { class: 'unclassified', rule: 'aggregate:deferred', deferTo }
  }
  const poison = verdicts.find((verdict) => verdict.class === 'poison')
  if (poison !== undefined) return { class: 'poison', rule: ofMembers(poison.rule) }
  const invalid = verdicts.find((verdict) => verdict.class === 'invalidForState')
  return { class: 'invalidForState', rule: ofMembers(invalid?.rule ?? 'explicit') }
}

/** However deep they are nested, one mark is enough. */
function ofMembers(rule: string): string {
  return rule.startsWith('aggregate:') ? rule : `aggregate:${rule}`
}

function askRules(error: unknown, rules: readonly ClassifyRule[]): Verdict | undefined {
  for (const rule of rules) {
    try {
      const verdict = readAnswer(rule(error), peekString(rule, 'name') ?? '')
      if (verdict !== undefined) return verdict
    } catch {
      // A broken rule must not decide, least of all by taking the worker down.
    }
  }
  return undefined
}

function readAnswer(answer: unknown, ruleName: string): Verdict | undefined {
  if (typeof answer === 'string') return isErrorClass(answer) ? { class: answer, rule: userRule(ruleName) } : undefined
  if (!isObject(answer)) return undefined
  if (typeof peek(answer, 'then') === 'function') {
    // An async rule: its answer comes too late, and its rejection must not end the process.
    Promise.resolve(answer as PromiseLike<unknown>).catch(() => {})
    return undefined
  }
  const given = peek(answer, 'class')
  const deferTo = peek(answer, 'deferTo')
  const floorMs = peek(answer, 'floorMs')
  const rule = peekString(answer, 'rule')?.slice(0, 100) || userRule(ruleName)
  if (typeof deferTo === 'number' && Number.isFinite(deferTo)) return { class: 'unclassified', rule, deferTo }
  if (!isErrorClass(given)) return undefined
  return typeof floorMs === 'number' && floorMs > 0
    ? { class: given, rule, floorMs: clampWait(floorMs) }
    : { class: given, rule }
}

function userRule(name: string): string {
  return name === '' ? 'user' : `user:${name.slice(0, 90)}`
}

function isErrorClass(value: unknown): value is FailureClass {
  return value === 'retryable' || value === 'poison' || value === 'invalidForState'
}

/** How long a `RetryAfterError` asked to wait (or its namesake of another queue, which keeps seconds or a date). */
function askedFloor(error: unknown, now: At): Ms | undefined {
  const afterMs = peek(error, 'afterMs')
  if (typeof afterMs === 'number' && afterMs >= 0) return clampWait(afterMs)
  const notBeforeAt = peek(error, 'notBeforeAt')
  if (typeof notBeforeAt === 'number' && Number.isFinite(notBeforeAt)) return clampWait(notBeforeAt - now)
  return parseRetryAfter(peek(error, 'retryAfter'), now)
}

function askedTime(when: unknown, now: At): At | undefined {
  const runAt = peek(when, 'runAt')
  const delay = peek(when, 'delay')
  const at = Number(runAt ?? now + Number(delay ?? 0))
  return isObject(when) && Number.isFinite(at) ? Math.max(at, now) : undefined
}

function clampWait(ms: Ms): Ms {
  return Math.min(Math.max(Math.ceil(ms), 0), MAX_DELAY_MS)
}
