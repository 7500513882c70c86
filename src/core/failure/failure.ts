/**
 * What kind of failure it was. One word that means the same for a stream message, a work item and an engine of a rig:
 *
 * - `retryable`: it may succeed later (a timeout, a busy service). Tried again with backoff, up to a cap.
 * - `poison`: it can never succeed (malformed, fails its schema). Dead-lettered immediately, with its reason.
 * - `invalidForState`: well formed, but wrong for the state it met (a cancel after delivery). Dead-lettered immediately.
 * - `drop`: not a failure: a result that says "nothing to do here". Never the class of an error.
 * - `unclassified`: nothing is known. Treated as retryable wherever a decision is needed.
 */
export type FailureClass = 'unclassified' | 'retryable' | 'poison' | 'invalidForState' | 'drop'

/** Every class, in the order in which tables and pages list them. */
export const FAILURE_CLASSES: readonly FailureClass[] = Object.freeze([
  'unclassified',
  'retryable',
  'poison',
  'invalidForState',
  'drop',
])

/** The label of a class in metrics, stores and pages: snake case. What is not a class reads `unclassified`. */
export function classLabel(c: FailureClass): string {
  if (c === 'invalidForState') return 'invalid_for_state'
  return FAILURE_CLASSES.includes(c) ? c : 'unclassified'
}

/** The rule of a verdict that the user's `onFailure` gave. */
export const OVERRULED = 'onFailure'

/**
 * The one answer of `classify(error)`.
 * `rule` names what decided (`explicit`, `http-429`, `network`, `default`, …) and is stored with the attempt, so that
 * "why was this retried?" has an answer later.
 */
export interface Verdict {
  readonly class: FailureClass
  readonly rule: string
  /** The rule that the user's `onFailure` overruled. */
  readonly overruled?: string
  /** The failure asked to wait this long (`Retry-After`): a floor under the backoff, in ms. */
  readonly floorMs?: number
  /** The failure asked to run again at this instant, without spending an attempt (epoch ms). */
  readonly deferTo?: number
}
