import { unreachable } from '../../core/unreachable.js'
import type { CommitResult, Guard } from '../../ports/settlement.js'
import type { Book } from './book.js'
import type { Commit } from './commit-step.js'
import { canFire } from './schedules.js'

const STALE: CommitResult = Object.freeze({ kind: 'stale' })

/** Undefined: the guard holds, and what it found is noted. Otherwise what became of the settlement: nothing of it happens. */
export function guardResult(book: Book, guard: Guard, commit: Commit): CommitResult | undefined {
  const { now } = commit
  commit.guarded = undefined
  commit.absent = undefined
  commit.group = undefined
  commit.opening = undefined
  switch (guard.by) {
    case 'lease': {
      const { id, token } = guard.lease
      const record = book.known(id)
      if (record === undefined) return STALE
      if (record.message?.lease?.token === token) {
        commit.guarded = record
        return undefined
      }
      return record.settledBy === token ? { kind: 'repeated', id } : STALE
    }
    case 'absent':
      if (book.item(guard.id, now) !== undefined) return { kind: 'repeated', id: guard.id }
      commit.absent = guard.id
      return undefined
    case 'status': {
      const record = book.item(guard.id, now)
      if (record === undefined || !guard.in.includes(record.status)) return STALE
      commit.guarded = record
      return undefined
    }
    case 'fire':
      return canFire(book, guard.name, guard.at, now) ? undefined : STALE
    case 'none':
      return undefined
    default:
      return unreachable(guard)
  }
}
