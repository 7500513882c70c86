import { unreachable } from '../../core/unreachable.js'
import { toWellFormed } from '../../core/well-formed.js'
import type { Status } from '../../ports/item.js'
import type { Effect, Guard, Settlement } from '../../ports/settlement.js'
import { attemptText } from './attempt-text.js'
import { bodyTexts } from './body-text.js'
import { msWord } from './time.js'

type Words = (string | number)[]
type Of<Word extends Effect['do']> = Extract<Effect, { readonly do: Word }>

const LETTERS: Readonly<Record<Status, string>> = { pending: 'p', running: 'r', success: 's', dead: 'd' }
/** How long a group is kept that was closed by no item. */
const DAY = 86_400_000

/**
 * A batch as the words that commit.lua reads: flat, because the server, which everybody shares, reads them several times as fast
 * as one JSON text. The items and groups that it speaks of come first, so that the script loads them in one call each.
 */
export class BatchWords {
  readonly #ids = new Set<string>()
  readonly #groups = new Set<string>()
  readonly #words: Words = []

  /** Adds one. If it makes no sense (an effect without its fields) this throws, and it is as if it had not been added. */
  add(settlement: Settlement): void {
    const { length } = this.#words
    try {
      encodeSettlement(this.#words, settlement, this.#ids, this.#groups)
    } catch (error) {
      this.#words.length = length
      throw error
    }
  }

  all(): Words {
    return [this.#ids.size, ...this.#ids, this.#groups.size, ...this.#groups].concat(this.#words)
  }
}

function encodeSettlement(words: Words, { guard, effects }: Settlement, ids: Set<string>, groups: Set<string>): void {
  encodeGuard(words, guard, ids)
  const countAt = words.push(0) - 1
  for (const effect of effects) {
    if (effect.do === 'contribute' && effect.expect !== undefined) words.push('expect', effect.groupId, effect.expect)
    else if (effect.do === 'reopen') words.push('ended', effect.id)
  }
  const keep = keepOf(effects)
  for (const effect of effects) encodeEffect(words, effect, keep, ids, groups)
  // A settlement whose guard does not hold is skipped by this count.
  words[countAt] = words.length - 1 - countAt
}

function encodeGuard(words: Words, guard: Guard, ids: Set<string>): void {
  switch (guard.by) {
    case 'lease':
      ids.add(guard.lease.id)
      words.push('lease', guard.lease.id, guard.lease.token)
      return
    case 'absent':
      ids.add(guard.id)
      words.push('absent', guard.id, '')
      return
    case 'status':
      ids.add(guard.id)
      words.push('status', guard.id, guard.in.map((status) => LETTERS[status]).join(''))
      return
    case 'fire':
      words.push('fire', guard.name, guard.at === undefined ? '' : String(guard.at))
      return
    case 'none':
      words.push('none', '', '')
      return
    default:
      unreachable(guard)
  }
}

/** A group is kept as long as the item whose end closes it. */
function keepOf(effects: readonly Effect[]): string {
  for (const effect of effects)
    if (effect.do === 'finish' || effect.do === 'park') return msWord(effect.keepMs) || 'never'
  return String(DAY)
}

function encodeEffect(words: Words, effect: Effect, keep: string, ids: Set<string>, groups: Set<string>): void {
  switch (effect.do) {
    case 'push':
      ids.add(effect.item.id)
      encodePush(words, effect)
      return
    case 'recordAttempt':
      ids.add(effect.id)
      words.push(
        'attempt',
        effect.id,
        toWellFormed(effect.was.fingerprint ?? ''),
        String(effect.was.endedAt),
        effect.was.class ?? '',
      )
      words.push(attemptText(effect.was))
      return
    case 'retryAt':
      ids.add(effect.id)
      words.push('retryAt', effect.id, effect.attempt, msWord(effect.delayMs))
      return
    case 'release': {
      ids.add(effect.id)
      const delay = effect.delayMs === undefined ? '' : msWord(effect.delayMs) || 'never'
      words.push('release', effect.id, delay, effect.hold?.by ?? '', effect.hold?.key ?? '')
      return
    }
    case 'finish': {
      ids.add(effect.id)
      const result = effect.result === undefined ? '' : `=${effect.result}`
      words.push('finish', effect.id, effect.ending, msWord(effect.keepMs), result)
      return
    }
    case 'park':
      ids.add(effect.id)
      words.push('park', effect.id, effect.ending, msWord(effect.keepMs), effect.class, toWellFormed(effect.error))
      words.push(toWellFormed(effect.fingerprint ?? ''))
      return
    case 'reopen':
      ids.add(effect.id)
      words.push('reopen', effect.id, msWord(effect.delayMs))
      return
    case 'erase':
      ids.add(effect.id)
      words.push('erase', effect.id)
      return
    case 'openGroup':
    case 'closeGroup':
      groups.add(effect.groupId)
      words.push('move', effect.groupId, effect.do === 'openGroup' ? effect.by : -effect.by, keep)
      return
    case 'contribute':
      groups.add(effect.groupId)
      words.push('contribute', effect.groupId, effect.value, effect.final ? 1 : 0)
      return
    case 'openGate': {
      const members = [...new Set(effect.members)]
      for (const member of members) ids.add(member)
      words.push('openGate', effect.key, effect.holds, effect.need, effect.of, members.length, ...members)
      return
    }
    case 'tellGate':
      words.push('tellGate', effect.key, effect.member, effect.ok ? 1 : 0)
      return
    case 'notify':
      words.push('notify', effect.to, effect.ids.length, ...effect.ids)
      return
    case 'schedule':
      words.push('schedule', effect.name, String(effect.nextAt), effect.spec)
      return
    case 'cancel':
      ids.add(effect.id)
      words.push('cancel', effect.id, toWellFormed(effect.reason))
      return
    case 'pause':
      words.push('pause', `${effect.what}:${effect.name}`)
      return
    case 'resume':
      words.push('resume', `${effect.what}:${effect.name}`, effect.what === 'queue' ? effect.name : '')
      return
    case 'log':
      words.push('log', toWellFormed(JSON.stringify({ who: effect.who, why: effect.why, what: effect.what })))
      return
    default:
      unreachable(effect)
  }
}

function encodePush(words: Words, { item, queue, delayMs, hold, heldBy }: Of<'push'>): void {
  const texts = bodyTexts(item)
  const tags = item.tags === undefined ? [] : [...new Set(item.tags)]
  words.push(
    ...['push', item.id, queue, msWord(delayMs), hold?.by ?? '', hold?.key ?? '', item.groupId, item.type],
    ...[
      String(item.priority + 0),
      item.attempt === 1 ? '' : item.attempt,
      item.waiter ?? '',
      String(item.deadline ?? ''),
    ],
    ...[heldBy?.worker ?? '', heldBy?.token ?? '', heldBy === undefined ? '' : msWord(heldBy.leaseMs)],
    ...[texts.head, texts.body],
    tags.length,
    ...tags,
  )
}
