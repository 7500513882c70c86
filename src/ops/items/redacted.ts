import type { ErrorDetail } from '../../core/failure/error-detail.js'
import { listedError } from '../../core/text/error-text.js'
import type { Redacted } from '../../core/text/redact.js'
import type { FailureGroup, ItemSummary, LogEntry } from '../../ports/inspect.js'
import type { Attempt } from '../../ports/item.js'

/** How much of an error a list shows. More is loaded, so that `redact` sees what it searches for in one piece. */
const SHOWN_ERROR_CHARACTERS = 300

/** The item with its error after `redact`, and with the reason of a cancel, which becomes its error. */
export function withShownError<T extends ItemSummary>(view: T, redacted: Redacted): T {
  const { error, cancelReason = '', envelope } = view
  return {
    ...view,
    ...(error === undefined ? {} : { error: redacted('error', error, envelope) }),
    ...(cancelReason === '' ? {} : { cancelReason: redacted('error', cancelReason, envelope) }),
  }
}

const CANCEL = 'cancel '

/** A line of the log: the reason of a cancel becomes the error of its item. The log does not know of which type that is. */
export function withShownReason(entry: LogEntry, redacted: Redacted): LogEntry {
  const { what, why } = entry
  if (why === '' || !what.startsWith(CANCEL)) return entry
  return { ...entry, why: redacted('error', why, { id: what.slice(CANCEL.length), type: '' }) }
}

/** The same for a list: a short line. */
export function withListedError<T extends ItemSummary>(view: T, redacted: Redacted): T {
  const shown = withShownError(view, redacted)
  return shown.error === undefined ? shown : { ...shown, error: listedError(shown.error, SHOWN_ERROR_CHARACTERS) }
}

/** The runs of an item with their errors after `redact`. */
export function withShownErrors(
  attempts: readonly Attempt[],
  { envelope }: ItemSummary,
  redacted: Redacted,
): readonly Attempt[] {
  return attempts.map((attempt) =>
    attempt.error === undefined ? attempt : shown(attempt, (text) => redacted('error', text, envelope)),
  )
}

/** Every text that an error came with goes through `redact`. */
function shown(attempt: Attempt, redact: (text: string) => string): Attempt {
  const { error, detail } = attempt
  return {
    ...attempt,
    ...(error === undefined ? {} : { error: redact(error) }),
    ...(detail === undefined ? {} : { detail: shownDetail(detail, redact) }),
  }
}

function shownDetail(detail: ErrorDetail, redact: (text: string) => string): ErrorDetail {
  const { message, stack, cause } = detail
  return {
    ...detail,
    message: redact(message),
    ...(stack === undefined ? {} : { stack: redact(stack) }),
    ...(cause === undefined ? {} : { cause: shownDetail(cause, redact) }),
  }
}

/** A group of failures with its sample after `redact`. */
export function withShownSample(group: FailureGroup, redacted: Redacted): FailureGroup {
  const { id, error } = group.sample
  const shown = listedError(redacted('error', error, { id, type: group.type }), SHOWN_ERROR_CHARACTERS)
  return { ...group, sample: { id, error: shown } }
}
