import { listedError } from '../../core/text/error-text.js'
import type { Redacted } from '../../core/text/redact.js'
import type { FailureGroup, ItemSummary } from '../../ports/inspect.js'
import type { Attempt } from '../../ports/item.js'

/** How much of an error a list shows. More is loaded, so that `redact` sees what it searches for in one piece. */
const SHOWN_ERROR_CHARACTERS = 300

/** The item with its error after `redact`. */
export function withShownError<T extends ItemSummary>(view: T, redacted: Redacted): T {
  return view.error === undefined ? view : { ...view, error: redacted('error', view.error, view.envelope) }
}

/** The same for a list: a short line. */
export function withListedError<T extends ItemSummary>(view: T, redacted: Redacted): T {
  const { error } = withShownError(view, redacted)
  return error === undefined ? view : { ...view, error: listedError(error, SHOWN_ERROR_CHARACTERS) }
}

/** The runs of an item with their errors after `redact`. */
export function withShownErrors(
  attempts: readonly Attempt[],
  { envelope }: ItemSummary,
  redacted: Redacted,
): readonly Attempt[] {
  return attempts.map((attempt) =>
    attempt.error === undefined ? attempt : { ...attempt, error: redacted('error', attempt.error, envelope) },
  )
}

/** A group of failures with its sample after `redact`. */
export function withShownSample(group: FailureGroup, redacted: Redacted): FailureGroup {
  const { id, error } = group.sample
  const shown = listedError(redacted('error', error, { id, type: group.type }), SHOWN_ERROR_CHARACTERS)
  return { ...group, sample: { id, error: shown } }
}
