import { keepsAnything, refusalOf } from '../../src/backends/shared/refusal.js'
import type { Ms } from '../../src/core/time/time.js'
import { unreachable } from '../../src/core/unreachable.js'
import type { CommitResult, Effect, Guard, Settlement } from '../../src/ports/settlement.js'
import type { Book } from './book.js'
import { applyEffect, freeGates } from './effects.js'
import { groupValue } from './group.js'

const DAY: Ms = 86_400_000

/** Applies a batch: each settlement as a whole or not at all, one after the other. */
export function commit(book: Book, batch: readonly Settlement[]): CommitResult[] {
  book.tidy()
  /** The groups that were moved, and by which settlement last. */
  const moved = new Map<string, number>()
  const results = batch.map((settlement, i): CommitResult => {
    const stopped = refusal(book, settlement) ?? unheld(book, settlement.guard) ?? conflict(book, settlement)
    if (stopped !== undefined) return stopped
    apply(book, settlement)
    for (const effect of settlement.effects) if (movesGroup(effect)) moved.set(effect.groupId, i)
    return { kind: 'applied', closed: [] }
  })
  // Counts are compared only when the whole batch has moved them: what one settlement closes and the next opens stays open.
  for (const [groupId, last] of moved) closeIfEmpty(book, groupId, results, last)
  return results
}

function apply(book: Book, { guard, effects }: Settlement): void {
  const row = guard.by === 'lease' ? book.rows.get(guard.lease.id) : undefined
  if (row !== undefined && guard.by === 'lease') row.settledBy = guard.lease.token
  const end = effects.find((effect) => effect.do === 'complete' || effect.do === 'deadLetter')
  for (const effect of effects) {
    if (movesGroup(effect)) book.group(effect.groupId).keepMs = end?.keepMs ?? DAY
    applyEffect(book, effect)
  }
  freeGates(book)
}

function closeIfEmpty(book: Book, groupId: string, results: CommitResult[], last: number): void {
  const group = book.group(groupId)
  const wasDone = group.isDone
  group.isDone = group.open <= 0
  group.goneAt = group.isDone ? book.now() + group.keepMs : Infinity
  if (wasDone || !group.isDone) return
  const value = group.value === undefined ? {} : { value: group.value }
  const closed = { groupId, ...value, ...(group.watchers.size === 0 ? {} : { watched: true }) }
  for (const to of group.watchers) book.tell(to, { groupIds: [groupId] })
  group.watchers.clear()
  const result = results[last]
  if (result?.kind === 'applied') results[last] = { kind: 'applied', closed: [...result.closed, closed] }
}

const movesGroup = (effect: Effect): effect is Extract<Effect, { do: 'joinGroup' | 'closeGroup' }> =>
  effect.do === 'joinGroup' || effect.do === 'leaveGroup'

/** One that makes no sense fails alone. */
function refusal({ maxItemBytes }: Book, settlement: Settlement): CommitResult | undefined {
  try {
    return refusalOf(settlement, maxItemBytes, keepsAnything)
  } catch (error) {
    return { kind: 'failed', error }
  }
}

/** Undefined: the guard holds. */
function unheld(book: Book, guard: Guard): CommitResult | undefined {
  switch (guard.by) {
    case 'lease': {
      if (book.heldBy(guard.lease) !== undefined) return undefined
      const { id, token } = guard.lease
      return book.rows.get(id)?.settledBy === token ? { kind: 'repeated', id } : { kind: 'stale' }
    }
    case 'absent':
      return book.rows.has(guard.id) ? { kind: 'repeated', id: guard.id } : undefined
    case 'status': {
      const row = book.rows.get(guard.id)
      return row !== undefined && guard.in.includes(row.status) ? undefined : { kind: 'stale' }
    }
    case 'schedule':
      return book.schedules.get(guard.name)?.nextAt === guard.at ? undefined : { kind: 'stale' }
    case 'none':
      return undefined
    default:
      return unreachable(guard)
  }
}

function conflict(book: Book, { effects }: Settlement): CommitResult | undefined {
  for (const effect of effects) {
    if (effect.do !== 'setGroupValue' || effect.ifVersion === undefined) continue
    const { groupId, ifVersion } = effect
    const now = groupValue(book.groups.get(groupId))
    if (now.version !== ifVersion) return { kind: 'conflict', groupId, now }
  }
  return undefined
}
