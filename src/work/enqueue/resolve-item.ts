import type { JsonCodec } from '../../core/codec/codec.js'
import { MillraceError } from '../../core/error.js'
import { numberOption, optionsObject } from '../../core/options.js'
import { getDefaultRetryOptions, RETRY_HOOKS } from '../../core/retry/retry-defaults.js'
import type { RetryPolicy } from '../../core/retry/retry-policy.js'
import { checkRetryPolicy, mergeRetryPolicies } from '../../core/retry/retry-policy.js'
import type { At } from '../../core/time/time.js'
import type { Envelope } from '../../ports/item.js'
import { definitionOf } from '../define/built-work.js'
import type { Registry } from '../define/registry.js'
import type { EnqueueOptions, Work, WorkInstanceOptions, WorkRetry } from '../define/work.js'
import { checkItemOptions, ITEM_OPTION_NAMES } from '../define/work-options.js'
import type { Child, OpenGate } from '../settle/outcome.js'

/** What resolving an item needs to know of its system. */
export interface ItemRules {
  readonly registry: Registry
  readonly codec: JsonCodec
  readonly retry: WorkRetry | undefined
  readonly newId: () => string
  /** A queue has one name in the whole fleet. On plain ports every process numbers its own. */
  readonly areNamesShared: boolean
  /** Merged policies by type, and the defaults they were merged on. */
  readonly policies: Map<string, { readonly defaults: object; readonly policy: RetryPolicy }>
}

/** Where a new item comes from. */
export interface ItemOrigin {
  readonly groupId: string
  readonly parent?: string
  readonly dependents?: readonly string[]
  readonly trace?: Envelope['trace']
}

/** Work that is enqueued begins a group. Its id is that of the work: the same in every process, and for every repetition. */
export function rootOrigin({ id }: Work, trace: Envelope['trace']): ItemOrigin {
  return trace === undefined ? { groupId: id } : { groupId: id, trace }
}

export interface ResolvedItem extends Child {
  readonly item: Envelope & { waiter?: string }
  /** It runs immediately in this process. */
  readonly skipQueue: boolean
  /** Its start, or its deadline, was given as an instant, and does not depend on when the item is queued. */
  readonly isStartFixed: boolean
  readonly isDeadlineFixed: boolean
  /** For an item that a gate holds: the gate, which is opened with it. */
  readonly gate?: OpenGate
}

/** The input could not be turned into text. */
export class EncodeError extends MillraceError {
  constructor(type: string, cause: unknown) {
    super('ENCODE_FAILED', `The input of work "${type}" could not be encoded: ${String(cause)}. Check its codec.`, {
      cause,
      facts: { type },
    })
  }
}

/**
 * Turns work into an item: options field by field, those given now over those computed from the input over those of the
 * type over the defaults. What is resolved here travels with the item; a worker never resolves again.
 */
export function resolveItem(
  rules: ItemRules,
  work: Work,
  given: WorkInstanceOptions | undefined,
  origin: ItemOrigin,
  now: At,
): ResolvedItem {
  const typed = rules.registry.meet(work.type, definitionOf(work))?.options
  const computed = typed?.options?.(work.input as never)
  if (given !== undefined) checkInstanceOptions('enqueue', given)
  if (computed !== undefined) checkInstanceOptions(`work "${work.type}" options(input)`, computed)

  const runAt = given?.runAt ?? computed?.runAt
  const startAt = runAt ?? now + (given?.delay ?? computed?.delay ?? typed?.delay ?? 0)
  const timeout = given?.timeout ?? computed?.timeout ?? typed?.timeout
  const fixedDeadline = given?.deadline ?? computed?.deadline
  const deadline = fixedDeadline ?? (timeout === undefined ? undefined : now + timeout)
  const group = given?.group ?? computed?.group ?? typed?.group
  const tags = given?.tags ?? computed?.tags ?? typed?.tags
  const runTimeout = given?.runTimeout ?? computed?.runTimeout ?? typed?.runTimeout
  const isStrict = given?.strictDeadline ?? computed?.strictDeadline ?? typed?.strictDeadline
  const item: { -readonly [K in keyof Envelope]: Envelope[K] } = {
    v: 1,
    id: work.id,
    type: work.type,
    groupId: origin.groupId,
    input: encode(rules.registry.codecOf(work.type, rules.codec), work),
    queueAt: now,
    startAt,
    attempt: 1,
    priority: given?.priority ?? computed?.priority ?? typed?.priority ?? 0,
    retry: policyOf(rules, work.type, computed?.retry, given?.retry),
  }
  // Absent fields stay absent, on the wire too: most items have none of these.
  if (group !== undefined) item.group = group
  if (deadline !== undefined) item.deadline = deadline
  if (tags !== undefined && tags.length > 0) item.tags = [...new Set(tags)]
  if (runTimeout !== undefined) item.runTimeout = runTimeout
  if (isStrict === true) item.strictDeadline = true
  if (origin.parent !== undefined) item.parent = origin.parent
  if (origin.dependents !== undefined) item.dependents = origin.dependents
  if (origin.trace !== undefined) item.trace = origin.trace
  if (work.references !== undefined) item.references = work.references
  const skipQueue = given?.skipQueue ?? computed?.skipQueue ?? typed?.skipQueue ?? false
  return {
    item,
    queue: rules.registry.queueOf(work.type),
    delayMs: Math.max(0, startAt - now),
    // What is not due yet waits in the queue like everything else.
    skipQueue: skipQueue && startAt <= now,
    isStartFixed: runAt !== undefined,
    isDeadlineFixed: fixedDeadline !== undefined,
  }
}

/** The merged policy. Without options of the item it is made once: those of the type and the system never change. */
export function policyOf(rules: ItemRules, type: string, ...own: readonly (WorkRetry | undefined)[]): RetryPolicy {
  const { registry, retry } = rules
  const isUsual = own.every((layer) => layer === undefined)
  const defaults = getDefaultRetryOptions()
  const known = isUsual ? rules.policies.get(type) : undefined
  if (known?.defaults === defaults) return known.policy
  const layers = [retry, registry.known(type)?.options.retry, ...own]
  const { attempts, base, factor, max, jitter } = layers.reduce<RetryPolicy>(
    (merged, layer) =>
      layer === undefined ? merged : mergeRetryPolicies(merged, checkRetryPolicy('retry', layer, RETRY_HOOKS)),
    defaults,
  )
  const policy = Object.freeze({ attempts, base, factor, max, jitter })
  if (isUsual) rules.policies.set(type, { defaults, policy })
  return policy
}

function encode(codec: JsonCodec, work: Work): string {
  let text: unknown
  try {
    text = codec.stringify(work.input)
  } catch (error) {
    throw new EncodeError(work.type, error)
  }
  if (typeof text !== 'string') throw new EncodeError(work.type, `stringify returned ${typeof text}, not a string`)
  return text
}

const NAMES = [
  ...ITEM_OPTION_NAMES,
  'runAt',
  'deadline',
  'tx',
] as const satisfies readonly (keyof WorkInstanceOptions)[]

/** What `add` and `enqueue` take: the id is theirs, and does not reach the item's options. */
export const ENQUEUE_NAMES = ['id', ...NAMES] as const satisfies readonly (keyof EnqueueOptions)[]

/** Checks the options of an item where they are given, before anything is written. */
export function checkInstanceOptions(owner: string, options: WorkInstanceOptions | undefined): void {
  if (options === undefined) return
  optionsObject(owner, options, NAMES)
  const { runAt, deadline } = options
  if (runAt !== undefined) numberOption(`${owner}.runAt`, runAt)
  if (deadline !== undefined) numberOption(`${owner}.deadline`, deadline)
  checkItemOptions(owner, options)
}
