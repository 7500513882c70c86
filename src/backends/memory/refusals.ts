import type { At } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import { writeEnvelope } from '../../ports/envelope.js'
import type { Envelope } from '../../ports/item.js'
import type { CommitResult, Effect } from '../../ports/settlement.js'
import { deadLetterOf } from './adopt.js'
import type { Book } from './book.js'
import { groupValue } from './group-record.js'

/** A character takes at most six bytes in JSON, and fields beside the input at most this much unless they are lists. */
const BYTES_PER_CHARACTER = 6
const OTHER_FIELDS = 16_384
/** A list longer than this is measured. */
const SHORT_LIST = 64

/**
 * Whatever could keep a settlement from happening as a whole, found before the first of its effects: something too large, a
 * name that cannot be one, a group whose value moved on.
 */
export function refusalOf(
  book: Book,
  effects: readonly Effect[],
  maxItemBytes: number,
  now: At,
): CommitResult | undefined {
  for (let index = 0; index < effects.length; index += 1) {
    const effect = effects[index]!
    let refusal: CommitResult | undefined
    switch (effect.do) {
      case 'push':
        refusal = effect.queue === '' ? badQueue() : tooLargeItem(effect.item, maxItemBytes)
        break
      case 'finish':
        if (effect.result !== undefined) refusal = tooLargeText('result', effect.id, effect.result, maxItemBytes)
        break
      case 'contribute':
        refusal =
          tooLargeText('group value', effect.groupId, effect.value, maxItemBytes) ??
          (effect.expect === undefined ? undefined : conflict(book, effects, index, now))
        break
      case 'reopen': {
        const record = book.item(effect.id, now)
        // Nothing to run again: it is open already, or its input was not kept.
        if (record === undefined || !record.hasEnded || !hasBody(book, effect.id, now)) refusal = { kind: 'stale' }
        break
      }
      case 'recordAttempt':
      case 'retryAt':
      case 'release':
      case 'park':
      case 'erase':
      case 'openGroup':
      case 'closeGroup':
      case 'openGate':
      case 'tellGate':
      case 'notify':
      case 'schedule':
      case 'cancel':
      case 'pause':
      case 'resume':
      case 'log':
        break
      default:
        // An effect that nobody knows is found here, before the first of its neighbours has happened.
        unreachable(effect)
    }
    if (refusal !== undefined) return refusal
  }
  return undefined
}

/** The version is that which the group will have when this effect's turn comes. */
function conflict(book: Book, effects: readonly Effect[], index: number, now: At): CommitResult | undefined {
  const effect = effects[index]
  if (effect?.do !== 'contribute') return undefined
  const { groupId, expect } = effect
  const group = book.group(groupId, now)
  const isLocked = group?.final !== undefined
  let version = group?.version ?? 0
  for (let before = 0; before < index && !isLocked; before += 1) {
    const earlier = effects[before]!
    if (earlier.do === 'contribute' && earlier.groupId === groupId) version += 1
  }
  return version === expect ? undefined : { kind: 'conflict', groupId, now: groupValue(group) }
}

function hasBody(book: Book, id: string, now: At): boolean {
  return book.item(id, now)?.hasInput === true || deadLetterOf(book, id) !== undefined
}

function tooLargeItem(item: Envelope, limit: number): CommitResult | undefined {
  const isSurelySmall =
    item.input.length * BYTES_PER_CHARACTER + OTHER_FIELDS <= limit &&
    (item.tags === undefined || item.tags.length <= SHORT_LIST) &&
    (item.dependents === undefined || item.dependents.length <= SHORT_LIST)
  if (isSurelySmall) return undefined
  const bytes = Buffer.byteLength(writeEnvelope(item))
  return bytes <= limit ? undefined : tooLarge(`item ${item.id}`, bytes, limit)
}

function tooLargeText(what: string, of: string, text: string, limit: number): CommitResult | undefined {
  if (text.length * 3 <= limit) return undefined
  const bytes = Buffer.byteLength(text)
  return bytes <= limit ? undefined : tooLarge(`${what} of ${of}`, bytes, limit)
}

function tooLarge(what: string, bytes: number, limit: number): CommitResult {
  const message =
    `The ${what} takes ${bytes} bytes; the limit is ${limit}. ` +
    'Store it elsewhere and enqueue a reference to it, or raise maxItemBytes.'
  return { kind: 'refused', code: 'TOO_LARGE', message, limit }
}

function badQueue(): CommitResult {
  return { kind: 'refused', code: 'BAD_NAME', message: 'A queue has to have a name: an empty one was given.' }
}
