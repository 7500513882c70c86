import type { GroupRecord } from '../groups/group-table.js'
import type { ItemRecord } from './item-record.js'

/** About what each takes in the heap beside its texts. Measured; without it a million empty items would weigh nothing. */
export const ITEM_BYTES = 700
const GROUP_BYTES = 400
const MESSAGE_BYTES = 200
const KEY_BYTES = 200

/** What is stored in one backend, in bytes: all of it, and the part that has ended. */
export class Bytes {
  stored = 0
  ended = 0
}

export function bytesOfText(text: string | undefined): number {
  return text === undefined ? 0 : Buffer.byteLength(text)
}

export function bytesOfItem(record: ItemRecord): number {
  const { envelope, result, singleValue, extras } = record
  let bytes = ITEM_BYTES + bytesOfText(envelope.input) + bytesOfText(result) + bytesOfText(singleValue)
  if (extras !== undefined) bytes += bytesOfText(extras.error) + bytesOfText(extras.progress)
  for (const { error } of record.attempts()) bytes += bytesOfText(error)
  return bytes
}

export function bytesOfGroup({ value }: GroupRecord): number {
  return GROUP_BYTES + bytesOfText(value)
}

/** A message that came as text, or a dead letter. What carries an envelope shares it with its item. */
export const bytesOfBody = (text: string): number => MESSAGE_BYTES + bytesOfText(text)

export const bytesOfKey = (key: string, value: string): number => KEY_BYTES + bytesOfText(key) + bytesOfText(value)
