import { readEndless, writeEndless } from '../../core/endless-json.js'
import type { Worker } from '../../ports/ledger.js'
import { asText } from './names.js'

/** What a worker tells of itself, as text. */
export function workerText(me: Worker): string {
  return asText(writeEndless(me))
}

export function workerFrom(text: string): Worker {
  return readEndless<Worker>(text)
}
