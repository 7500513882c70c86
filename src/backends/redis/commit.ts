import { toWellFormed } from '../../core/text/well-formed.js'
import { unreachable } from '../../core/unreachable.js'
import type { ItemStatus } from '../../ports/item.js'
import type { ClosedGroup, CommitResult, Effect, EffectOf, Guard, Settlement } from '../../ports/settlement.js'
import { guardedId } from '../shared/check-guard.js'
import { keepsUtf8, refusalOf } from '../shared/refusal.js'
import { keepMsOf } from '../shared/sort-effects.js'
import type { RedisContext } from './context.js'
import { completeLight, enqueueLight } from './light-commit.js'
import { type LightEnd, type LightEnqueue, type LightLease, lightEnd, lightEnqueue } from './light-items.js'
import type { Cell } from './read.js'
import type { Swept } from './retention.js'
import { attemptText, bodyTexts } from './stored-texts.js'
import { msWord } from './time.js'

type Words = (string | number)[]

const LETTERS: Readonly<Record<ItemStatus, string>> = { pending: 'p', running: 'r', completed: 'c', dead: 'd' }
/** The most settlements in one script: while it runs, the server does nothing else. */
const MAX_BATCH = 500

/** The most light items in one script: each takes a fraction of the time. */
const MAX_LIGHT = 1_000
/** A batch that changes between light items and others more often than this is sent as if none were light. */
const MAX_TURNS = 8

/**
 * Commits a batch, in as many scripts as it takes. What ends light items comes first where nothing else in the batch names these items; all
 * else keeps its order, so that items arrive in the order in which they were enqueued.
 */
export async function commitBatch(
  context: RedisContext,
  swept: Swept,
  batch: readonly Settlement[],
): Promise<readonly CommitResult[]> {
  const results: CommitResult[] = new Array(batch.length)
  const ends = new Map<string, LightEnd>()
  const others: number[] = []
  for (let i = 0; i < batch.length; i += 1) {
    const settlement = batch[i]!
    // One that is malformed must not fail the others.
    try {
      // bodyText writes any input, as JSON where it has to: only the other texts are checked. Of an end that wrote no text there is
      // nothing to check: the rest of it came from the server.
      const end = lightEnd(settlement, i)
      const refusal = end?.isChecked === true ? undefined : refusalOf(settlement, context.maxItemBytes, keepsUtf8)
      if (refusal !== undefined) results[i] = refusal
      else if (end !== undefined && !ends.has(end.lease.id)) ends.set(end.lease.id, end)
      else others.push(i)
    } catch (error) {
      results[i] = { kind: 'failed', error }
    }
  }
  const turns = new Turns()
  for (const i of inPlaceOfNamed(batch, ends, others)) {
    try {
      turns.add(i, lightEnqueue(batch[i]!, i))
    } catch (error) {
      results[i] = { kind: 'failed', error }
    }
  }
  const first = [...ends.values()]
  const left = await inPieces(first, (some) => completeLight(context, some))
  for (const { i, lease } of first) results[i] = { kind: 'applied', closed: [closedBy(lease)] }
  for (const { others, light } of turns.all()) {
    for (const { i } of light) results[i] = { kind: 'applied', closed: [] }
    const known = light.length === 0 ? [] : await inPieces(light, (some) => enqueueLight(context, some))
    await commitWhole(context, swept, batch, known.concat(others), results)
  }
  await commitWhole(context, swept, batch, left, results)
  return results
}

const closedBy = ({ id, waiter }: LightLease): ClosedGroup =>
  waiter === undefined ? { groupId: id } : { groupId: id, watched: true }

/**
 * A settlement answers as it would after those before it in its batch, and the count of a group is compared once the whole batch has changed
 * it. So an end whose item another settlement names keeps its place among the others. Replies all that do, in order.
 */
function inPlaceOfNamed(
  batch: readonly Settlement[],
  ends: Map<string, LightEnd>,
  others: readonly number[],
): readonly number[] {
  if (ends.size === 0 || others.length === 0) return others
  const named: number[] = []
  const keep = (id: string): void => {
    const end = ends.get(id)
    if (end === undefined) return
    ends.delete(id)
    named.push(end.i)
  }
  for (const i of others) forEachName(batch[i]!, keep)
  return named.length === 0 ? others : [...others, ...named].sort((a, b) => a - b)
}

/** The items and groups that a settlement names. */
function forEachName({ guard, effects }: Settlement, use: (id: string) => void): void {
  const guarded = guardedId(guard)
  if (guarded !== undefined) use(guarded)
  for (const effect of effects) {
    if ('id' in effect) use(effect.id)
    if ('groupId' in effect) use(effect.groupId)
    if (effect.do === 'enqueue') {
      use(effect.item.id)
      use(effect.item.groupId)
    } else if (effect.do === 'openGate') for (const member of effect.members) use(member)
  }
}

/** Neighbours in a batch that are sent together: light enqueues, or others. */
interface Turn {
  readonly light: LightEnqueue[]
  /** Places in the batch. */
  readonly others: number[]
}

class Turns {
  #turns: Turn[] = []
  /** A script of light items knows each id once. */
  readonly #ids = new Set<string>()

  add(i: number, one: LightEnqueue | undefined): void {
    const isLight = one !== undefined && !this.#ids.has(one.enqueue.item.id)
    let last = this.#turns.at(-1)
    if (last === undefined || last.light.length > 0 !== isLight) {
      last = { light: [], others: [] }
      this.#turns.push(last)
    }
    if (!isLight) {
      last.others.push(i)
      return
    }
    this.#ids.add(one.enqueue.item.id)
    last.light.push(one)
  }

  all(): readonly Turn[] {
    if (this.#turns.length <= MAX_TURNS) return this.#turns
    const others = this.#turns.flatMap((turn) => turn.others.concat(turn.light.map(({ i }) => i)))
    return [{ light: [], others }]
  }
}

/** Sends light items. Returns the places in the batch of those that were not applied. */
async function inPieces<T>(
  all: readonly T[],
  send: (some: readonly T[]) => Promise<readonly number[]>,
): Promise<readonly number[]> {
  if (all.length === 0) return []
  if (all.length <= MAX_LIGHT) return send(all)
  const left: number[] = []
  for (let from = 0; from < all.length; from += MAX_LIGHT) left.push(...(await send(all.slice(from, from + MAX_LIGHT))))
  return left
}

/** Commits some settlements of a batch that may do anything. */
async function commitWhole(
  context: RedisContext,
  swept: Swept,
  batch: readonly Settlement[],
  which: readonly number[],
  results: CommitResult[],
): Promise<void> {
  for (let from = 0; from < which.length; from += MAX_BATCH) {
    const words = new BatchWords()
    const sent = which.slice(from, from + MAX_BATCH).filter((i) => {
      const failure = words.add(batch[i]!)
      if (failure !== undefined) results[i] = failure
      return failure === undefined
    })
    if (sent.length === 0) continue
    const reply = (await context.run('commit', words.all())) as readonly unknown[]
    swept.removed(reply[4] as number, reply[3] === 1)
    const settlements = sent.map((i) => batch[i]!)
    resultsFrom(reply, settlements).forEach((result, at) => {
      results[sent[at]!] = result
    })
  }
}

/**
 * A batch as the words that commit.lua reads: flat, because the server, which all processes share, reads them several times as fast
 * as one JSON text. The items and groups that it mentions come first, so that the script loads them in one call each.
 */
class BatchWords {
  readonly #ids = new Set<string>()
  readonly #groups = new Set<string>()
  readonly #words: Words = []

  /** Adds one. If it makes no sense (an effect without its fields) it is as if it had not been added, and the result says why. */
  add(settlement: Settlement): CommitResult | undefined {
    const { length } = this.#words
    try {
      encodeSettlement(this.#words, settlement, this.#ids, this.#groups)
      return undefined
    } catch (error) {
      this.#words.length = length
      return { kind: 'failed', error }
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
    if (effect.do === 'setGroupValue' && effect.ifVersion !== undefined)
      words.push('expect', effect.groupId, effect.ifVersion)
    else if (effect.do === 'redrive') words.push('ended', effect.id)
  }
  const keep = msWord(keepMsOf(effects)) || 'never'
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
    case 'schedule':
      words.push('schedule', guard.name, guard.at === undefined ? '' : String(guard.at))
      return
    case 'none':
      words.push('none', '', '')
      return
    default:
      unreachable(guard)
  }
}

function encodeEffect(words: Words, effect: Effect, keep: string, ids: Set<string>, groups: Set<string>): void {
  switch (effect.do) {
    case 'enqueue':
      ids.add(effect.item.id)
      encodeEnqueue(words, effect)
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
    case 'retry':
      ids.add(effect.id)
      words.push('retry', effect.id, effect.attempt, msWord(effect.delayMs))
      return
    case 'release': {
      ids.add(effect.id)
      const delay = effect.delayMs === undefined ? '' : msWord(effect.delayMs) || 'never'
      words.push('release', effect.id, delay, effect.hold?.by ?? '', effect.hold?.key ?? '')
      return
    }
    case 'complete': {
      ids.add(effect.id)
      const result = effect.result === undefined ? '' : `=${effect.result}`
      words.push('complete', effect.id, effect.ending, msWord(effect.keepMs), result)
      return
    }
    case 'deadLetter':
      ids.add(effect.id)
      words.push(
        'deadLetter',
        effect.id,
        effect.ending,
        msWord(effect.keepMs),
        effect.class,
        toWellFormed(effect.error),
      )
      words.push(toWellFormed(effect.fingerprint ?? ''))
      return
    case 'redrive':
      ids.add(effect.id)
      words.push('redrive', effect.id, msWord(effect.delayMs))
      return
    case 'delete':
      ids.add(effect.id)
      words.push('delete', effect.id)
      return
    case 'joinGroup':
    case 'leaveGroup':
      groups.add(effect.groupId)
      words.push('move', effect.groupId, effect.do === 'joinGroup' ? effect.count : -effect.count, keep)
      return
    case 'setGroupValue':
      groups.add(effect.groupId)
      words.push('setGroupValue', effect.groupId, effect.value, effect.final ? 1 : 0)
      return
    case 'openGate': {
      const members = [...new Set(effect.members)]
      for (const member of members) ids.add(member)
      words.push('openGate', effect.key, effect.heldId, effect.need, effect.of, members.length, ...members)
      return
    }
    case 'notifyGate':
      words.push('notifyGate', effect.key, effect.member, effect.completed ? 1 : 0)
      return
    case 'notify':
      words.push('notify', effect.inbox, effect.ids.length, ...effect.ids)
      return
    case 'schedule':
      words.push('schedule', effect.name, String(effect.nextAt), effect.spec)
      return
    case 'requestCancel':
      ids.add(effect.id)
      words.push('requestCancel', effect.id, toWellFormed(effect.reason))
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

function encodeEnqueue(words: Words, { item, queue, delayMs, hold, leasedTo }: EffectOf<'enqueue'>): void {
  const texts = bodyTexts(item)
  const tags = item.tags === undefined ? [] : [...new Set(item.tags)]
  words.push(
    ...['enqueue', item.id, queue, msWord(delayMs), hold?.by ?? '', hold?.key ?? '', item.groupId, item.type],
    ...[
      String(item.priority + 0),
      item.attempt === 1 ? '' : item.attempt,
      item.waiter ?? '',
      String(item.deadline ?? ''),
    ],
    ...[leasedTo?.worker ?? '', leasedTo?.token ?? '', leasedTo === undefined ? '' : msWord(leasedTo.leaseMs)],
    ...[texts.head, texts.body],
    tags.length,
    ...tags,
  )
}

/** The reply of commit.lua, for the settlements that were sent. */
function resultsFrom(reply: unknown, sent: readonly Settlement[]): CommitResult[] {
  const [kinds, closed, conflicts] = reply as [string, Cell[], Cell[]]
  const results = sent.map((settlement, i): CommitResult => {
    switch (kinds[i]) {
      case 'a':
        return { kind: 'applied', closed: [] }
      case 'r':
        return { kind: 'repeated', id: guardedId(settlement.guard) ?? '' }
      default:
        return { kind: 'stale' }
    }
  })
  for (let i = 0; i < closed.length; i += 4) {
    const at = Number(closed[i]) - 1
    const value = closed[i + 2] ?? null
    const one = {
      groupId: String(closed[i + 1]),
      ...(value === null ? undefined : { value: String(value) }),
      ...(closed[i + 3] === 1 ? { watched: true } : undefined),
    }
    const known = results[at]
    results[at] = { kind: 'applied', closed: [...(known?.kind === 'applied' ? known.closed : []), one] }
  }
  for (let i = 0; i < conflicts.length; i += 5) {
    const value = conflicts[i + 2] ?? null
    const now = {
      ...(value === null ? undefined : { value: String(value) }),
      final: conflicts[i + 3] === 1,
      version: Number(conflicts[i + 4]),
    }
    results[Number(conflicts[i]) - 1] = { kind: 'conflict', groupId: String(conflicts[i + 1]), now }
  }
  return results
}
