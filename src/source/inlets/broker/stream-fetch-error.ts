import { MillraceError } from '../../../core/error.js'
import { errorText } from '../../../core/text/error-text.js'

/** The broker could not be asked for messages. It may be able to answer again soon. */
export class StreamFetchError extends MillraceError {
  /** Makes a hopper try again. */
  readonly transient = true
  constructor(stream: string, cause: unknown) {
    super('STREAM_FETCH', `The stream "${stream}" could not be read: ${errorText(cause)}. It is read again.`, {
      cause,
      facts: { stream },
    })
  }
}
