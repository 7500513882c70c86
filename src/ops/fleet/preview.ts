import { classify } from '../../core/failure/classify.js'
import { classLabel, type Verdict } from '../../core/failure/failure.js'
import { optionsObject, stringOption } from '../../core/options.js'
import { backoffRange } from '../../core/retry/backoff.js'
import { decideRetry, type RetryDecision } from '../../core/retry/decide-retry.js'
import { getDefaultRetryOptions } from '../../core/retry/retry-defaults.js'
import { checkRetryPolicy, mergeRetryPolicies, type RetryPolicy } from '../../core/retry/retry-policy.js'
import type { At, Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import { isAlive, type SeenWorker } from '../../work/worker/worker-registration.js'
import type { Preview, PreviewPolicy } from '../api.js'
import type { OpsContext } from '../context.js'
import { instantText, spanText } from '../duration-text.js'

/** A policy may be endless; the preview stops here. */
const MOST_ATTEMPTS = 100
/** How many waits the text names. */
const NAMED_WAITS = 4

/** What the policy would do with a failure. If the backend knows its workers, their policy is used. */
export async function readPreview(
  context: OpsContext,
  type: string,
  error: unknown,
  options: PreviewPolicy | undefined,
): Promise<Preview> {
  stringOption('preview(type)', type)
  const { retry } = optionsObject('preview', options, ['retry'])
  const given = retry === undefined ? undefined : checkRetryPolicy('preview.retry', retry)
  const isAsking = given === undefined && context.ledger.inspect !== undefined
  const [now, workers] = await Promise.all([context.now(), isAsking ? context.ledger.inspect.workers() : []])
  return previewOf({ type, error, now, workers, ...(given === undefined ? {} : { given }) })
}

export interface PreviewFacts {
  readonly type: string
  readonly error: unknown
  readonly now: At
  readonly workers: readonly SeenWorker[]
  /** The policy given by the caller; the rest is the default. */
  readonly given?: Partial<RetryPolicy>
}

export function previewOf({ type, error, now, workers, given }: PreviewFacts): Preview {
  const verdict = classify(error, { now })
  const { policy, policyFrom, doubt } = policyOf(type, now, workers, given)
  const { attempts, waits, end } = followed(verdict, policy, now)
  return {
    type,
    class: verdict.class,
    rule: verdict.rule,
    policyFrom,
    attempts,
    text: `${textOf(verdict, policy, waits, end)}${doubt}`,
  }
}

/** The policy that a new item of the type would get. */
function policyOf(
  type: string,
  now: At,
  workers: readonly SeenWorker[],
  given: Partial<RetryPolicy> | undefined,
): { readonly policy: RetryPolicy; readonly policyFrom: Preview['policyFrom']; readonly doubt: string } {
  const lowest = getDefaultRetryOptions()
  if (given !== undefined) return { policy: mergeRetryPolicies(lowest, given), policyFrom: 'options', doubt: '' }
  const told = workers
    .filter((worker) => isAlive(worker, now))
    .sort((a, b) => b.seenAt - a.seenAt)
    .flatMap((worker) => {
      const policy = worker.settings?.types[type]?.retry
      return policy === undefined ? [] : [{ worker, policy: mergeRetryPolicies(lowest, policy) }]
    })
  const [newest] = told
  if (newest === undefined) return { policy: mergeRetryPolicies(lowest), policyFrom: 'default', doubt: '' }
  const spelt = JSON.stringify(newest.policy)
  const doubt = told.every(({ policy }) => JSON.stringify(policy) === spelt)
    ? ''
    : `. Live workers report different policies for "${type}"; this is the one of ${newest.worker.host}`
  return { policy: newest.policy, policyFrom: 'worker', doubt }
}

interface Span {
  readonly minMs: Ms
  readonly maxMs: Ms
}

interface Followed {
  readonly attempts: Preview['attempts']
  /** Between one attempt and the next. */
  readonly waits: readonly Span[]
  /** Undefined: it continues beyond what is listed. */
  readonly end: Exclude<RetryDecision, { readonly kind: 'retry' }> | undefined
}

/** As if every attempt failed the same way and immediately: the engine's own decision, with the least and the most jitter. */
function followed(verdict: Verdict, policy: RetryPolicy, now: At): Followed {
  const attempts: Preview['attempts'][number][] = [{ attempt: 1, earliestMs: 0, latestMs: 0 }]
  const waits: Span[] = []
  let [earliestMs, latestMs] = [0, 0]
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    const range = backoffRange(attempt, policy)
    const decide = (waitMs: Ms) =>
      decideRetry({ verdict, attempt, maxAttempts: policy.attempts, delayMs: () => waitMs, now })
    const [least, most] = [decide(range.minMs), decide(range.maxMs)]
    if (least.kind !== 'retry' || most.kind !== 'retry') {
      if (most.kind === 'defer') attempts.push({ attempt, earliestMs: most.delayMs, latestMs: most.delayMs })
      return { attempts, waits, end: most.kind === 'retry' ? undefined : most }
    }
    if (attempt === MOST_ATTEMPTS) break
    earliestMs += least.delayMs
    latestMs += most.delayMs
    waits.push({ minMs: least.delayMs, maxMs: most.delayMs })
    attempts.push({ attempt: most.nextAttempt, earliestMs, latestMs })
  }
  return { attempts, waits, end: undefined }
}

function textOf(verdict: Verdict, policy: RetryPolicy, waits: readonly Span[], end: Followed['end']): string {
  const known = `${classLabel(verdict.class).replaceAll('_', ' ')} (rule ${verdict.rule})`
  if (end?.kind === 'defer')
    return `deferred (rule ${verdict.rule}): runs again at ${instantText(end.to)} without using an attempt`
  if (waits.length === 0 && end?.kind === 'giveUp' && end.ending === 'aborted')
    return `${known}: not retried, dead-lettered as aborted immediately`
  const total = policy.attempts
  const times =
    total >= Number.MAX_SAFE_INTEGER
      ? 'tried without limit'
      : total === 1
        ? 'tried once'
        : `tried ${total} times in all`
  return [`${known}: ${times}`, ...waitTexts(waits, total), ...endTexts(end)].join(', ')
}

function waitTexts(waits: readonly Span[], total: number): string[] {
  const told = waits
    .slice(0, NAMED_WAITS)
    .map(({ minMs, maxMs }, i) => `${i === 0 ? 'again' : 'then'} after ${spanText(minMs, maxMs)}`)
  const [next, last] = [waits[NAMED_WAITS], waits.at(-1)]
  if (next === undefined || last === undefined) return told
  const isSteady = next.minMs === last.minMs && next.maxMs === last.maxMs
  const each = isSteady
    ? `each after ${spanText(last.minMs, last.maxMs)}`
    : `growing up to ${spanText(last.minMs, last.maxMs)}`
  const more = total - 1 - NAMED_WAITS
  return [...told, total >= Number.MAX_SAFE_INTEGER ? `then without limit, ${each}` : `then ${more} more, ${each}`]
}

function endTexts(end: Followed['end']): string[] {
  switch (end?.kind) {
    case undefined:
    case 'defer':
      return []
    case 'giveUp':
      return [`then dead-lettered as ${end.ending}`]
    case 'expire':
      return ['then dead-lettered as expired']
    default:
      return unreachable(end)
  }
}
