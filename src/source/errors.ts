import { MillraceError } from '../core/error.js'

/** The message has been delivered more often than `maxDeliveries` allows: something about it ends its consumer. */
export class DeliveryLimitError extends MillraceError {
  constructor(deliveries: number, maxDeliveries: number) {
    super(
      'DELIVERY_LIMIT',
      `Delivery ${deliveries} of a message that may be delivered ${maxDeliveries} times. It is terminated as poison: ` +
        'look for what crashes or stalls its consumer, then replay it.',
      { facts: { deliveries, maxDeliveries } },
    )
  }
}

/** The handler did not return in the time it was given. Its late result is discarded. */
export class HandlerTimeoutError extends MillraceError {
  constructor(timeoutMs: number) {
    super(
      'HANDLER_TIMEOUT',
      `The handler did not return within ${timeoutMs} ms. The message is delivered again; watch ctx.signal to stop early.`,
      { facts: { timeoutMs } },
    )
  }
}

/** A delivery was settled, or released, and then settled again. The first settlement counts. */
export class AlreadySettledError extends MillraceError {
  constructor(subject: string, cursor: string) {
    super(
      'ALREADY_SETTLED',
      `Message ${cursor} of "${subject}" has been settled already, and the first settlement stands. Settle each delivery ` +
        'once; a handler that settles through the vendor itself returns manual().',
      { facts: { subject, cursor } },
    )
  }
}

/** Whether a settlement was refused because there had been one. By code, so that two copies of the package agree. */
export function isAlreadySettled(error: unknown): boolean {
  return hasCode(error, 'ALREADY_SETTLED')
}

/** A message was settled, extended or released at a subscription that it did not come from. */
export class ForeignMessageError extends MillraceError {
  constructor(subject: string) {
    super(
      'FOREIGN_MESSAGE',
      `This message of "${subject}" was not delivered by this inlet. Settle a message on a subscription of the inlet that ` +
        'delivered it, with the object that `next` returned.',
      { facts: { subject } },
    )
  }
}

/** A position of another stream, or one that no longer exists. */
export class ForeignCursorError extends MillraceError {
  constructor(cursor: string) {
    super(
      'FOREIGN_CURSOR',
      `Cursor ${JSON.stringify(cursor)} is no position of this stream. Use a cursor of a message that this stream delivered.`,
      { facts: { cursor } },
    )
  }
}

/** Something was asked of a subscription after its `close`. */
export class SubscriptionClosedError extends MillraceError {
  constructor(what: string) {
    super('SUBSCRIPTION_CLOSED', `The subscription is closed: it cannot ${what} any more. Subscribe again.`, {
      facts: { what },
    })
  }
}

/** Something was asked of an inlet after its `close`. */
export class InletClosedError extends MillraceError {
  constructor(what: string) {
    super('INLET_CLOSED', `The inlet is closed: it cannot ${what} any more. Make a new one.`, { facts: { what } })
  }
}

/** Whether an error has this code. By code and not by class, so that two copies of the package agree. */
export function hasCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && (error as { readonly code?: unknown }).code === code
}
