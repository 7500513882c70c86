import { readEnvelope } from '../../../ports/envelope.js'
import type { Envelope } from '../../../ports/item.js'
import type { Message } from '../queue/message.js'
import type { ItemRecord } from './item-record.js'
import type { ItemTable } from './item-table.js'

/** Reads the messages that were pushed as text or came from the file, so that their items can be found. Each is read once. */
export function readUnread(table: ItemTable): void {
  const { queues } = table.context
  for (let message = queues.unread.first(); message !== undefined; message = queues.unread.first()) {
    queues.markRead(message)
    const envelope = message.owner === undefined ? readEnvelope(message.body) : undefined
    if (envelope === undefined) continue
    const known = table.known(envelope.id)
    if (known === undefined) adopt(table, envelope, message)
    else if (known.message === undefined && !known.hasEnded) table.link(known, message, envelope)
  }
}

/** A record for a message that the ledger did not enqueue. */
export function adopt(table: ItemTable, envelope: Envelope, message: Message): ItemRecord {
  const record = table.add(envelope, message, table.context.queues.named(message.queueName))
  record.fence = message.fence
  return record
}
