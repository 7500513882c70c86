import { isWellFormed } from '../../core/text/well-formed.js'
import { unreachable } from '../../core/unreachable.js'
import { writeEnvelope } from '../../ports/envelope.js'
import type { Envelope } from '../../ports/item.js'
import type { CommitResult, Effect, Guard, Settlement } from '../../ports/settlement.js'

export type Refused = Extract<CommitResult, { readonly kind: 'refused' }>

/** What one backend cannot keep, whatever its size. Undefined: it can. */
export interface StorageLimits {
  /** Something is found or identified by this name. `what` says what has it. */
  name(what: string, name: string): Refused | undefined
  /** `what` of `of` is this text. */
  text(what: string, of: string, text: string): Refused | undefined
  /** The input of an item, and those of its fields that are no names. */
  item?(item: Envelope): Refused | undefined
}

/** Keeps any text. */
export const keepsAnything: StorageLimits = { name: () => undefined, text: () => undefined }

/** Keeps whatever can be written as UTF-8. */
export const keepsUtf8: StorageLimits = {
  name: (_, name) =>
    isWellFormed(name) ? undefined : halfOfAPair('BAD_NAME', `name ${JSON.stringify(name)}`, 'Choose another'),
  text: (what, of, text) =>
    isWellFormed(text) ? undefined : halfOfAPair('BAD_TEXT', `${what} of ${of}`, 'Encode it as JSON'),
}

function halfOfAPair(code: Refused['code'], what: string, remedy: string): Refused {
  const message = `The ${what} holds half of a surrogate pair, which UTF-8 cannot hold. ${remedy}.`
  return { kind: 'refused', code, message }
}

/**
 * Why a settlement can never be accepted, whatever is stored, found before the first of its effects, so that it cannot fail
 * its neighbours: something over `limit` bytes, a queue without a name, or what the backend cannot keep.
 */
export function refusalOf({ guard, effects }: Settlement, limit: number, judge: StorageLimits): Refused | undefined {
  const refused = ofGuard(guard, judge)
  if (refused !== undefined) return refused
  for (const effect of effects) {
    const refused = ofEffect(effect, limit, judge)
    if (refused !== undefined) return refused
  }
  return undefined
}

function ofGuard(guard: Guard, judge: StorageLimits): Refused | undefined {
  switch (guard.by) {
    case 'lease':
      return judge.name('id', guard.lease.id) ?? judge.name('lease', guard.lease.token)
    case 'absent':
    case 'status':
      return judge.name('id', guard.id)
    case 'schedule':
      return judge.name('schedule', guard.name)
    case 'none':
      return undefined
    default:
      return unreachable(guard)
  }
}

function ofEffect(effect: Effect, limit: number, judge: StorageLimits): Refused | undefined {
  switch (effect.do) {
    case 'enqueue':
      return ofPush(effect, limit, judge)
    case 'complete':
      return (
        judge.name('id', effect.id) ??
        (effect.result === undefined ? undefined : ofText('result', effect.id, effect.result, limit, judge))
      )
    case 'setGroupValue':
      return judge.name('group', effect.groupId) ?? ofText('group value', effect.groupId, effect.value, limit, judge)
    case 'joinGroup':
    case 'leaveGroup':
      return judge.name('group', effect.groupId)
    case 'openGate':
      return judge.name('gate', effect.key) ?? judge.name('id', effect.heldId) ?? ofNames('id', effect.members, judge)
    case 'notifyGate':
      return judge.name('gate', effect.key) ?? judge.name('id', effect.member)
    case 'notify':
      return judge.name('inbox', effect.inbox) ?? ofNames('id', effect.ids, judge)
    case 'schedule':
      return judge.name('schedule', effect.name) ?? ofText('spec', effect.name, effect.spec, limit, judge)
    case 'pause':
    case 'resume':
      return judge.name(effect.what, effect.name)
    case 'release':
      return (
        judge.name('id', effect.id) ?? (effect.hold === undefined ? undefined : judge.name('hold', effect.hold.key))
      )
    case 'recordAttempt':
    case 'retry':
    case 'deadLetter':
    case 'redrive':
    case 'delete':
    case 'requestCancel':
      return judge.name('id', effect.id)
    case 'log':
      return undefined
    default:
      // An unknown effect is found here, before any other effect has happened.
      return unreachable(effect)
  }
}

function ofPush(
  { item, queue, hold, leasedTo }: Extract<Effect, { do: 'enqueue' }>,
  limit: number,
  judge: StorageLimits,
): Refused | undefined {
  if (queue === '')
    return { kind: 'refused', code: 'BAD_NAME', message: 'A queue has to have a name: an empty one was given.' }
  return (
    judge.name('id', item.id) ??
    judge.name('queue', queue) ??
    judge.name('type', item.type) ??
    judge.name('group', item.groupId) ??
    (item.waiter === undefined ? undefined : judge.name('inbox', item.waiter)) ??
    (item.tags === undefined ? undefined : ofNames('tag', item.tags, judge)) ??
    (hold === undefined ? undefined : judge.name('hold', hold.key)) ??
    (leasedTo === undefined ? undefined : ofNames('holder', [leasedTo.worker, leasedTo.token], judge)) ??
    judge.item?.(item) ??
    ofSize(item, limit)
  )
}

function ofNames(what: string, names: readonly string[], judge: StorageLimits): Refused | undefined {
  for (const name of names) {
    const refused = judge.name(what, name)
    if (refused !== undefined) return refused
  }
  return undefined
}

function ofText(what: string, of: string, text: string, limit: number, judge: StorageLimits): Refused | undefined {
  const refused = judge.text(what, of, text)
  // A character takes at most three bytes.
  if (refused !== undefined || text.length * 3 <= limit) return refused
  return tooLarge(`${what} of ${of}`, Buffer.byteLength(text), limit)
}

/** A character takes at most six bytes in JSON, and what is not counted here at most this much. */
const BYTES_PER_CHARACTER = 6
const OTHER_FIELDS = 16_384

/** Measured only where it may be too large: that takes as long as all the rest of an enqueue. */
function ofSize(item: Envelope, limit: number): Refused | undefined {
  const { input, group = '', tags, dependents } = item
  const characters = input.length + group.length + lengthOf(tags) + lengthOf(dependents)
  if (characters * BYTES_PER_CHARACTER + OTHER_FIELDS <= limit) return undefined
  return tooLarge(`item ${item.id}`, Buffer.byteLength(writeEnvelope(item)), limit)
}

function lengthOf(texts: readonly string[] | undefined): number {
  let length = 0
  // Three more for the quotes and the comma.
  if (texts !== undefined) for (const text of texts) length += text.length + 3
  return length
}

function tooLarge(what: string, bytes: number, limit: number): Refused | undefined {
  if (bytes <= limit) return undefined
  const message =
    `The ${what} takes ${bytes} bytes; the limit is ${limit}. ` +
    'Store it elsewhere and enqueue a reference to it, or raise maxItemBytes.'
  return { kind: 'refused', code: 'TOO_LARGE', message, limit }
}
