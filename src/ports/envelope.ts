import type { At } from '../core/time/time.js'
import type { Envelope, EnvelopeHead } from './item.js'

/** Each tag is an entry of an index, written with the item. */
export const MOST_TAGS = 32

/**
 * Reads a body as an envelope. Anything that is a JSON object with string `id`, `type`, `groupId` and `input` is one, also
 * when it was written by hand: what else is missing gets its default. Fields we do not know stay, so that they survive a
 * re-push; a known field of the wrong type reads as absent, because nothing could be done with it.
 * Undefined: not an envelope. Such a body is still stored and delivered, and then dropped with a report.
 */
export function readEnvelope(body: string): Envelope | undefined {
  const read = parsed(body)
  return read === undefined ? undefined : envelopeOf(read)
}

/** As `readEnvelope`, of a body that was read as JSON already. The object itself becomes the envelope. */
export function envelopeOf(read: Record<string, unknown>): Envelope | undefined {
  if (typeof read['id'] !== 'string' || typeof read['type'] !== 'string') return undefined
  if (typeof read['groupId'] !== 'string' || typeof read['input'] !== 'string') return undefined
  read['queueAt'] = numberOr(read['queueAt'], 0)
  read['startAt'] = numberOr(read['startAt'], 0)
  read['attempt'] = Math.max(1, Math.floor(numberOr(read['attempt'], 1)))
  read['priority'] = numberOr(read['priority'], 0)
  for (const [name, fits] of OPTIONAL) if (name in read && !fits(read[name])) delete read[name]
  const tags = read['tags'] as readonly string[] | undefined
  // A body that was pushed by hand is not refused: what exceeds the limit is left out.
  if (tags !== undefined && tags.length > MOST_TAGS) read['tags'] = tags.slice(0, MOST_TAGS)
  // Every named field was checked above; the rest is `unknown` in the type as well.
  return read as Envelope
}

/** The body of an item: its envelope as JSON. */
export function writeEnvelope(envelope: Envelope): string {
  return JSON.stringify(envelope)
}

/** The envelope of the next try: same item, another attempt number, another earliest start. */
export function nextTry(envelope: Envelope, attempt: number, startAt: At): Envelope {
  return { ...envelope, attempt, startAt }
}

/**
 * The envelope of a redriven item: as if enqueued now, for the first time, but it remembers that it was redriven. A deadline
 * that has passed is dropped, because with it the item would only expire again.
 */
export function redrivenEnvelope(envelope: Envelope, now: At, startAt: At): Envelope {
  const { deadline, ...kept } = envelope
  const next = { ...kept, attempt: 1, queueAt: now, startAt, redrives: (envelope.redrives ?? 0) + 1 }
  return deadline === undefined || deadline <= now ? next : { ...next, deadline }
}

/** Its deadline has passed: it is to be ended, and not to run. */
export function isExpired({ deadline }: Pick<EnvelopeHead, 'deadline'>, now: At): boolean {
  return deadline !== undefined && now > deadline
}

const isText = (value: unknown): boolean => typeof value === 'string'
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value)
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText)
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

const OPTIONAL: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ['v', isNumber],
  ['group', isText],
  ['retry', isObject],
  ['deadline', isNumber],
  ['parent', isText],
  ['dependents', isTexts],
  ['references', isText],
  ['gates', isTexts],
  ['tags', isTexts],
  ['waiter', isText],
  ['trace', isObject],
  ['redrives', isNumber],
  ['runTimeout', isNumber],
  ['strictDeadline', isFlag],
  ['payloadVersion', isNumber],
]

function parsed(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return isObject(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function numberOr(value: unknown, fallback: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : fallback
}
