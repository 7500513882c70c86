import { errorText } from '../core/error-text.js'
import type { Verdict } from '../core/failure.js'
import { fingerprint } from '../core/fingerprint.js'
import type { CommitResult } from '../ports/settlement.js'
import type { Outcome } from './outcome.js'

export type Refusal = Extract<CommitResult, { readonly kind: 'refused' }>

/** What the backend will never take is the item's own doing: parked as poison, with the limit in its reason. */
export function refusedOutcome(refusal: Refusal): Outcome {
  const rule = refusal.code === 'TOO_LARGE' ? 'too-large' : 'bad-name'
  return failureOf(refusal.message, { class: 'poison', rule })
}

export function failureOf(reason: unknown, verdict: Verdict, said?: 'retry' | 'abort'): Outcome {
  return {
    kind: 'threw',
    error: errorText(reason),
    fingerprint: fingerprint(reason, verdict.class),
    verdict,
    ...(said === undefined ? {} : { said }),
  }
}
