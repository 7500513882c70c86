import type { At } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import { toWellFormed } from '../../core/well-formed.js'
import { type Judge, keepsUtf8, refusalOf } from '../../ports/refusal.js'
import type { CommitResult, Effect, Settlement } from '../../ports/settlement.js'
import { GateBook } from './gate-book.js'
import { DAY, GroupBook } from './group-book.js'
import { applyToItem, type ItemEffect, type Pass, present } from './item-effects.js'
import type { Leases } from './leases.js'
import { freePaused } from './pauses.js'
import { pushAll } from './push.js'
import type { ItemRow, Statements } from './sql.js'
import { COMPLETED, statusOf } from './states.js'
import type { Told } from './told.js'

type Of<K extends Effect['do']> = Extract<Effect, { do: K }>

const STALE: CommitResult = Object.freeze({ kind: 'stale' })
const NONE: never[] = []
const JUDGE: Judge = { ...keepsUtf8, item: ({ id, input }) => keepsUtf8.text('input', id, input) }

/** The effects of one settlement by what they touch. A settlement is atomic, so their order has little meaning. */
interface Sorted {
  pushes: Of<'push'>[]
  /** What the settlement adds to the open count of each group, all in all. */
  readonly moves: Map<string, number>
  contributions: Of<'contribute'>[]
  gates: Of<'openGate'>[]
  tells: Of<'tellGate'>[]
  items: ItemEffect[]
  others: Effect[]
  /** How long what ends here is kept, and the record of a group that it closes. */
  keepMs: number
}

/**
 * Applies a batch inside the caller's write transaction, one settlement after the other. Nobody else writes meanwhile, so a
 * guard that holds goes on holding, and group and gate counts are kept in memory and written once.
 */
export function commitBatch(
  sql: Statements,
  batch: readonly Settlement[],
  now: At,
  leases: Leases,
  maxItemBytes: number,
  told: Told,
): CommitResult[] {
  const groups = new GroupBook(sql, now, told)
  const gates = new GateBook(sql, now, told)
  const pass: Pass = { sql, now, leases, told, groups, gates }
  const results = batch.map((settlement, index) => commitOne(pass, settlement, index, maxItemBytes))
  gates.close()
  for (const { groupId, value, isWatched, settlement } of groups.close()) {
    const result = results[settlement]
    if (result?.kind !== 'applied') continue
    const closed = { groupId, ...(value === null ? {} : { value }), ...(isWatched ? { watched: true } : {}) }
    results[settlement] = { kind: 'applied', closed: [...result.closed, closed] }
  }
  return results
}

function commitOne(pass: Pass, settlement: Settlement, index: number, maxItemBytes: number): CommitResult {
  const stoppedBefore = refused(settlement, maxItemBytes)
  if (stoppedBefore !== undefined) return stoppedBefore
  const { guard } = settlement
  let row: ItemRow | undefined
  switch (guard.by) {
    case 'lease': {
      const { id, token } = guard.lease
      row = present(pass, id)
      if (row === undefined) return STALE
      if (row[1] !== token) return row[2] === token ? { kind: 'repeated', id } : STALE
      pass.groups.know(id, row)
      break
    }
    case 'absent':
      if (present(pass, guard.id) !== undefined) return { kind: 'repeated', id: guard.id }
      break
    case 'status':
      row = present(pass, guard.id)
      if (row === undefined || !guard.in.includes(statusOf(row[3]))) return STALE
      break
    case 'fire':
      if (pass.sql.schedule.get(guard.name)?.[0] !== guard.at) return STALE
      break
    case 'none':
      break
    default:
      return unreachable(guard)
  }
  const sorted = sortEffects(settlement)
  const stopped = conflict(pass, sorted) ?? unopenable(pass, sorted)
  if (stopped !== undefined) return stopped
  apply(pass, sorted, row, guard, index)
  return { kind: 'applied', closed: NONE }
}

/** One that makes no sense (an effect without its fields) must not take its neighbours with it. */
function refused(settlement: Settlement, maxItemBytes: number): CommitResult | undefined {
  try {
    return refusalOf(settlement, maxItemBytes, JUDGE)
  } catch (error) {
    return { kind: 'failed', error }
  }
}

function sortEffects({ effects }: Settlement): Sorted {
  const sorted: Sorted = {
    pushes: NONE,
    moves: new Map(),
    contributions: NONE,
    gates: NONE,
    tells: NONE,
    items: NONE,
    others: NONE,
    keepMs: DAY,
  }
  let hasEnd = false
  for (const effect of effects) {
    switch (effect.do) {
      case 'push':
        sorted.pushes = added(sorted.pushes, effect)
        break
      case 'openGroup':
        sorted.moves.set(effect.groupId, (sorted.moves.get(effect.groupId) ?? 0) + effect.by)
        break
      case 'closeGroup':
        sorted.moves.set(effect.groupId, (sorted.moves.get(effect.groupId) ?? 0) - effect.by)
        break
      case 'contribute':
        sorted.contributions = added(sorted.contributions, effect)
        break
      case 'openGate':
        sorted.gates = added(sorted.gates, effect)
        break
      case 'tellGate':
        sorted.tells = added(sorted.tells, effect)
        break
      case 'finish':
      case 'park':
        if (!hasEnd) sorted.keepMs = effect.keepMs
        hasEnd = true
        sorted.items = added(sorted.items, effect)
        break
      case 'recordAttempt':
      case 'retryAt':
      case 'release':
      case 'reopen':
      case 'erase':
      case 'cancel':
        sorted.items = added(sorted.items, effect)
        break
      case 'notify':
      case 'schedule':
      case 'pause':
      case 'resume':
      case 'log':
        sorted.others = added(sorted.others, effect)
        break
      default:
        unreachable(effect)
    }
  }
  return sorted
}

/** Most settlements have one or two effects of a kind, and none of most kinds. */
function added<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one]
  list.push(one)
  return list
}

/** The version is that which the group will have when the effect's turn comes. */
function conflict({ groups }: Pass, { contributions }: Sorted): CommitResult | undefined {
  for (const [i, { groupId, expect }] of contributions.entries()) {
    if (expect === undefined) continue
    const now = groups.value(groupId)
    const before = now.final ? 0 : contributions.slice(0, i).filter((earlier) => earlier.groupId === groupId).length
    if (now.version + before !== expect) return { kind: 'conflict', groupId, now }
  }
  return undefined
}

/** What has not ended cannot be opened again. */
function unopenable(pass: Pass, { items }: Sorted): CommitResult | undefined {
  for (const effect of items)
    if (effect.do === 'reopen' && (present(pass, effect.id)?.[3] ?? 0) < COMPLETED) return STALE
  return undefined
}

function apply(pass: Pass, sorted: Sorted, row: ItemRow | undefined, guard: Settlement['guard'], index: number): void {
  const { groups, gates } = pass
  if (sorted.pushes.length > 0) pushAll(pass, sorted.pushes, sorted.moves, sorted.contributions)
  for (const [groupId, by] of sorted.moves) groups.move(groupId, by, index, sorted.keepMs)
  for (const { groupId, value, final } of sorted.contributions) groups.contribute(groupId, value, final)
  for (const gate of sorted.gates) gates.open(gate)
  const guarded = guard.by === 'lease' ? guard.lease.id : guard.by === 'status' ? guard.id : undefined
  // The row was read before the gates of this settlement were opened.
  const known = sorted.gates.length > 0 ? undefined : row
  if (sorted.items.length > 0) applyToItem(pass, sorted.items, guarded, known, guard.by === 'lease')
  for (const { key, member, ok } of sorted.tells) gates.tell(key, member, ok)
  for (const effect of sorted.others) applyOther(pass, effect)
}

function applyOther({ sql, now, told }: Pass, effect: Effect): void {
  switch (effect.do) {
    case 'notify':
      for (const id of effect.ids) told.end(effect.to, id)
      return
    case 'schedule':
      sql.putSchedule.run(effect.name, effect.spec, effect.nextAt)
      return
    case 'pause':
      sql.putPause.run(effect.what, effect.name)
      return
    case 'resume':
      if (sql.endPause.run(effect.what, effect.name) > 0) freePaused(sql, effect.what, effect.name, now, told)
      return
    case 'log':
      sql.addAudit.run(now, toWellFormed(effect.who), toWellFormed(effect.why), toWellFormed(effect.what))
      return
    default:
      return
  }
}
