import type { CommitResult, Effect, Settlement } from '../../../src/ports/settlement.js'
import { restOf } from '../columns.js'
import { type Ending, type SortedEffects, sortEffects, tracedGuard } from '../sorted-effects.js'
import { GateBook } from './gate-book.js'
import { GroupBook } from './group-book.js'
import type { GuardRow, Statements } from './statements.js'

/** Finished items whose time is over, removed with each batch: bounded, so that no batch waits for a big broom. */
const SWEEP = 200

/** One batch on its way. */
interface Pass {
  readonly sql: Statements
  readonly now: number
  readonly groups: GroupBook
  readonly gates: GateBook
}

/**
 * Applies a batch inside the caller's write transaction, one settlement after the other. Nobody else writes meanwhile, so a
 * guard that holds goes on holding, and group and gate counts are kept in memory and written once.
 */
export function commitBatch(sql: Statements, batch: readonly Settlement[], now: number): CommitResult[] {
  sql.sweep.run(now, SWEEP)
  sql.sweepGroups.run(now, SWEEP)
  const pass: Pass = { sql, now, groups: new GroupBook(sql, now), gates: new GateBook(sql, now) }
  const results = batch.map((settlement, index) => commitOne(pass, settlement, index))
  pass.gates.close()
  for (const { groupId, value, settlement } of pass.groups.close()) {
    const result = results[settlement] as Extract<CommitResult, { kind: 'applied' }>
    const closed = value === null ? { groupId } : { groupId, value }
    results[settlement] = { kind: 'applied', closed: [...result.closed, closed] }
  }
  return results
}

function commitOne(pass: Pass, settlement: Settlement, index: number): CommitResult {
  const effects = sortEffects(settlement)
  const { id, token } = tracedGuard(settlement)
  const row = present(pass, id)
  if (token === undefined) {
    if (row !== undefined) return { kind: 'repeated', id }
  } else {
    if (row === undefined) return { kind: 'stale' }
    if (row[1] !== token) return row[2] === token ? { kind: 'repeated', id } : { kind: 'stale' }
    pass.groups.know(id, row)
  }
  const refused = conflict(pass.groups, effects)
  if (refused !== undefined) return refused
  apply(pass, effects, row, index)
  return { kind: 'applied', closed: [] }
}

/** The item, unless its time is over: then its id is free, also where the sweep has not yet come. */
function present({ sql, now }: Pass, id: string): GuardRow | undefined {
  const row = sql.guardRow.get(id)
  if (row === undefined || row[6] === null || row[6] > now) return row
  sql.deleteItem.run(row[0])
  return undefined
}

function conflict(groups: GroupBook, effects: SortedEffects): CommitResult | undefined {
  for (const { groupId, expect } of effects.contributions) {
    if (expect === undefined) continue
    const now = groups.value(groupId)
    if (now.version !== expect) return { kind: 'conflict', groupId, now }
  }
  return undefined
}

function apply(pass: Pass, effects: SortedEffects, row: GuardRow | undefined, index: number): void {
  const { groups, gates } = pass
  const moves = effects.pushes.length === 0 ? effects.moves : pushAll(pass, effects)
  for (const [groupId, by] of moves) groups.move(groupId, by, index, effects.keepMs)
  for (const { groupId, value, final } of effects.contributions) groups.contribute(groupId, value, final)
  for (const gate of effects.gates) gates.open(gate)
  if (effects.ending !== undefined && row !== undefined) end(pass, effects.ending, row, effects.gates.length > 0)
  for (const { key, member, ok } of effects.tells) gates.tell(key, member, ok)
}

/** Pushes, and returns what the settlement then adds to each group. */
function pushAll(pass: Pass, effects: SortedEffects): ReadonlyMap<string, number> {
  const moves = new Map(effects.moves)
  for (const push of effects.pushes) {
    const { id, groupId } = push.item
    const by = moves.get(groupId)
    // A root that comes alone into a group of its own name: the group lives on its row.
    const isAlone =
      id === groupId &&
      by === 1 &&
      !effects.contributions.some((contribution) => contribution.groupId === groupId) &&
      !pass.groups.exists(groupId)
    if (!insert(pass, push, isAlone)) {
      // It is there already, and holds its group open or has done so: counted again it would keep the group open for ever.
      if (by !== undefined) moves.set(groupId, by - 1)
    } else if (isAlone) moves.delete(groupId)
    if (push.hold?.by === 'gate') pass.gates.look(push.hold.key)
  }
  return moves
}

/** False: the id exists. */
function insert({ sql, now, gates }: Pass, push: Extract<Effect, { do: 'push' }>, isAlone: boolean): boolean {
  const { item, queue, delayMs, hold } = push
  const dueAt = delayMs === Infinity ? null : now + delayMs
  const state = dueAt !== null && dueAt <= now ? 0 : 1
  const isGated = Number((item.gates?.length ?? 0) > 0 || gates.awaits(item.id))
  const { changes } = sql.insertItem.run(
    item.id,
    queue,
    item.type,
    item.groupId,
    item.priority,
    item.attempt,
    item.queueAt,
    item.startAt,
    item.input,
    restOf(item),
    state,
    dueAt,
    hold?.by ?? null,
    hold?.key ?? null,
    isGated,
    Number(isAlone),
  )
  return changes === 1
}

function end({ sql, now, groups, gates }: Pass, ending: Ending, row: GuardRow, opensGates: boolean): void {
  const seq = row[0]
  if (ending.do === 'retryAt') {
    const dueAt = now + ending.delayMs
    sql.retryItem.run(ending.delayMs > 0 ? 1 : 0, ending.attempt, dueAt, dueAt, seq)
    return
  }
  const ok = ending.do === 'finish'
  const outcome = ok ? (ending.result ?? null) : ending.error
  const alone = groups.endAlone(ending.id, seq)
  sql.endItem.run(
    ok ? 3 : 4,
    ending.ending,
    ok ? null : ending.class,
    outcome,
    now,
    now + ending.keepMs,
    alone?.value ?? null,
    Number(alone?.final ?? false),
    alone?.version ?? 0,
    seq,
  )
  // The guard was read after the settlements before this one; only its own effects can have opened a gate since.
  if (row[4] === 1 || opensGates) gates.tellAll(ending.id, ok)
}
