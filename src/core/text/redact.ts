import { errorName } from './error-text.js'
import { peek } from './safe-read.js'

/** What a text that is about to be shown is, and which item it belongs to. */
export interface RedactAbout {
  readonly kind: 'input' | 'result' | 'progress' | 'error' | 'group'
  /** Type of the item. */
  readonly type: string
  /** Id of the item. */
  readonly id: string
}

/**
 * What people may see of an item's payloads and errors. It gets the text as it is stored (payloads encoded, as JSON by
 * default) and returns the text to show. It must not be async.
 */
export type Redact = (value: string, about: RedactAbout) => string

/** A text as it may be shown. */
export type Redacted = (kind: RedactAbout['kind'], value: string, item: Omit<RedactAbout, 'kind'>) => string

/**
 * Applies `redact` so that no fault in it lets a text out or breaks the call: if it throws, or returns anything but a text, a
 * placeholder that says so is shown instead.
 */
export function redactedBy(redact: Redact): Redacted {
  return (kind, value, { id, type }) => {
    try {
      const shown: unknown = redact(value, { kind, type, id })
      if (typeof shown === 'string') return shown
      forget(shown)
      return `[withheld: redact() returned ${shown === null ? 'null' : typeof shown} instead of a text]`
    } catch (error) {
      // Its message could repeat the text; only its name is shown.
      return `[withheld: redact() threw ${errorName(error)}]`
    }
  }
}

/** An async `redact` that rejects must not end the process as an unhandled rejection. */
function forget(value: unknown): void {
  if (typeof peek(value, 'then') === 'function') Promise.resolve(value).catch(() => {})
}
