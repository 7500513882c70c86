import { MillraceError } from '../error.js'

/** A subscription was closed and nothing is left to fetch. How a consume loop learns that it is done; not a failure. */
export class DrainedError extends MillraceError {
  constructor(message = 'The subscription is closed and nothing is left to fetch.') {
    super('DRAINED', message)
  }
}

/** Whether a fetch ended because nothing is left. By code, so that two copies of the package agree. */
export function isDrained(error: unknown): boolean {
  return typeof error === 'object' && error !== null && (error as { readonly code?: unknown }).code === 'DRAINED'
}

/** No codec is registered for a content type, and there is no default. */
export class NoCodecError extends MillraceError {
  readonly contentType: string
  constructor(contentType = '') {
    const what = contentType === '' ? 'a message without a content type' : `content type "${contentType}"`
    super('NO_CODEC', `No codec for ${what}. Register one, or set a default codec.`, { facts: { contentType } })
    this.contentType = contentType
  }
}

/** A batch handler returned fewer or more results than it got messages. */
export class BatchResultCountError extends MillraceError {
  readonly expected: number
  readonly got: number
  constructor(expected: number, got: number) {
    super(
      'BATCH_RESULT_COUNT',
      `A batch handler got ${expected} messages and returned ${got} results. Return one result per message, in order.`,
      { facts: { expected, got } },
    )
    this.expected = expected
    this.got = got
  }
}

/** A handler returned something that is not a Result. It is never taken for an ack. */
export class InvalidResultError extends MillraceError {
  constructor(given: string) {
    super('INVALID_RESULT', `A handler must return a Result such as ack() or nak(error); it returned ${given}.`, {
      facts: { given },
    })
  }
}
