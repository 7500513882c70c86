import { unreachable } from '../../core/unreachable.js'
import { writeEnvelope } from '../../ports/envelope.js'
import type { CommitResult, Effect, Guard, Settlement } from '../../ports/settlement.js'
import { type BodyTexts, bodyTexts } from './body-text.js'
import { isText } from './names.js'

/** A character takes no more bytes in an envelope: a control character is spelt as an escape. */
const MOST_BYTES = 6
/** What the names in an envelope add, unless they are absurd: the exact size is looked at when this is near. */
const MOST_NAMES = 16_384

type Refused = Extract<CommitResult, { readonly kind: 'refused' }>

/** A settlement that can never be accepted, and the bodies of those that can: they are spelt out once. */
export function refusalOf(
  { guard, effects }: Settlement,
  maxItemBytes: number,
  bodies: Map<Effect, BodyTexts>,
): Refused | undefined {
  const bad = namesOfGuard(guard).find((name) => !isText(name))
  if (bad !== undefined) return badName(bad)
  for (const effect of effects) {
    const refusal = refusalOfEffect(effect, maxItemBytes, bodies)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

function refusalOfEffect(effect: Effect, limit: number, bodies: Map<Effect, BodyTexts>): Refused | undefined {
  const bad = namesOf(effect).find((name) => !isText(name))
  if (bad !== undefined) return badName(bad)
  switch (effect.do) {
    case 'push': {
      if (effect.queue === '')
        return { kind: 'refused', code: 'BAD_NAME', message: 'A queue has to have a name: an empty one was given.' }
      // JSON spells half of a surrogate pair as an escape, so the body itself can always be written.
      const texts = bodyTexts(effect.item)
      bodies.set(effect, texts)
      if ((texts.head.length + texts.body.length) * MOST_BYTES + MOST_NAMES <= limit) return undefined
      return tooLarge(`item ${effect.item.id}`, writeEnvelope(effect.item), limit)
    }
    case 'finish':
      return effect.result === undefined ? undefined : badValue(`result of ${effect.id}`, effect.result, limit)
    case 'contribute':
      return badValue(`group value of ${effect.groupId}`, effect.value, limit)
    default:
      return undefined
  }
}

function namesOfGuard(guard: Guard): readonly string[] {
  switch (guard.by) {
    case 'lease':
      return [guard.lease.id, guard.lease.token]
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

/** What becomes part of a key, a field or a channel. */
function namesOf(effect: Effect): readonly string[] {
  switch (effect.do) {
    case 'push': {
      const { id, groupId, type, waiter, tags = [] } = effect.item
      return [id, groupId, type, effect.queue, waiter ?? '', effect.hold?.key ?? '', ...tags]
    }
    case 'recordAttempt':
      return [effect.id, effect.was.fingerprint ?? '']
    case 'park':
      return [effect.id, effect.fingerprint ?? '']
    case 'retryAt':
    case 'finish':
    case 'reopen':
    case 'erase':
    case 'cancel':
      return [effect.id]
    case 'release':
      return [effect.id, effect.hold?.key ?? '']
    case 'openGroup':
    case 'closeGroup':
    case 'contribute':
      return [effect.groupId]
    case 'openGate':
      return [effect.key, effect.holds, ...effect.members]
    case 'tellGate':
      return [effect.key, effect.member]
    case 'notify':
      return [effect.to, ...effect.ids]
    case 'schedule':
      return [effect.name, effect.spec]
    case 'pause':
    case 'resume':
      return [effect.name]
    case 'log':
      return []
    default:
      // An effect that nobody knows is found here, before the first of its neighbours has happened.
      return unreachable(effect)
  }
}

function badValue(what: string, text: string, limit: number): Refused | undefined {
  if (!isText(text)) {
    const message = `The ${what} holds half of a surrogate pair, which Redis cannot keep as text. Encode it, as JSON does.`
    return { kind: 'refused', code: 'BAD_TEXT', message }
  }
  return tooLarge(what, text, limit)
}

function badName(name: string): Refused {
  const message = `The name ${JSON.stringify(name)} holds half of a surrogate pair, which cannot be part of a key.`
  return { kind: 'refused', code: 'BAD_NAME', message }
}

function tooLarge(what: string, text: string, limit: number): Refused | undefined {
  if (text.length * 3 <= limit) return undefined
  const bytes = Buffer.byteLength(text)
  if (bytes <= limit) return undefined
  const message =
    `The ${what} takes ${bytes} bytes; the limit is ${limit}. ` +
    'Store it elsewhere and enqueue a reference to it, or raise maxItemBytes.'
  return { kind: 'refused', code: 'TOO_LARGE', message, limit }
}
