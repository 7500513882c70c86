import { MillraceError } from '../core/error.js'
import { readEnvelope } from './envelope.js'

/** A body that is no envelope was pushed to a queue whose work is done natively: no handler would ever see it. */
export class NotAnEnvelopeError extends MillraceError {
  constructor(body: string) {
    const begin = body.slice(0, BEGIN)
    super(
      'NOT_AN_ENVELOPE',
      `A work system uses this backend natively, so its queues take envelopes only: JSON objects with the strings id, type, groupId and input. ` +
        `This body is none: ${JSON.stringify(begin)}${body.length > BEGIN ? '…' : ''}. Enqueue work with enqueue(), or give streams a backend of their own.`,
      { facts: { begin } },
    )
  }
}

const BEGIN = 60

/** Why a body was dead-lettered that was pushed before the first work system used its backend natively. */
export const NOT_AN_ENVELOPE = 'NOT_AN_ENVELOPE: pushed before a work system used this backend natively'

/** Refuses a body that a native backend cannot adopt. */
export function checkPushedNatively(body: string): void {
  if (readEnvelope(body) === undefined) throw new NotAnEnvelopeError(body)
}
