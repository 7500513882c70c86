import { unreachable } from '../../core/unreachable.js'
import { writeEnvelope } from '../../ports/envelope.js'
import type { Envelope } from '../../ports/item.js'
import type { CommitResult, Effect, Guard, Settlement } from '../../ports/settlement.js'
import { isWellFormed } from './text.js'

type Refused = Extract<CommitResult, { kind: 'refused' }>

/** A character takes at most six bytes in JSON, and fields beside the input at most this much unless they are lists. */
const BYTES_PER_CHARACTER = 6
const OTHER_FIELDS = 16_384
const SHORT_LIST = 64

/** Why a settlement can never be accepted, whatever is stored: found before the first of its effects. */
export function refusalOf({ guard, effects }: Settlement, limit: number): Refused | undefined {
  const bad = badName(namesOf(guard))
  if (bad !== undefined) return bad
  for (const effect of effects) {
    const refused = effectRefusal(effect, limit)
    if (refused !== undefined) return refused
  }
  return undefined
}

function effectRefusal(effect: Effect, limit: number): Refused | undefined {
  switch (effect.do) {
    case 'push':
      return pushRefusal(effect, limit)
    case 'finish':
      return effect.result === undefined ? undefined : textRefusal('result', effect.id, effect.result, limit)
    case 'contribute':
      return badName([effect.groupId]) ?? textRefusal('group value', effect.groupId, effect.value, limit)
    case 'openGroup':
    case 'closeGroup':
      return badName([effect.groupId])
    case 'openGate':
      return badName([effect.key, effect.holds]) ?? badName(effect.members)
    case 'tellGate':
      return badName([effect.key, effect.member])
    case 'notify':
      return badName([effect.to]) ?? badName(effect.ids)
    case 'schedule':
      return badName([effect.name, effect.spec])
    case 'pause':
    case 'resume':
      return badName([effect.name])
    case 'recordAttempt':
    case 'retryAt':
    case 'release':
    case 'park':
    case 'reopen':
    case 'erase':
    case 'cancel':
      return badName([effect.id])
    case 'log':
      return undefined
    default:
      return unreachable(effect)
  }
}

function pushRefusal(
  { item, queue, hold, heldBy }: Extract<Effect, { do: 'push' }>,
  limit: number,
): Refused | undefined {
  if (queue === '')
    return { kind: 'refused', code: 'BAD_NAME', message: 'A queue has to have a name: an empty one was given.' }
  return (
    badName([item.id, item.type, item.groupId, queue]) ??
    badName([item.waiter ?? '', hold?.key ?? '', heldBy?.token ?? '', heldBy?.worker ?? '']) ??
    (item.tags === undefined ? undefined : badName(item.tags)) ??
    (isWellFormed(item.input) ? undefined : badText('input', item.id)) ??
    tooLargeItem(item, limit)
  )
}

function namesOf(guard: Guard): readonly string[] {
  switch (guard.by) {
    case 'lease':
      return [guard.lease.id]
    case 'absent':
    case 'status':
      return [guard.id]
    case 'fire':
      return [guard.name]
    case 'none':
      return []
    default:
      return unreachable(guard)
  }
}

function badName(names: readonly string[]): Refused | undefined {
  for (const name of names)
    if (!isWellFormed(name))
      return {
        kind: 'refused',
        code: 'BAD_NAME',
        message: `The name ${JSON.stringify(name)} contains half of a surrogate pair, which UTF-8 cannot hold. Choose another.`,
      }
  return undefined
}

function badText(what: string, of: string): Refused {
  const message = `The ${what} of ${of} contains half of a surrogate pair, which UTF-8 cannot hold. Encode it as JSON.`
  return { kind: 'refused', code: 'BAD_TEXT', message }
}

function textRefusal(what: string, of: string, text: string, limit: number): Refused | undefined {
  if (!isWellFormed(of)) return badName([of])
  if (!isWellFormed(text)) return badText(what, of)
  if (text.length * 3 <= limit) return undefined
  const bytes = Buffer.byteLength(text)
  return bytes <= limit ? undefined : tooLarge(`${what} of ${of}`, bytes, limit)
}

function tooLargeItem(item: Envelope, limit: number): Refused | undefined {
  const isSurelySmall =
    item.input.length * BYTES_PER_CHARACTER + OTHER_FIELDS <= limit &&
    (item.tags === undefined || item.tags.length <= SHORT_LIST) &&
    (item.dependents === undefined || item.dependents.length <= SHORT_LIST)
  if (isSurelySmall) return undefined
  const bytes = Buffer.byteLength(writeEnvelope(item))
  return bytes <= limit ? undefined : tooLarge(`item ${item.id}`, bytes, limit)
}

function tooLarge(what: string, bytes: number, limit: number): Refused {
  const message =
    `The ${what} takes ${bytes} bytes; the limit is ${limit}. ` +
    'Store it elsewhere and enqueue a reference to it, or raise maxItemBytes.'
  return { kind: 'refused', code: 'TOO_LARGE', message, limit }
}
