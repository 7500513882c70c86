/** Why a writ has not ended, as a word that programs can compare. */
export type WritReasonCode =
  | 'draft'
  | 'phase'
  | 'queued'
  | 'held'
  | 'not-dispatched'
  | 'engine-running'
  | 'engine-lapsed'
  | 'engine-session'
  | 'engine-blocked'
  | 'engine-held'
  | 'engine-ready'
  | 'graft'
  | 'rig-ending'
  | 'stuck-retried'
  | 'stuck-at-cap'
  | 'stuck-for-good'
  | 'stuck-by-blocker'
  | 'stuck-by-cycle'
  | 'stuck-by-hand'
  | 'children'

/** One reason, and what would resolve it. */
export interface WritReason {
  readonly code: WritReasonCode
  readonly text: string
  readonly remedy: string
}
