import type { Database } from 'better-sqlite3'

/** What the guard and the effects of a settlement need to know of an item. Rows come as arrays: objects cost twice as much. */
export type GuardRow = readonly [
  seq: number,
  token: string | null,
  settledBy: string | null,
  state: number,
  isGated: number,
  isAlone: number,
  goneAt: number | null,
]

export type GroupRow = readonly [open: number, value: string | null, final: number, version: number, aloneSeq?: number]

export interface GateRow {
  readonly holds: string
  readonly need: number
  readonly left: number
  readonly of: 'done' | 'success'
}

export type ReadyRow = readonly [
  seq: number,
  id: string,
  type: string,
  groupId: string,
  priority: number,
  attempt: number,
  queueAt: number,
  startAt: number,
  input: string,
  rest: string | null,
  fence: number,
  lapses: number,
  crashes: number,
  deliveries: number,
  gateMet: number | null,
]

export type Statements = ReturnType<typeof prepareStatements>

/** Every statement by name, with the index it relies on. Parameters are positional, in the order of the text. */
export function prepareStatements(db: Database) {
  const run = <P extends unknown[]>(sql: string) => db.prepare<P>(sql)
  const rows = <P extends unknown[], R>(sql: string) => db.prepare<P, R>(sql).raw()
  const value = <P extends unknown[], R>(sql: string) => db.prepare<P, R>(sql).pluck()
  return {
    // ── items ──
    /** By the unique index on id. */
    guardRow: rows<[id: string], GuardRow>(
      'select seq, token, settled_by, state, is_gated, is_alone, gone_at from item where id = ?',
    ),
    insertItem: run<unknown[]>(`
      insert into item (id, queue, type, group_id, priority, attempt, queue_at, start_at, input, rest,
                        state, due_at, hold_by, hold_key, is_gated, is_alone)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      on conflict (id) do nothing`),
    endItem: run<unknown[]>(`
      update item set state = ?, ending = ?, class = ?, outcome = ?, end_at = ?, gone_at = ?, settled_by = token,
                      token = null, lease_until = null, worker = null, due_at = null, hold_by = null, hold_key = null,
                      group_value = ?, group_final = ?, group_version = ?
      where seq = ?`),
    retryItem: run<[state: number, attempt: number, dueAt: number, startAt: number, seq: number]>(`
      update item set state = ?, attempt = ?, due_at = ?, start_at = ?, deliveries = 0, settled_by = token, token = null,
                      lease_until = null, worker = null, run_at = null, hold_by = null, hold_key = null
      where seq = ?`),
    markGated: run<[id: string]>('update item set is_gated = 1 where id = ? and state < 3'),
    /** Only what this gate still holds: the hold may have ended with its time. */
    freeItem: run<[dueAt: number, met: number, id: string, key: string, now: number]>(`
      update item set state = 0, due_at = ?, gate_met = ?, hold_by = null, hold_key = null
      where id = ? and state < 2 and hold_by = 'gate' and hold_key = ? and (due_at is null or due_at > ?)`),
    deleteItem: run<[seq: number]>('delete from item where seq = ?'),
    /** By item_gone. */
    sweep: run<[now: number, limit: number]>(
      'delete from item where seq in (select seq from item where gone_at <= ? limit ?)',
    ),

    // ── groups ──
    group: rows<[id: string, now: number], GroupRow>(
      'select open, value, final, version from item_group where id = ? and (gone_at is null or gone_at > ?)',
    ),
    /** The group of a root that is alone in it. */
    alone: rows<[id: string], GroupRow>(`
      select state < 3, group_value, group_final, group_version, seq from item where id = ? and is_alone = 1`),
    joined: run<[seq: number]>('update item set is_alone = 0, group_value = null where seq = ?'),
    putGroup: run<unknown[]>(`
      insert into item_group (id, open, value, final, version, gone_at) values (?, ?, ?, ?, ?, ?)
      on conflict (id) do update set open = excluded.open, value = excluded.value, final = excluded.final,
                                     version = excluded.version, gone_at = excluded.gone_at`),
    /** By item_group_gone. */
    sweepGroups: run<[now: number, limit: number]>(
      'delete from item_group where id in (select id from item_group where gone_at <= ? limit ?)',
    ),

    // ── gates ──
    gate: db.prepare<[key: string], GateRow>('select holds, need, left, of from gate where key = ?'),
    putGate: run<[key: string, holds: string, need: number, left: number, of: string]>(`
      insert into gate (key, holds, need, left, of) values (?, ?, ?, ?, ?)
      on conflict (key) do update set need = excluded.need, left = excluded.left`),
    deleteGate: run<[key: string]>('delete from gate where key = ?'),
    anyMember: value<[], number>('select exists (select 1 from gate_member)'),
    addMember: run<[gate: string, member: string]>('insert into gate_member (gate, member) values (?, ?)'),
    /** By gate_member_member. */
    gatesOf: value<[member: string], string>('select gate from gate_member where member = ?'),
    tellMember: run<[gate: string, member: string]>('delete from gate_member where gate = ? and member = ?'),
    deleteMembers: run<[gate: string]>('delete from gate_member where gate = ?'),

    // ── claim ──
    /** By item_leased. The item keeps its due time and hence its place. */
    reclaim: run<[now: number, limit: number]>(`
      update item set state = 0, lapses = lapses + 1, crashes = crashes + (run_at is not null),
                      token = null, lease_until = null, worker = null, run_at = null
      where seq in (select seq from item where state = 2 and lease_until <= ? order by lease_until limit ?)`),
    /** By item_later. A hold ends with its time. */
    promote: run<[queue: string, now: number, limit: number]>(`
      update item set state = 0
      where seq in (select seq from item where queue = ? and state = 1 and due_at <= ? order by due_at limit ?)`),
    /** By item_ready: the same rows as `lease` with the same queue and limit, in their order. */
    ready: rows<[queue: string, limit: number], ReadyRow>(`
      select seq, id, type, group_id, priority, attempt, queue_at, start_at, input, rest, fence, lapses, crashes, deliveries,
             gate_met
      from item where queue = ? and state = 0 order by priority desc, due_at, seq limit ?`),
    /** By item_ready. */
    lease: run<unknown[]>(`
      update item set state = 2, token = ?, lease_until = ?, worker = ?, run_at = ?, fence = fence + 1,
                      deliveries = deliveries + 1, hold_by = null, hold_key = null
      where seq in (select seq from item where queue = ? and state = 0 order by priority desc, due_at, seq limit ?)`),
    /** By item_ready and item_later. */
    anyReady: value<[queue: string, queue: string, now: number], number>(`
      select exists (select 1 from item where queue = ? and state = 0)
          or exists (select 1 from item where queue = ? and state = 1 and due_at <= ?)`),
    nextDue: value<[queue: string, now: number], number | null>(
      'select min(due_at) from item where queue = ? and state = 1 and due_at > ?',
    ),

    // ── reading ──
    view: db.prepare<[id: string], Record<string, string | number | null>>('select * from item where id = ?'),
  }
}
