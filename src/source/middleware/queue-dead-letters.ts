import { MillraceError } from '../../core/error.js'
import { OptionTypeError } from '../../core/options.js'
import { writeLetterDetail } from '../../ports/letter-detail.js'
import type { Queue } from '../../ports/ports.js'
import { messageBody } from '../inlets/queue/message-body.js'
import { pulledWork } from '../inlets/queue/queue-message.js'
import { AttemptHeader } from '../message/context.js'
import { Headers } from '../message/headers.js'
import { type DeadLetterRecord, type DeadLetterStore, deadLetteredMessageKey } from './dead-letter.js'

/**
 * Dead letters in the sink of a queue: as durable as its backend, and seen by every process. `ops.letters()` and
 * `millrace letters` list them; `redriveLetters` puts them back on that queue, with their headers and their ids. Give it the queue
 * that the stream reads. A message that is dead-lettered twice, because its settlement failed, is one letter.
 *
 * @example
 * ```ts
 * const hopper = new Hopper({ middleware: [dlq(queueDeadLetters(backend.queue)), retry()] })
 * await hopper.receive(new QueueInlet(backend.queue), { topics: [] }, handle)
 * ```
 */
export function queueDeadLetters(queue: Queue): DeadLetterStore {
  if (typeof queue?.push !== 'function') throw new OptionTypeError('queueDeadLetters(queue)', 'a Queue', queue)
  const sink = queue.deadLetters
  if (sink === undefined) {
    throw new MillraceError(
      'NOT_SUPPORTED',
      'queueDeadLetters(queue) needs a queue whose dead letters can be listed. Use the queue of a Millrace backend as it is (a ' +
        'spread loses them), or write a DeadLetterStore of your own.',
    )
  }
  return {
    async deadLetter(ctx, record) {
      const message = ctx.get(deadLetteredMessageKey)
      const pulled = message?.as(pulledWork)
      await sink.add({
        // As it was pushed, to the letter, where it was.
        body: pulled?.body ?? bodyOf(record),
        id: pulled === undefined ? `${record.subject}|${record.partitionKey}|${record.cursor}` : pulled.id,
        error: record.errorName === '' ? record.lastError : `${record.errorName}: ${record.lastError}`,
        detail: writeLetterDetail({
          class: record.class,
          errorName: record.errorName,
          attempts: record.attempts,
          subject: record.subject,
          source: record.source,
        }),
      })
    },
  }
}

/** A message of another stream, as a queue can carry it. */
function bodyOf({ value, key, headers }: DeadLetterRecord): string {
  return messageBody(textIn(value) ?? value, {
    // Its attempts start over.
    headers: new Headers(headers).without(AttemptHeader),
    ...(key === null ? {} : { key: new TextDecoder().decode(key) }),
  })
}

/** Undefined: these bytes are no text. */
function textIn(value: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
  } catch {
    return undefined
  }
}
