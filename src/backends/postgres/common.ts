import type { EffectOf, Guard, Settlement } from '../../ports/settlement.js'
import { guardedId } from './guarded-id.js'

/** So many settlements go into one statement: their places are numbered in twenty bits. */
export const MOST_AT_ONCE = 1_000

/** What joins texts on their way to the server. A settlement in which it occurs is not sent that way. */
export const SEPARATOR = '\x1f'

/** The push of a new item that is the only member of its group. */
export interface CommonPush {
  readonly guard: Guard
  readonly push: EffectOf<'enqueue'>
}

/** The end of an item that is, as far as its settlement shows, the only member of its group. */
export interface CommonEnd {
  readonly guard: Extract<Guard, { readonly by: 'lease' }>
  readonly complete: EffectOf<'complete'>
  readonly run: EffectOf<'recordAttempt'>['was'] | undefined
  /** Of its group: none, its result, or its result for good. */
  readonly value: '0' | '1' | '2'
}

/** What it is if it only adds an item that nothing has to do with yet, as most enqueues from outside do. */
function commonPush({ guard, effects }: Settlement): CommonPush | undefined {
  if (guard.by !== 'absent' || effects.length !== 2) return undefined
  let push: CommonPush['push'] | undefined
  let joins = false
  for (const effect of effects) {
    if (effect.do === 'enqueue') push = effect
    else if (effect.do === 'joinGroup') joins = effect.groupId === guard.id && effect.count === 1
    else return undefined
  }
  if (push === undefined || !joins || push.hold !== undefined || push.leasedTo !== undefined) return undefined
  const { item, delayMs } = push
  if (item.id !== guard.id || item.groupId !== item.id || delayMs === Infinity) return undefined
  if (item.deadline !== undefined || (item.tags !== undefined && item.tags.length > 0)) return undefined
  return isJoinable(item.id) && isJoinable(item.input) ? { guard, push } : undefined
}

/** What it is if it only completes the item of its lease, as most runs do. */
function commonEnd({ guard, effects }: Settlement): CommonEnd | undefined {
  if (guard.by !== 'lease' || effects.length > 4) return undefined
  const { id, token } = guard.lease
  let complete: EffectOf<'complete'> | undefined
  let run: CommonEnd['run']
  let contribution: EffectOf<'setGroupValue'> | undefined
  let leaves = false
  for (const effect of effects) {
    switch (effect.do) {
      case 'complete':
        if (complete !== undefined || effect.id !== id || effect.ending !== 'completed') return undefined
        complete = effect
        break
      case 'recordAttempt': {
        const { was } = effect
        if (run !== undefined || effect.id !== id || was.rule !== undefined || was.error !== undefined) return undefined
        if (was.class !== undefined || was.fingerprint !== undefined || was.detail !== undefined) return undefined
        run = was
        break
      }
      case 'leaveGroup':
        if (leaves || effect.groupId !== id || effect.count !== 1) return undefined
        leaves = true
        break
      case 'setGroupValue':
        if (contribution !== undefined || effect.groupId !== id || effect.ifVersion !== undefined) return undefined
        contribution = effect
        break
      default:
        return undefined
    }
  }
  if (complete === undefined || !leaves || !isJoinable(id) || !isJoinable(token)) return undefined
  const { result } = complete
  if (result !== undefined && !isJoinable(result)) return undefined
  if (contribution === undefined) return { guard, complete, run, value: '0' }
  // Stored once.
  if (contribution.value !== result) return undefined
  return { guard, complete, run, value: contribution.final ? '2' : '1' }
}

/** An empty text would be lost where all are empty. */
const isJoinable = (text: string): boolean => text !== '' && !text.includes(SEPARATOR)

/** Whether two ends share what is the same for all of a statement. Almost all do. */
const areAlike = (a: CommonEnd, b: CommonEnd): boolean =>
  a.complete.keepMs === b.complete.keepMs && a.run?.worker === b.run?.worker

/** A batch in parts: places of what goes each way, in the order of the batch. */
export interface Parts {
  readonly ends: { readonly at: number; readonly end: CommonEnd }[]
  readonly pushes: { readonly at: number; readonly push: CommonPush }[]
  readonly rest: number[]
}

/**
 * Which settlements of a batch go by the short statements, the ends by one and the pushes by another. They go apart from the rest, so none of the
 * rest may have to do with their items; and items arrive in the order of the batch, so all pushes go the same way. `isOut`: it is not sent at all.
 */
export function sortOut(batch: readonly Settlement[], isOut: (place: number) => boolean): Parts {
  const parts: Parts = { ends: [], pushes: [], rest: [] }
  const ids = new Set<string>()
  for (let at = 0; at < batch.length; at += 1) {
    if (isOut(at)) continue
    const settlement = batch[at]!
    const end = commonEnd(settlement)
    const push = end === undefined ? commonPush(settlement) : undefined
    const id = guardedId(settlement.guard)
    const isOdd = end === undefined ? push === undefined : parts.ends.length > 0 && !areAlike(end, parts.ends[0]!.end)
    if (isOdd || ids.has(id)) parts.rest.push(at)
    else if (end !== undefined) parts.ends.push({ at, end })
    else if (push !== undefined) parts.pushes.push({ at, push })
    ids.add(id)
  }
  if (parts.rest.length === 0) return parts
  const others = new Set<string>()
  for (const at of [...parts.rest, ...parts.pushes.map((push) => push.at)]) addNames(batch[at]!, others)
  const ends = parts.ends.filter(({ end }) => !others.has(end.guard.lease.id))
  const apart = new Set(ends.map(({ at }) => at))
  return { ends, pushes: [], rest: [...batch.keys()].filter((at) => !isOut(at) && !apart.has(at)) }
}

/** Adds every item and group that a settlement names. */
function addNames({ guard, effects }: Settlement, names: Set<string>): void {
  names.add(guardedId(guard))
  for (const effect of effects) {
    if ('id' in effect) names.add(effect.id)
    if ('groupId' in effect) names.add(effect.groupId)
    if (effect.do === 'openGate') for (const id of [effect.heldId, ...effect.members]) names.add(id)
    else if (effect.do === 'notifyGate') names.add(effect.member)
    else if (effect.do === 'enqueue') names.add(effect.item.id).add(effect.item.groupId)
  }
}
