import { writeEnvelope } from '../../ports/envelope.js'
import type { Envelope } from '../../ports/item.js'
import type { CommitResult, Effect, Settlement } from '../../ports/settlement.js'
import { COLUMNS } from './envelope-columns.js'

/** An entry of an index holds some 2,700 bytes, and some indexes hold two names. */
const MAX_NAME_BYTES = 1_000
/** A character takes at most six bytes in JSON, and fields beside the input at most this much unless they are lists. */
const BYTES_PER_CHARACTER = 6
const OTHER_FIELDS = 16_384
const SHORT_LIST = 64

const SUSPECT = /[\0\ud800-\udfff]/
const UNSTORABLE = /\0|\p{Surrogate}/gu

/** PostgreSQL's text has no U+0000 and no half of a surrogate pair. */
export function isUnstorable(text: string): boolean {
  return SUSPECT.test(text) && text.search(UNSTORABLE) >= 0
}

/** An error is recorded whatever it holds. */
export function storable(text: string): string {
  return SUSPECT.test(text) ? text.replaceAll(UNSTORABLE, '\ufffd') : text
}

/**
 * Why a settlement can never be stored, found before it is sent, so that it cannot fail its neighbours: something too
 * large, a name that cannot be one, a text that PostgreSQL cannot hold.
 */
export function refusalOf({ guard, effects }: Settlement, limit: number): CommitResult | undefined {
  if (guard.by === 'absent' || guard.by === 'status') {
    const refusal = badName('id', guard.id)
    if (refusal !== undefined) return refusal
  }
  for (const effect of effects) {
    const refusal = refusalOfEffect(effect, limit)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

function refusalOfEffect(effect: Effect, limit: number): CommitResult | undefined {
  switch (effect.do) {
    case 'push':
      return refusalOfPush(effect, limit)
    case 'finish':
      return effect.result === undefined ? undefined : badText(`result of ${effect.id}`, effect.result, limit)
    case 'contribute':
      return badName('group', effect.groupId) ?? badText(`group value of ${effect.groupId}`, effect.value, limit)
    case 'openGroup':
    case 'closeGroup':
      return badName('group', effect.groupId)
    case 'openGate':
      return (
        badName('gate', effect.key) ??
        badName('id', effect.holds) ??
        first(effect.members, (member) => badName('id', member))
      )
    case 'tellGate':
      return badName('gate', effect.key) ?? badName('id', effect.member)
    case 'schedule':
      return badName('schedule', effect.name) ?? badText(`spec of ${effect.name}`, effect.spec, limit)
    case 'pause':
    case 'resume':
      return badName(effect.what, effect.name)
    case 'notify':
      return badName('inbox', effect.to) ?? first(effect.ids, (id) => badName('id', id))
    case 'recordAttempt':
    case 'retryAt':
    case 'release':
    case 'park':
    case 'reopen':
    case 'erase':
    case 'cancel':
      return isUnstorable(effect.id) ? unstorable('id') : undefined
    case 'log':
      return undefined
  }
}

function refusalOfPush(
  { item, queue, hold }: Extract<Effect, { do: 'push' }>,
  limit: number,
): CommitResult | undefined {
  if (queue === '') {
    return { kind: 'refused', code: 'BAD_NAME', message: 'A queue has to have a name: an empty one was given.' }
  }
  const named =
    badName('id', item.id) ??
    badName('queue', queue) ??
    badName('type', item.type) ??
    badName('group', item.groupId) ??
    (item.waiter === undefined ? undefined : badName('inbox', item.waiter)) ??
    (hold === undefined ? undefined : badName('hold', hold.key)) ??
    (item.tags === undefined ? undefined : first(item.tags, (tag) => badName('tag', tag)))
  if (named !== undefined) return named
  if (isUnstorable(item.input)) return unstorable(`input of ${item.id}`)
  const field = unstorableField(item as Envelope)
  if (field !== undefined) return unstorable(`"${field}" of ${item.id}`)
  const isSurelySmall =
    item.input.length * BYTES_PER_CHARACTER + OTHER_FIELDS <= limit &&
    (item.tags === undefined || item.tags.length <= SHORT_LIST) &&
    (item.dependents === undefined || item.dependents.length <= SHORT_LIST)
  if (isSurelySmall) return undefined
  return tooLarge(`item ${item.id}`, Buffer.byteLength(writeEnvelope(item as Envelope)), limit)
}

/** In JSON that is written by `JSON.stringify`: an escape that `jsonb` refuses, and not one that is itself escaped. */
const UNSTORABLE_ESCAPE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/

/**
 * A field without a column that cannot be kept. Those fields are one JSON text, in which such a character is an escape: it could be
 * stored, but no longer be read by the server, and then the redrive of that item would fail the batch that it is in.
 */
function unstorableField(item: Envelope): string | undefined {
  for (const name in item) {
    if (COLUMNS.has(name)) continue
    const value = item[name]
    if (isUnstorable(name)) return storable(name)
    if (typeof value === 'string' ? isUnstorable(value) : isUnstorableWithin(value)) return name
  }
  return undefined
}

function isUnstorableWithin(value: unknown): boolean {
  return typeof value === 'object' && value !== null && UNSTORABLE_ESCAPE.test(JSON.stringify(value))
}

function badName(what: string, name: string): CommitResult | undefined {
  if (isUnstorable(name)) return unstorable(what)
  if (name.length * 3 <= MAX_NAME_BYTES) return undefined
  const bytes = Buffer.byteLength(name)
  if (bytes <= MAX_NAME_BYTES) return undefined
  const message = `The name of the ${what} takes ${bytes} bytes; at most ${MAX_NAME_BYTES} can be looked up. Shorten it.`
  return { kind: 'refused', code: 'BAD_NAME', message, limit: MAX_NAME_BYTES }
}

function badText(what: string, text: string, limit: number): CommitResult | undefined {
  if (isUnstorable(text)) return unstorable(what)
  return text.length * 3 <= limit ? undefined : tooLarge(what, Buffer.byteLength(text), limit)
}

function tooLarge(what: string, bytes: number, limit: number): CommitResult | undefined {
  if (bytes <= limit) return undefined
  const message =
    `The ${what} takes ${bytes} bytes; the limit is ${limit}. ` +
    'Store it elsewhere and enqueue a reference to it, or raise maxItemBytes.'
  return { kind: 'refused', code: 'TOO_LARGE', message, limit }
}

function unstorable(what: string): CommitResult {
  const message = `The ${what} holds U+0000 or half of a surrogate pair, which PostgreSQL cannot store. Encode it (base64, JSON).`
  return { kind: 'refused', code: 'BAD_TEXT', message }
}

function first<T>(list: readonly T[], check: (one: T) => CommitResult | undefined): CommitResult | undefined {
  for (const one of list) {
    const found = check(one)
    if (found !== undefined) return found
  }
  return undefined
}
