import type { Message } from '../message/message.js'
import { deadLetterToken } from './dead-letter.js'

/**
 * What a message is known by, never its routing key (which many messages share): the header `idempotency-key`, else
 * `crucible-idempotency-key` (what producers of Crucible write), else `message-id`, else the CloudEvents id with its source, else its
 * position in its stream. Empty ones count as absent.
 */
export function defaultKey(message: Message): string {
  const { headers } = message
  const own = headers.get('idempotency-key') || headers.get('crucible-idempotency-key') || headers.get('message-id')
  if (own) return own
  const eventId = headers.get('ce-id')
  const eventSource = headers.get('ce-source')
  // An event's id is unique only within its source.
  if (eventId && eventSource) return `${eventSource}|${eventId}`
  // A replay is still the message that was deadLettered: its own cursor counts replays, and starts over with its store.
  const cursor = message.as(deadLetterToken)?.cursor ?? message.cursor.toString()
  return `${message.subject}|${message.partitionKey}|${cursor}`
}
