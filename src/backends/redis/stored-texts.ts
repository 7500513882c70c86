import { readEndless, stringifyWithInfinity } from '../../core/codec/infinite-json.js'
import { isWellFormed, toWellFormed } from '../../core/text/well-formed.js'
import { envelopeOf, readEnvelope } from '../../ports/envelope.js'
import type { Attempt, Envelope } from '../../ports/item.js'
import type { WorkerRecord } from '../../ports/ledger.js'

/** An envelope in two texts, so that reading an item does not load its input. */
export interface BodyTexts {
  /** What neither the record nor the body says, as JSON. */
  readonly head: string
  /** '=' and the input, or the input as JSON where it cannot be written otherwise. */
  readonly body: string
}

export function bodyTexts({ id: _id, type: _type, groupId: _group, input, ...rest }: Envelope): BodyTexts {
  const head: Record<string, unknown> = rest
  // What a reader takes for granted is not kept: there are many of these.
  if (head['attempt'] === 1) delete head['attempt']
  if (head['priority'] === 0) delete head['priority']
  return { head: JSON.stringify(head), body: bodyText(input) }
}

export function bodyText(input: string): string {
  return isWellFormed(input) ? `=${input}` : JSON.stringify(input)
}

/** The input of a body as it was stored. One that is older than heads, or came as a plain message written unlike JSON.stringify, is a whole envelope. */
export function inputFrom(body: string): string | undefined {
  if (body.startsWith('=')) return body.slice(1)
  return body.startsWith('"') ? (JSON.parse(body) as string) : readEnvelope(body)?.input
}

/** The envelope as it was pushed. `body` is left out by lists; undefined: its text is gone, or was never one. */
export function envelopeFromTexts(
  id: string,
  type: string,
  groupId: string,
  head: string | null,
  body: string | null,
): Envelope | undefined {
  if (head === null) return body === null ? undefined : readEnvelope(body)
  // Into the object that was read, not into a copy: this is done for every item that is claimed.
  const read = JSON.parse(head) as Record<string, unknown>
  read['id'] = id
  read['type'] = type
  read['groupId'] = groupId
  read['input'] = body === null ? '' : inputFrom(body)
  return envelopeOf(read)
}

/** One run on one line, without what it does not have: most runs have nothing but their times. */
export function attemptText(was: Attempt): string {
  const { attempt, startedAt, endedAt, worker } = was
  for (const name in was) if (!USUAL.has(name) && was[name as keyof Attempt] !== undefined) return failureText(was)
  // As JSON.stringify writes it, for numbers that JSON has.
  if (!Number.isFinite(attempt + startedAt + endedAt)) return failureText(was)
  if (lastWorker.id !== worker) lastWorker = { id: worker, text: JSON.stringify(worker) }
  return `[${attempt},${startedAt},${endedAt},${lastWorker.text}]`
}

const USUAL: ReadonlySet<string> = new Set(['attempt', 'startedAt', 'endedAt', 'worker'])
/** One worker writes thousands of runs in a row. */
let lastWorker = { id: '', text: '""' }

function failureText({ attempt, startedAt, endedAt, worker, ...failure }: Attempt): string {
  const line: unknown[] = [attempt, startedAt, endedAt, worker]
  if (Object.keys(failure).length > 0) line.push(failure)
  return toWellFormed(JSON.stringify(line))
}

export function attemptsFrom(text: string): Attempt[] {
  return text.split('\n').map((line) => {
    const [attempt, startedAt, endedAt, worker, failure] = JSON.parse(line) as [number, number, number, string, object?]
    return { attempt, startedAt, endedAt, worker, ...failure }
  })
}

/** The record of a worker, as text. */
export function workerText(me: WorkerRecord): string {
  return toWellFormed(stringifyWithInfinity(me))
}

export function workerFrom(text: string): WorkerRecord {
  return readEndless<WorkerRecord>(text)
}
