import { readEndless, writeEndless } from '../../core/endless-json.js'
import { toWellFormed } from '../../core/well-formed.js'
import type { Worker } from '../../ports/ledger.js'

/** What a worker tells of itself, as text. */
export function workerText(me: Worker): string {
  return toWellFormed(writeEndless(me))
}

export function workerFrom(text: string): Worker {
  return readEndless<Worker>(text)
}
