import { LISTED_ERROR_CHARACTERS } from '../../core/text/error-text.js'
import type { SqliteDatabase, SqliteValue } from '../../drivers/sqlite/database.js'
import type { Tables } from './tables.js'

/** What the guard and the effects of a settlement need to know of an item. */
export type ItemRow = readonly [
  seq: number,
  token: string | null,
  settledToken: string | null,
  state: number,
  flags: number,
  keepUntil: number | null,
  waiter: string | null,
  queue: string,
]

export type GroupRow = readonly [
  open: number,
  value: string | null,
  final: number,
  version: number,
  isWatched: number,
  keepUntil: number | null,
  singleSeq: number | null,
]

export type GateRow = readonly [heldId: string, need: number, remaining: number, of: 'done' | 'success']

export type ReadyRow = readonly [
  seq: number,
  id: string,
  type: string,
  groupId: string | null,
  priority: number,
  attempt: number,
  queueAt: number,
  startAt: number,
  input: string,
  rest: string | null,
  waiter: string | null,
  lapses: number,
  crashes: number,
  deliveries: number,
  gateMet: number | null,
  flags: number,
  cancelled: string | null,
  dueAt: number,
  profile: number | null,
]

/** Where a row of `ready` stands among those of its queue and type. */
export type ReadyKey = readonly [rank: number, dueAt: number, seq: number]

export type ViewRow = readonly [
  id: string,
  type: string,
  groupId: string,
  queueAt: number,
  startAt: number,
  attempt: number,
  priority: number,
  waiter: string | null,
  rest: string | null,
  queue: string,
  state: number,
  dueAt: number | null,
  holdBy: string | null,
  holdKey: string | null,
  worker: string | null,
  leaseUntil: number | null,
  runAt: number | null,
  ending: string | null,
  failureClass: string | null,
  outcome: string | null,
  endAt: number | null,
  progress: string | null,
  lapses: number,
  crashes: number,
  keepUntil: number | null,
  fingerprint: string | null,
  cancelled: string | null,
  isRunning: number,
]

export type AttemptRow = readonly [
  attempt: number,
  startedAt: number,
  endedAt: number,
  worker: string,
  failureClass: string | null,
  rule: string | null,
  error: string | null,
  fingerprint: string | null,
  detail: string | null,
]

/** A row of `message` as a pop hands it out. */
export type MessageRow = readonly [
  seq: number,
  body: string,
  delivery: number,
  id: string,
  starts: number,
  note: string | null,
]

export type Statements = ReturnType<typeof prepareStatements>

/** Notifications of other processes are read in pages of this size; a full page is followed by another. */
export const NOTIFICATIONS_PER_READ = 1_000

const READY =
  'i.seq, i.id, i.type, i.group_id, i.priority, i.attempt, i.queue_at, i.start_at, i.input, i.envelope_rest, i.waiter, i.lapses, i.crashes, ' +
  'i.deliveries, i.gate_met, i.flags, i.cancelled, i.due_at, i.profile'

/** The code of its state, of an item `i` that is joined with what holds it, `h`. */
const STATE = 'coalesce(i.state, case when h.seq is null then 0 else 4 end)'

/** The token of the lease `l` that holds it, or null. */
const TOKEN = "case when substr(l.token, -1) = '.' then l.token || i.seq else l.token end"

/** What else the envelope of an item `i` holds. */
const restIn = (t: Tables): string =>
  `coalesce(i.envelope_rest, (select p.rest from ${t.profile} p where p.no = i.profile))`

const viewOf = (t: Tables): string =>
  `i.id, i.type, coalesce(i.group_id, i.id), i.queue_at, i.start_at, i.attempt, i.priority, i.waiter, ${restIn(t)}, i.queue, ${STATE}, ` +
  'i.due_at, i.hold_by, i.hold_key, l.worker, h.until, coalesce(l.at, i.run_at), i.ending, i.class, i.outcome, i.end_at, i.progress, ' +
  'i.lapses, i.crashes, i.keep_until, i.fingerprint, i.cancelled, coalesce(h.is_running, 0)'

/** The same for lists: neither result nor progress is read, and of an error only what a list shows. */
const summaryOf = (t: Tables): string =>
  viewOf(t)
    .replace('i.outcome', `case when i.state > 5 then substr(i.outcome, 1, ${LISTED_ERROR_CHARACTERS + 1}) end`)
    .replace('i.progress', 'null')

/** Retry policies that are computed for each item must not fill the file: beyond so many, each item has its own. */
const MOST_PROFILES = 1_000

/** How many rows one statement writes: one of many rows costs less than as many of one row. */
export const ROWS = [64, 8, 1] as const

const rows = (count: number, row: string): string => Array<string>(count).fill(row).join(', ')

/** A root without anything that has to be looked after: the other columns have their defaults. */
const insertRoots = (t: Tables, count: number): string => `
    insert into ${t.item} (seq, id, queue, type, priority, attempt, queue_at, start_at, input, profile, envelope_rest, waiter, due_at, deadline, flags)
    values ${rows(count, '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 4)')} on conflict (id) do nothing`

const addReady = (t: Tables): string => `
    insert into ${t.ready} (queue, type, rank, due_at, seq)
    select queue, type, -priority, due_at, seq from ${t.item}`

/** An item with what holds it, if anything does. */
const placed = (t: Tables): string =>
  `${t.item} i left join ${t.held} h on h.seq = i.seq left join ${t.lease} l on l.no = h.lease`

/**
 * Every statement by its name, with the index that it relies on. Parameters are positional, in the order of the text. A limit is
 * `+?`: SQLite plans by a bare `limit ?`, and so plans anew whenever another number is bound, which more than doubles a small query.
 */
export const statementTexts = (t: Tables) => ({
  // ── items ──
  /** By the unique index on id. */
  itemRow: `
    select i.seq, ${TOKEN}, i.settled_token, ${STATE}, i.flags, i.keep_until, i.waiter, i.queue from ${placed(t)} where i.id = ?`,
  insertItem: `
    insert into ${t.item} (id, queue, type, group_id, priority, attempt, queue_at, start_at, input, profile, envelope_rest, waiter,
                      state, due_at, wake_at, hold_by, hold_key, flags, deadline)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (id) do nothing returning seq`,
  insertRoots64: insertRoots(t, 64),
  insertRoots8: insertRoots(t, 8),
  insertRoots1: insertRoots(t, 1),
  /** By the unique index on rest; by no. */
  profileOf: `select no from ${t.profile} where rest = ?`,
  addProfile: `insert into ${t.profile} (rest) select ? where (select count(*) from ${t.profile}) < ${MOST_PROFILES} returning no`,
  profile: `select rest from ${t.profile} where no = ?`,
  /** By seq. */
  seqsBetween: `select seq from ${t.item} where seq >= ? and seq < ?`,
  /** The end of most items, guarded in the same statement: by seq, and by the row of its lease. */
  completeRoot: `
    update ${t.item} as i set state = 5, ending = ?, outcome = ?, end_at = ?, keep_until = ?, settled_token = ?, due_at = null,
                    cancelled = null, fingerprint = null, group_value = ?, group_final = ?, group_version = ?,
                    run_at = ?, run_attempt = ?, run_started_at = ?, run_ended_at = ?, run_worker = ?
    where seq = ? and id = ? and state is null and flags = 4 and waiter is null and group_version = 0
      and exists (select 1 from ${t.held} h where h.seq = i.seq and h.lease = ?)`,
  /** By seq, as the others that change one item. */
  endItem: `
    update ${t.item} as i set state = ?, ending = ?, class = ?, outcome = ?, end_at = ?, keep_until = ?,
                    settled_token = coalesce(?, settled_token), fingerprint = coalesce(?, fingerprint),
                    due_at = null, wake_at = null, hold_by = null, hold_key = null, cancelled = null,
                    group_value = ?, group_final = ?, group_version = ?,
                    run_at = coalesce((select l.at from ${t.held} h join ${t.lease} l on l.no = h.lease where h.seq = i.seq), run_at)
    where seq = ?`,
  /** The run that completed it, folded in. */
  foldAttempt: `
    update ${t.item} set run_at = coalesce(run_at, ?), run_attempt = ?, run_started_at = ?, run_ended_at = ?, run_worker = ?, fingerprint = null
    where seq = ?`,
  /** What a new place depends on. */
  placeOf: `
    select i.due_at, i.attempt, i.deliveries, coalesce(l.at, i.run_at) from ${placed(t)} where i.seq = ?`,
  placeItem: `
    update ${t.item} set state = ?, due_at = ?, wake_at = ?, hold_by = ?, hold_key = ?, attempt = ?, start_at = coalesce(?, start_at),
                    deliveries = ?, settled_token = coalesce(?, settled_token), run_at = null
    where seq = ?`,
  /** Its fingerprint stays until its next run has ended: those that failed alike are found together also once they are redriven. */
  redriveItem: `
    update ${t.item} set seq = ?, state = ?, due_at = ?, wake_at = ?, start_at = ?, queue_at = ?, attempt = 1, profile = null, envelope_rest = ?, deadline = ?,
                    flags = flags & ~3, hold_by = null, hold_key = null, gate_met = null, run_at = null, lapses = 0, crashes = 0, deliveries = 0, cancelled = null, progress = null,
                    ending = null, class = null, outcome = null, end_at = null, keep_until = null,
                    run_attempt = null, run_started_at = null, run_ended_at = null, run_worker = null
    where seq = ?`,
  /** What a redrive has to know: the rest of the envelope, and a run that was folded in. */
  redriveRow: `
    select ${restIn(t)}, i.run_attempt, i.run_started_at, i.run_ended_at, i.run_worker, i.waiter, i.type, coalesce(i.group_id, i.id), i.priority
    from ${t.item} i where i.seq = ?`,
  nextSeq: `select coalesce(max(seq), 0) + 1 from ${t.item}`,
  cancelItem: `update ${t.item} set cancelled = ? where seq = ?`,
  /** By seq. */
  holderOf: `select l.worker from ${t.held} h join ${t.lease} l on l.no = h.lease where h.seq = ?`,
  setFlags: `update ${t.item} set flags = flags | ? where seq = ?`,
  markGated: `update ${t.item} set flags = flags | 1 where id = ? and coalesce(state, 0) < 5`,
  /** Only what this gate still holds: the hold may have ended with its time. */
  freeItem: `
    update ${t.item} set state = null, due_at = ?, wake_at = null, gate_met = ?, hold_by = null, hold_key = null
    where id = ? and state = 3 and hold_by = 'gate' and hold_key = ? and (due_at is null or due_at > ?)
    returning queue, seq, flags`,
  deleteItem: `delete from ${t.item} where seq = ?`,
  deleteItems: `delete from ${t.item} where seq in (select value from json_each(?))`,

  // ── tags and attempts ──
  /** By the primary key. A trigger would do it by itself, at 3 µs for every change of every item. */
  stateTags: `update ${t.item_tag} set state = ? where item = ?`,
  addTag: `insert or ignore into ${t.item_tag} (item, tag, state) values (?, ?, ?)`,
  moveTags: `update ${t.item_tag} set item = ?, state = ? where item = ?`,
  deleteTags: `delete from ${t.item_tag} where item = ?`,
  lastAttempt: `select coalesce(max(n), 0) from ${t.attempt} where item = ?`,
  addAttempt: `
    insert into ${t.attempt} (item, n, attempt, started_at, ended_at, worker, class, rule, error, fingerprint, detail)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  markAttempt: `
    update ${t.item} set flags = flags | 32, fingerprint = ?, run_at = coalesce(run_at, ?) where seq = ?`,
  dropAttempts: `delete from ${t.attempt} where item = ? and n <= ?`,
  moveAttempts: `update ${t.attempt} set item = ? where item = ?`,
  deleteAttempts: `delete from ${t.attempt} where item = ?`,
  attempts: `
    select attempt, started_at, ended_at, worker, class, rule, error, fingerprint, detail from ${t.attempt} where item = ? order by n`,
  foldedAttempt: `select run_attempt, run_started_at, run_ended_at, run_worker from ${t.item} where seq = ? and run_attempt is not null`,

  // ── groups ──
  /** By the primary key. */
  group: `
    select open, value, final, version, is_watched, keep_until, null from ${t.item_group}
    where id = ? and (keep_until is null or keep_until > ?)`,
  /** The group whose only member is its root: by the unique index on id. */
  single: `
    select coalesce(state, 0) < 5, group_value, group_final, group_version, waiter is not null or flags & 8, keep_until, seq
    from ${t.item} where id = ? and flags & 4 and (keep_until is null or keep_until > ?)`,
  /** The same two without the value: by the primary key, and by the unique index on id. */
  openOfGroup: `select open from ${t.item_group} where id = ? and (keep_until is null or keep_until > ?)`,
  openOfSingle: `select coalesce(state, 0) < 5 from ${t.item} where id = ? and flags & 4 and (keep_until is null or keep_until > ?)`,
  joined: `
    update ${t.item} set flags = flags & ~4, group_value = null, group_final = 0, group_version = 0 where seq = ?`,
  putGroup: `
    insert into ${t.item_group} (id, open, value, final, version, is_watched, keep_until) values (?, ?, ?, ?, ?, ?, ?)
    on conflict (id) do update set open = excluded.open, value = excluded.value, final = excluded.final,
      version = excluded.version, is_watched = excluded.is_watched, keep_until = excluded.keep_until`,
  watchGroup: `update ${t.item_group} set is_watched = 1 where id = ? and keep_until is null`,

  // ── watchers: by the primary key ──
  addWatcher: `insert or ignore into ${t.watcher} (kind, id, inbox) values (?, ?, ?)`,
  watchers: `select inbox from ${t.watcher} where kind = ? and id = ?`,
  deleteWatchers: `delete from ${t.watcher} where kind = ? and id = ?`,

  // ── gates ──
  gate: `select held_id, need, remaining, condition from ${t.gate} where key = ?`,
  putGate: `
    insert into ${t.gate} (key, held_id, need, remaining, condition) values (?, ?, ?, ?, ?)
    on conflict (key) do update set need = excluded.need, remaining = excluded.remaining`,
  deleteGate: `delete from ${t.gate} where key = ?`,
  /** By gate_held_id. */
  gatesHolding: `select key from ${t.gate} where held_id = ?`,
  anyMember: `select exists (select 1 from ${t.gate_member})`,
  anyGroup: `select exists (select 1 from ${t.item_group})`,
  addMember: `insert or ignore into ${t.gate_member} (gate, member) values (?, ?)`,
  /** By gate_member_member. */
  gatesOf: `select gate from ${t.gate_member} where member = ?`,
  tellMember: `delete from ${t.gate_member} where gate = ? and member = ?`,
  membersOf: `select member from ${t.gate_member} where gate = ?`,
  deleteMembers: `delete from ${t.gate_member} where gate = ?`,

  // ── places: ready and held ──
  putReady: `insert into ${t.ready} values (?, ?, ?, ?, ?)`,
  /** By the keys of these items. */
  addReady: `${addReady(t)} where seq in (select value from json_each(?))`,
  /** By the keys from the first to below the second. */
  addReadyBetween: `${addReady(t)} where seq >= ? and seq < ?`,
  /** By the primary key, which the row of the item tells. */
  dropReady: `
    delete from ${t.ready} where (queue, type, rank, due_at, seq) in
      (select queue, type, -priority, due_at, seq from ${t.item} where seq = ?)`,
  /** By the primary key: from the front up to this row. */
  takeReady: `delete from ${t.ready} where queue = ? and type = ? and (rank, due_at, seq) <= (?, ?, ?)`,
  addLease: `insert into ${t.lease} (token, queue, until, worker, at, open) values (?, ?, ?, ?, ?, ?) returning no`,
  hold: `insert into ${t.held} (seq, lease, until) select value, ?, ? from json_each(?)`,
  dropHeld: `delete from ${t.held} where seq = ? returning lease`,
  /** By seq. */
  dropAllHeld: `delete from ${t.held} where seq in (select value from json_each(?))`,
  leaseOf: `select no, at from ${t.lease} where token = ?`,
  closeLease: `update ${t.lease} set open = open - ? where no = ? returning open`,
  dropLease: `delete from ${t.lease} where no = ?`,
  /** By no. What an extension shortens is looked for in time. */
  shortenLeases: `update ${t.lease} set until = ? where no in (select value from json_each(?)) and until > ?`,
  setLease: `update ${t.lease} set until = ?, open = ? where no = ?`,

  // ── claim ──
  /** By lease_until. */
  lapsedLeases: `select no from ${t.lease} where queue = ? and until <= ? order by until limit +?`,
  /** All that is held is looked through: no more than the workers run and have fetched. */
  lapsed: `
    select h.seq, i.flags, i.type, h.is_running from ${t.held} h join ${t.item} i on i.seq = h.seq
    where h.lease in (select value from json_each(?)) and h.until <= ? limit +?`,
  /** By seq. The item keeps its due time and hence its place. */
  reclaim: `
    update ${t.item} as i set lapses = lapses + 1, deliveries = deliveries + 1, run_at = null,
                    crashes = crashes + (select h.is_running from ${t.held} h where h.seq = i.seq)
    where seq in (select value from json_each(?))`,
  openOfLeases: `
    select lease, min(until), count(*) from ${t.held} where lease in (select value from json_each(?)) group by lease`,
  /** By item_delayed. */
  due: `select seq, flags from ${t.item} where queue = ? and wake_at <= ? order by wake_at limit +?`,
  /** By seq. A hold ends with its time. */
  free: `
    update ${t.item} set state = null, wake_at = null, hold_by = null, hold_key = null
    where seq in (select value from json_each(?))`,
  /** By the primary key of ready, one type after the other. */
  readyTypes: `
    with recursive one (type) as (
      select min(type) from ${t.ready} where queue = ?
      union all select (select min(type) from ${t.ready} where queue = ? and type > one.type) from one where one.type is not null)
    select type from one where type is not null`,
  /** By the primary key of ready; the items by seq. */
  ready: `
    select ${READY} from ${t.ready} r cross join ${t.item} i on i.seq = r.seq
    where r.queue = ? and r.type = ? order by r.rank, r.due_at, r.seq limit +?`,
  readyKeys: `
    select rank, due_at, seq from ${t.ready} where queue = ? and type = ? and (rank, due_at, seq) > (?, ?, ?)
    order by rank, due_at, seq limit +?`,
  /** By seq. */
  readyRows: `select ${READY} from ${t.item} i where i.seq in (select value from json_each(?))`,
  /** By item_expiring. */
  expired: `
    select ${READY} from ${t.item} i indexed by ${t.named('item_expiring')}
    where i.queue = ? and i.state is null and i.deadline < ? and not exists (select 1 from ${t.held} h where h.seq = i.seq)
    order by i.deadline, i.seq limit +?`,
  anyExpired: `
    select exists (select 1 from ${t.item} i indexed by ${t.named('item_expiring')}
                   where i.queue = ? and i.state is null and i.deadline < ?
                     and not exists (select 1 from ${t.held} h where h.seq = i.seq))`,
  /** By the primary key of ready. */
  anyReady: `select exists (select 1 from ${t.ready} where queue = ?)`,
  /** By item_delayed and message_ready. */
  anyToCome: `
    select exists (select 1 from ${t.item} where queue = ? and wake_at <= ?)
        or exists (select 1 from ${t.message} where queue = ? and token is null)`,
  anyDue: `select exists (select 1 from ${t.item} where queue = ? and wake_at <= ?)`,
  nextDue: `select min(wake_at) from ${t.item} where queue = ? and wake_at > ?`,
  extendItem: `update ${t.held} set until = ?, is_running = ? where seq = ?`,
  setProgress: `update ${t.item} set progress = ? where seq = ?`,
  heldRow: `select i.seq, i.cancelled, h.lease from ${placed(t)} where i.id = ? and ${TOKEN} = ?`,

  // ── pauses ──
  pauses: `select what, name, is_resumed from ${t.pause}`,
  putPause: `
    insert into ${t.pause} (what, name, is_resumed) values (?, ?, 0) on conflict (what, name) do update set is_resumed = 0`,
  endPause: `update ${t.pause} set is_resumed = 1 where what = ? and name = ? and is_resumed = 0`,
  deletePause: `delete from ${t.pause} where what = ? and name = ?`,
  holdPaused: `
    update ${t.item} set state = 3, hold_by = 'pause', hold_key = ? where seq in (select value from json_each(?))`,
  /** By item_paused. */
  paused: `select seq, flags from ${t.item} where hold_by = 'pause' and hold_key = ? limit +?`,
  pausedQueues: `select distinct queue from ${t.item} where hold_by = 'pause' and hold_key = ? limit 100`,

  // ── schedules, workers, log ──
  schedule: `select next_at, spec from ${t.schedule} where name = ?`,
  schedules: `select name, next_at, spec from ${t.schedule} order by name`,
  putSchedule: `
    insert into ${t.schedule} (name, spec, next_at) values (?, ?, ?)
    on conflict (name) do update set spec = excluded.spec, next_at = excluded.next_at`,
  putWorker: `
    insert into ${t.worker} (id, host, version, types, queues, settings, seen_at) values (?, ?, ?, ?, ?, ?, ?)
    on conflict (id) do update set host = excluded.host, version = excluded.version, types = excluded.types,
      queues = excluded.queues, settings = excluded.settings, seen_at = excluded.seen_at`,
  dropWorker: `delete from ${t.worker} where id = ?`,
  workers: `select id, host, version, types, queues, settings, seen_at from ${t.worker} where seen_at > ?`,
  log: `select at, who, why, what from ${t.action_log} order by seq desc limit +?`,
  addAction: `insert into ${t.action_log} (at, who, why, what) values (?, ?, ?, ?)`,

  // ── notifications ──
  addNotification: `insert into ${t.notification} (at, sender, kind, name, body) values (?, ?, ?, ?, ?)`,
  lastNotification: `select coalesce(max(seq), 0) from ${t.notification}`,
  /** By seq. */
  notifications: `select seq, kind, name, body from ${t.notification} where seq > ? and sender <> ? order by seq limit ${NOTIFICATIONS_PER_READ}`,

  // ── reading ──
  view: `select ${viewOf(t)} from ${placed(t)} where i.id = ?`,
  input: `select input, keep_until from ${t.item} where id = ?`,
  summary: `select ${summaryOf(t)} from ${placed(t)} where i.id = ?`,
  /** By the index of the ids. */
  idsBetween: `
    select id from ${t.item} where id >= ? and id < ? and (keep_until is null or keep_until > ?) order by id limit +?`,
  summaryBySeq: `select ${summaryOf(t)} from ${placed(t)} where i.seq = ?`,
  /** By item_listed, one type of a queue after the other. (queue, type) > (?, ?) would walk over every item of the queue. */
  nextType: `
    select queue, type from ${t.item} where state = ? and queue = ? and type > ? order by type limit 1`,
  /** By item_listed: the first type of the next queue. */
  nextQueue: `
    select queue, type from ${t.item} where state = ? and queue > ? order by queue, type limit 1`,
  /** By the primary key of ready: the next queue, and the next type of a queue. */
  nextReadyQueue: `select queue, type from ${t.ready} where queue > ? order by queue, type limit 1`,
  nextReadyType: `select queue, type from ${t.ready} where queue = ? and type > ? order by type limit 1`,
  /** What is held: no more than the workers run and have fetched. */
  heldTypes: `select distinct i.queue, i.type from ${t.held} h cross join ${t.item} i on i.seq = h.seq`,
  /** By item_listed. */
  listed: `
    select seq from ${t.item} where state = ? and queue = ? and type = ? and seq < ? order by seq desc limit +?`,
  /** By the primary key of ready, in the order of claims: they are sorted by their arrival. */
  listedReady: `select seq from ${t.ready} where queue = ? and type = ? and seq < ? order by seq desc limit +?`,
  /** By seq. */
  listedHeld: `
    select h.seq from ${t.held} h cross join ${t.item} i on i.seq = h.seq
    where i.queue = ? and i.type = ? and h.seq < ? order by h.seq desc limit +?`,
  /** By item_tag_listed. */
  listedByTag: `select item from ${t.item_tag} where tag = ? and state = ? and item < ? order by item desc limit +?`,
  /** By item_class. */
  listedByClass: `
    select seq from ${t.item} where class = ? and state = ? and seq < ? order by seq desc limit +?`,
  /** By item_fingerprint. */
  listedByFingerprint: `
    select seq from ${t.item} where fingerprint = ? and state = ? and seq < ? order by seq desc limit +?`,
  /** By item_fingerprint: what is open, and whether it is held. */
  openByFingerprint: `
    select i.seq from ${t.item} i where i.fingerprint = ? and i.state is null and i.seq < ?
      and exists (select 1 from ${t.held} h where h.seq = i.seq) = ? order by i.seq desc limit +?`,
  /** By item_grouped. */
  listedByGroup: `
    select seq from ${t.item} where group_id = ? and seq < ? order by seq desc limit +?`,
  rootOfGroup: `select seq from ${t.item} where id = ? and group_id is null`,
  /** By item_listed and ready, which have all that is asked for, and what is held. */
  counts: `
    select state, queue, type, count(*) from ${t.item} where state is not null group by state, queue, type
    union all select 0, queue, type, count(*) from ${t.ready} group by queue, type
    union all select 4, i.queue, i.type, count(*) from ${t.held} h cross join ${t.item} i on i.seq = h.seq group by i.queue, i.type`,
  /** By item_keep_until: what is over and not yet swept. */
  goneCounts: `
    select state, queue, type, count(*) from ${t.item} indexed by ${t.named('item_keep_until')}
    where keep_until <= ? group by state, queue, type`,
  /** By item_ended, which has all that is asked for. */
  ended: `
    select queue, type, state, count(*) from ${t.item} indexed by ${t.named('item_ended')}
    where end_at > ? and state in (5, 6) group by queue, type, state`,
  /** By item_keep_until: of those, what is over and not yet swept. */
  goneEnded: `
    select queue, type, state, count(*) from ${t.item} indexed by ${t.named('item_keep_until')}
    where keep_until <= ? and end_at > ? and state in (5, 6) group by queue, type, state`,
  /** By the primary key of ready: the first of the next priority. */
  oldestDue: `
    select rank, due_at from ${t.ready} where queue = ? and type = ? and rank > ? order by rank, due_at limit 1`,
  /** Dead ones by item_failures, which has all that is asked for; retrying ones by item_listed and their last attempts. */
  failures: `
    select fingerprint, class, type, sum(dead), sum(retrying), min(first_at), max(last_at) from (
      select fingerprint, class, type, count(*) as dead, 0 as retrying, min(end_at) as first_at, max(end_at) as last_at
      from ${t.item} indexed by ${t.named('item_failures')}
      where state = 6 and fingerprint is not null and keep_until > ? group by fingerprint, class, type
      union all
      select i.fingerprint, a.class, i.type, 0, count(*), min(a.ended_at), max(a.ended_at)
      from ${t.item} i indexed by ${t.named('item_listed')}
      join ${t.attempt} a on a.item = i.seq and a.n = (select max(n) from ${t.attempt} l where l.item = i.seq)
      where i.state = 2 and i.fingerprint is not null group by i.fingerprint, a.class, i.type
    ) group by fingerprint, class, type
    order by sum(dead) + sum(retrying) desc, max(last_at) desc, fingerprint limit +?`,
  /** By item_failures, from the last on. */
  deadSample: `
    select id, substr(outcome, 1, ${LISTED_ERROR_CHARACTERS + 1}), end_at from ${t.item} where seq = (
      select seq from ${t.item} indexed by ${t.named('item_failures')}
      where state = 6 and fingerprint = ? and class is ? and type = ? and keep_until > ? order by end_at desc limit 1)`,
  /** By item_fingerprint. */
  retryingSample: `
    select i.id, substr(a.error, 1, ${LISTED_ERROR_CHARACTERS + 1}), a.ended_at from ${t.item} i indexed by ${t.named('item_fingerprint')}
    join ${t.attempt} a on a.item = i.seq and a.n = (select max(n) from ${t.attempt} l where l.item = i.seq)
    where i.fingerprint = ? and i.state = 2 and a.class is ? and i.type = ? order by a.ended_at desc limit 1`,
  /** By seq, so many rows at a time, and by item_stuck: what is open and neither ready nor held, or waits for nothing at all. */
  stuckItems: `
    select ${summaryOf(t)}, i.seq from ${placed(t)} where i.seq < ? and i.seq >= ? and (
        (i.state is null and h.seq is null
          and not exists (select 1 from ${t.ready} r where (r.queue, r.type, r.rank, r.due_at, r.seq) = (i.queue, i.type, -i.priority, i.due_at, i.seq)))
        or (i.state in (1, 2, 3) and i.wake_at is null and i.hold_by is null))
    order by i.seq desc limit +?`,
  lastSeq: `select coalesce(max(seq), 0) from ${t.item}`,
  /** By item_keep_until. */
  anyGone: `select exists (select 1 from ${t.item} where keep_until <= ?)`,
  /** By item_delayed, one queue after the other. */
  queueWithDue: `select queue from ${t.item} where wake_at is not null and queue > ? order by queue limit 1`,

  // ── sweeping ──
  /** By item_keep_until. */
  goneItems: `select seq, id, flags from ${t.item} where keep_until <= ? limit +?`,
  /** By item_group_keep_until. */
  goneGroups: `select id, is_watched from ${t.item_group} where keep_until <= ? limit +?`,
  deleteGroup: `delete from ${t.item_group} where id = ?`,
  /** By store_keep_until. */
  sweepKeys: `delete from ${t.store} where key in (select key from ${t.store} where keep_until <= ? limit +?)`,
  sweepNotifications: `
    delete from ${t.notification} where at <= ? and seq in (select seq from ${t.notification} order by seq limit +?)`,
  sweepWorkers: `delete from ${t.worker} where seen_at <= ?`,
  sweepActions: `delete from ${t.action_log} where seq <= (select max(seq) from ${t.action_log}) - ?`,
  sweepDeadLetters: `
    delete from ${t.dead_letter} where at <= ? and seq in (select seq from ${t.dead_letter} order by seq limit +?)`,

  // ── the plain queue port ──
  push: `
    insert into ${t.message} (queue, body, priority, due_at, dedupe_key, id) values (?, ?, ?, ?, ?, ?) on conflict do nothing`,
  /** By message_leased. What was handed out was due, and stays so if the time of day has been set back since; so with `fail`. */
  reclaimMessages: `
    update ${t.message} set token = null, lease_until = null, delivery = delivery + 1, due_at = min(due_at, ?)
    where seq in (select seq from ${t.message} where queue = ? and token is not null and lease_until <= ? limit +?)`,
  /** By message_ready. */
  readyMessages: `
    select seq, body, delivery, id, starts, note from ${t.message} where queue = ? and token is null and due_at <= ?
    order by priority desc, due_at, seq limit +?`,
  leaseMessage: `update ${t.message} set token = ?, lease_until = ?, is_started = 0 where seq = ?`,
  /** By message_token, as the next three. */
  start: `update ${t.message} set starts = starts + 1 - is_started, is_started = 1 where token = ? and queue = ?`,
  heartbeat: `update ${t.message} set lease_until = ? where token = ? and queue = ?`,
  ack: `delete from ${t.message} where token = ? and queue = ?`,
  fail: `
    update ${t.message} set token = null, lease_until = null, delivery = delivery + 1, due_at = coalesce(?, min(due_at, ?)),
      note = coalesce(?, note)
    where token = ? and queue = ?`,
  /** One with the same id is replaced, and comes to the end of the list. */
  deadLetter: `insert or replace into ${t.dead_letter} (queue, body, error, at, id, detail) values (?, ?, ?, ?, ?, ?)`,
  letters: `select seq, id, body, error, at, detail from ${t.dead_letter} where queue = ? and seq > ? order by seq limit +?`,
  countLetters: `select count(*) from ${t.dead_letter} where queue = ?`,
  dropLetter: `delete from ${t.dead_letter} where queue = ? and id = ? and seq = ?`,
  deadLetters: `select body, error, at from ${t.dead_letter} where queue = ? order by seq`,
  size: `
    select (select count(*) from ${t.message} where queue = ? and token is null)
         + (select count(*) from ${t.message} where queue = ? and token is not null)
         + (select count(*) from ${t.item} where queue = ? and state in (1, 2, 3))
         + (select count(*) from ${t.ready} where queue = ?)
         + (select count(*) from ${t.held} h cross join ${t.item} i on i.seq = h.seq where i.queue = ?)`,
  /** By message_ready: bodies that are to become items. */
  foreignBodies: `
    select seq, body, due_at, id from ${t.message} where queue = ? and token is null order by priority desc, due_at, seq limit +?`,
  deleteMessage: `delete from ${t.message} where seq = ?`,

  // ── settings of the whole file ──
  mode: `select value from ${t.setting} where name = 'mode'`,
  setMode: `insert into ${t.setting} (name, value) values ('mode', ?) on conflict do nothing`,
  boot: `select value from ${t.setting} where name = 'boot'`,
  setBoot: `insert into ${t.setting} (name, value) values ('boot', ?) on conflict do update set value = excluded.value`,
  endHeld: `update ${t.held} set until = ?`,
  endLeases: `update ${t.lease} set until = ?`,
  endMessageLeases: `update ${t.message} set lease_until = ? where token is not null`,

  // ── the store port: by the primary key ──
  get: `select value, keep_until from ${t.store} where key = ? and (keep_until is null or keep_until > ?)`,
  set: `
    insert into ${t.store} (key, value, keep_until) values (?, ?, ?)
    on conflict (key) do update set value = excluded.value, keep_until = excluded.keep_until`,
  remove: `delete from ${t.store} where key = ?`,
})

/** What each statement gives back, by name; a statement that gives nothing is only run. */
interface Rows {
  itemRow: ItemRow
  redriveRow: readonly [
    rest: string | null,
    attempt: number | null,
    from: number,
    to: number,
    by: string,
    waiter: string | null,
    type: string,
    groupId: string,
    priority: number,
  ]
  nextSeq: readonly [number]
  insertItem: readonly [seq: number]
  profileOf: readonly [no: number]
  addProfile: readonly [no: number]
  profile: readonly [rest: string]
  seqsBetween: readonly [number]
  placeOf: readonly [dueAt: number | null, attempt: number, deliveries: number, claimedAt: number | null]
  holderOf: readonly [string]
  addLease: readonly [no: number]
  dropHeld: readonly [lease: number]
  leaseOf: readonly [no: number, at: number]
  closeLease: readonly [open: number]
  lapsedLeases: readonly [number]
  openOfLeases: readonly [lease: number, until: number, open: number]
  readyTypes: readonly [string]
  readyKeys: ReadyKey
  readyRows: ReadyRow
  freeItem: readonly [queue: string, seq: number, flags: number]
  lastAttempt: readonly [number]
  attempts: AttemptRow
  foldedAttempt: readonly [number, number, number, string]
  group: GroupRow
  single: GroupRow
  watchers: readonly [string]
  gate: GateRow
  gatesHolding: readonly [string]
  anyMember: readonly [number]
  anyGroup: readonly [number]
  gatesOf: readonly [string]
  lapsed: readonly [seq: number, flags: number, type: string, wasRunning: number]
  due: readonly [seq: number, flags: number]
  paused: readonly [seq: number, flags: number]
  log: readonly [at: number, who: string, why: string, what: string]
  membersOf: readonly [string]
  input: readonly [input: string, keepUntil: number | null]
  ready: ReadyRow
  anyReady: readonly [number]
  expired: ReadyRow
  anyExpired: readonly [number]
  anyToCome: readonly [number]
  anyDue: readonly [number]
  nextDue: readonly [number | null]
  heldRow: readonly [seq: number, cancelled: string | null, lease: number]
  pauses: readonly [what: 'queue' | 'type', name: string, isResumed: number]
  pausedQueues: readonly [string]
  schedule: readonly [nextAt: number, spec: string]
  schedules: readonly [name: string, nextAt: number, spec: string]
  workers: readonly [
    id: string,
    host: string,
    version: string,
    types: string,
    queues: string,
    settings: string | null,
    seenAt: number,
  ]
  lastNotification: readonly [number]
  notifications: readonly [seq: number, kind: string, name: string, body: string]
  view: ViewRow
  summary: ViewRow
  idsBetween: readonly [string]
  summaryBySeq: ViewRow
  openOfGroup: readonly [number]
  openOfSingle: readonly [number]
  nextType: readonly [queue: string, type: string]
  nextQueue: readonly [queue: string, type: string]
  nextReadyQueue: readonly [queue: string, type: string]
  nextReadyType: readonly [queue: string, type: string]
  heldTypes: readonly [queue: string, type: string]
  listed: readonly [number]
  listedReady: readonly [number]
  listedHeld: readonly [number]
  openByFingerprint: readonly [number]
  lastSeq: readonly [number]
  listedByTag: readonly [number]
  listedByClass: readonly [number]
  listedByFingerprint: readonly [number]
  listedByGroup: readonly [number]
  rootOfGroup: readonly [number]
  counts: readonly [state: number, queue: string, type: string, count: number]
  goneCounts: readonly [state: number, queue: string, type: string, count: number]
  ended: readonly [queue: string, type: string, state: number, count: number]
  goneEnded: readonly [queue: string, type: string, state: number, count: number]
  oldestDue: readonly [rank: number, dueAt: number]
  failures: readonly [
    fingerprint: string,
    failureClass: string | null,
    type: string,
    dead: number,
    retrying: number,
    firstAt: number,
    lastAt: number,
  ]
  deadSample: readonly [id: string, error: string | null, at: number]
  retryingSample: readonly [id: string, error: string | null, at: number]
  stuckItems: readonly [...ViewRow, seq: number]
  anyGone: readonly [number]
  queueWithDue: readonly [string]
  goneItems: readonly [seq: number, id: string, flags: number]
  goneGroups: readonly [id: string, isWatched: number]
  readyMessages: MessageRow
  deadLetters: readonly [body: string, error: string, at: number]
  size: readonly [number]
  letters: readonly [seq: number, id: string, body: string, error: string, at: number, detail: string | null]
  countLetters: readonly [number]
  foreignBodies: readonly [seq: number, body: string, dueAt: number, id: string]
  mode: readonly [string]
  boot: readonly [string]
  get: readonly [value: string, keepUntil: number | null]
}

type Texts = ReturnType<typeof statementTexts>
type RowOf<K extends keyof Texts> = K extends keyof Rows ? Rows[K] : readonly SqliteValue[]

export function prepareStatements(db: SqliteDatabase, t: Tables) {
  const texts = statementTexts(t)
  const all = Object.entries(texts).map(([name, sql]) => [name, db.prepare<readonly SqliteValue[], unknown>(sql)])
  // Each name keeps the type of its rows.
  const named = Object.fromEntries(all) as {
    readonly [K in keyof Texts]: ReturnType<typeof db.prepare<readonly SqliteValue[], RowOf<K>>>
  }
  // There is one count for each set of filters, prepared at its first use.
  const counts = new Map<string, ReturnType<typeof db.prepare<readonly SqliteValue[], readonly [number]>>>()
  const count = (text: string, values: readonly SqliteValue[]): number => {
    const known = counts.get(text) ?? db.prepare<readonly SqliteValue[], readonly [number]>(text)
    counts.set(text, known)
    return known.get(...values)?.[0] ?? 0
  }
  return { ...named, tables: t, count }
}
