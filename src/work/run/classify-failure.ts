import { classify } from '../../core/failure/classify.js'
import { abortReason, isRetryAbort } from '../../core/failure/control-errors.js'
import { OVERRULED, type Verdict } from '../../core/failure/failure.js'
import { getDefaultRetryOptions } from '../../core/retry/retry-defaults.js'
import { isInstance } from '../../core/text/safe-read.js'
import type { At } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { WorkDefinition } from '../define/work.js'
import type { FailureClassifier, FailureDecision } from '../define/work-options.js'
import type { EngineContext } from '../engine-context.js'
import { EncodeError } from '../enqueue/resolve-item.js'
import { ResultEncodeError } from '../settle/group-value.js'
import { failureOf, type Outcome } from '../settle/outcome.js'
import { ResultNotKnownError } from '../settle/result-references.js'
import { NotAResultError, NotReturnedError } from '../settle/result-tree.js'
import { NotDependentsError } from './dependents-results.js'

/**
 * Turns what a handler threw into an outcome: by its class, and by the user's `onFailure`, which may override the class.
 * `at`: when it threw. Default: now.
 */
export async function classifyFailure(
  context: EngineContext,
  error: unknown,
  item: ClaimedItem,
  def: WorkDefinition<string, never>,
  at?: At,
): Promise<Outcome> {
  const { o, failed } = context
  const now = () => at ?? context.now()
  let verdict: Verdict = isMistake(error) ? { class: 'poison', rule: 'programming' } : classify(error, { now: now() })
  let override: 'retry' | 'abort' | undefined = isRetryAbort(error) ? 'abort' : undefined
  const classifier = def.options.onFailure ?? o.given.onFailure
  if (override === undefined && verdict.deferTo === undefined && classifier !== undefined) {
    const decision = await ask(classifier, error, item, (own) => failed(own, 'commit'))
    if (decision === 'retry' || decision === 'abort') override = decision
    else if (decision !== undefined) verdict = overrule(verdict, decision, now())
  }
  return failureOf(abortReason(error), verdict, override)
}

/** A classifier that throws, or answers with nonsense, is ignored. */
async function ask(
  classifier: FailureClassifier,
  error: unknown,
  { envelope: { id, type, attempt, retry } }: ClaimedItem,
  onError: (error: unknown) => void,
): Promise<FailureDecision | undefined> {
  try {
    const attempts = retry?.attempts ?? getDefaultRetryOptions().attempts
    const decision = await classifier(error, { id, type, attempt, attempts })
    return isDecision(decision) ? decision : undefined
  } catch (own) {
    onError(own)
    return undefined
  }
}

/** What a handler returned cannot be used, and could not be the second time either: it does not depend on the world. */
function isMistake(error: unknown): boolean {
  const mistakes = [
    ResultEncodeError,
    EncodeError,
    NotReturnedError,
    NotAResultError,
    ResultNotKnownError,
    NotDependentsError,
  ]
  return mistakes.some((kind) => isInstance(error, kind))
}

function overrule(verdict: Verdict, decision: Exclude<FailureDecision, 'retry' | 'abort'>, now: At): Verdict {
  const by = { rule: OVERRULED, overruled: verdict.rule }
  if (typeof decision === 'string') return { ...verdict, ...by, class: decision }
  const { runAt, delay = 0 } = decision as { readonly runAt?: number; readonly delay?: number }
  return { class: verdict.class, ...by, deferTo: runAt ?? now + delay }
}

/** What `onFailure` may answer. The class `drop` is not among them: it is only ever a result. */
const DECISIONS: readonly unknown[] = ['retry', 'abort', 'retryable', 'poison', 'invalidForState']

function isDecision(value: unknown): value is FailureDecision {
  if (typeof value !== 'object' || value === null) return DECISIONS.includes(value)
  const { delay, runAt } = value as { readonly delay?: unknown; readonly runAt?: unknown }
  return Number.isFinite(delay) || Number.isFinite(runAt)
}
