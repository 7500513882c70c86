import { writeEnvelope } from '../../ports/envelope.js'
import type { DeadLettered } from './dead-letters.js'
import type { ItemRecord } from './item-record.js'

/**
 * Shows a parked item in the dead letters of its queue. Its text is made when somebody reads it. A cancelled one is not
 * shown: whoever redrives from there would run what a person stopped.
 */
export function buryRecord(record: ItemRecord): void {
  if (record.ending === 'cancelled') return
  const { envelope } = record
  const extras = record.withExtras()
  const { error = '' } = extras
  const entry: DeadLettered = {
    get body() {
      return writeEnvelope(envelope)
    },
    error,
  }
  extras.deadEntry = entry
  record.queue.dead.add(entry, envelope.input)
}
