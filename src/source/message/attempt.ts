import { AttemptHeader } from './context.js'
import type { Message } from './message.js'

/** What a message itself says about its attempt. */
export interface MessageAttempt {
  /** From 1; `undefined` when nothing says. */
  readonly attempt: number | undefined
  /** The text of an attempt header that is no attempt: ignored, but worth a line in the log. */
  readonly malformedHeader: string | undefined
}

const MAX_ATTEMPT = 2_147_483_647

/**
 * The attempt of a message: the backend's count or the attempt header, the larger where both are there. (A copy that was
 * published for redelivery starts at the backend's count of 1 again, and only its header knows better.)
 */
export function messageAttempt(message: Message): MessageAttempt {
  const { deliveryCount } = message
  const counted = Number.isInteger(deliveryCount) && deliveryCount! >= 1 ? deliveryCount : undefined
  const text = message.headers.size === 0 ? undefined : message.headers.get(AttemptHeader)
  const stamped = text === undefined ? undefined : parseAttempt(text)
  return {
    attempt: counted === undefined || (stamped !== undefined && stamped > counted) ? stamped : counted,
    malformedHeader: stamped === undefined ? text : undefined,
  }
}

/** An attempt in the form the header carries: a decimal integer from 1 to 2^31 − 1, and nothing else. */
export function parseAttempt(text: string): number | undefined {
  if (!/^\d{1,10}$/.test(text)) return undefined
  const n = Number(text)
  return n >= 1 && n <= MAX_ATTEMPT ? n : undefined
}
