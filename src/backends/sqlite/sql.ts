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
  groupId: string,
  priority: number,
  attempt: number,
  queueAt: number,
  startAt: number,
  input: string,
  rest: string | null,
  waiter: string | null,
  fence: number,
  lapses: number,
  crashes: number,
  deliveries: number,
  gateMet: number | null,
  flags: number,
  cancelled: string | null,
]

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
  'seq, id, type, group_id, priority, attempt, queue_at, start_at, input, envelope_rest, waiter, fence, lapses, crashes, deliveries, ' +
  'gate_met, flags, cancelled'

const VIEW =
  'id, type, group_id, queue_at, start_at, attempt, priority, waiter, envelope_rest, queue, state, due_at, hold_by, hold_key, worker, ' +
  'lease_until, run_at, ending, class, outcome, end_at, progress, lapses, crashes, keep_until, fingerprint, cancelled, is_running'

/**
 * The same for lists: neither result nor progress is read, and of an error only what a list shows. A column behind a long text
 * costs the pages of that text, so `is_running` (the last column of the table) is read of leased items only.
 */
const SUMMARY = VIEW.replace(
  'outcome',
  `case when state > 5 then substr(outcome, 1, ${LISTED_ERROR_CHARACTERS + 1}) end`,
)
  .replace('progress', 'null')
  .replace('is_running', 'case when state = 4 then is_running else 0 end')

/**
 * Every statement by its name, with the index that it relies on. Parameters are positional, in the order of the text. A limit is
 * `+?`: SQLite plans by a bare `limit ?`, and so plans anew whenever another number is bound, which more than doubles a small query.
 */
export const statementTexts = (t: Tables) => ({
  // ── items ──
  /** By the unique index on id. */
  itemRow: `select seq, token, settled_token, state, flags, keep_until, waiter, queue from ${t.item} where id = ?`,
  insertItem: `
    insert into ${t.item} (id, queue, type, group_id, priority, attempt, queue_at, start_at, input, envelope_rest, waiter,
                      state, due_at, wake_at, hold_by, hold_key, flags, token, lease_until, worker, run_at, fence, deliveries, deadline)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (id) do nothing`,
  /** By seq, as the others that change one item. */
  endItem: `
    update ${t.item} set state = ?, ending = ?, class = ?, outcome = ?, end_at = ?, keep_until = ?, settled_token = coalesce(token, settled_token),
                    fingerprint = coalesce(?, fingerprint),
                    token = null, lease_until = null, worker = null, due_at = null, wake_at = null,
                    hold_by = null, hold_key = null, cancelled = null,
                    group_value = ?, group_final = ?, group_version = ?
    where seq = ?`,
  /** The same for a run that succeeded: its attempt is folded in. */
  completeItem: `
    update ${t.item} set state = 5, ending = ?, class = null, outcome = ?, end_at = ?, keep_until = ?, settled_token = coalesce(token, settled_token),
                    token = null, lease_until = null, worker = null, due_at = null, wake_at = null,
                    hold_by = null, hold_key = null, cancelled = null,
                    group_value = ?, group_final = ?, group_version = ?,
                    run_at = coalesce(run_at, ?), run_attempt = ?, run_started_at = ?, run_ended_at = ?, run_worker = ?, fingerprint = null
    where seq = ?`,
  retryItem: `
    update ${t.item} set state = ?, wake_at = ?, attempt = ?, due_at = ?, start_at = ?, deliveries = 0, settled_token = coalesce(token, settled_token),
                    token = null, lease_until = null, worker = null, run_at = null, hold_by = null, hold_key = null
    where seq = ?`,
  /**
   * Without a delay it keeps its due time, and hence its place. What was due when it was handed out is due, also if the time of
   * day has been set back since.
   */
  releaseItem: `
    update ${t.item} set state = case when due_at > max(?, coalesce(run_at, 0)) then case when ? then 3 when attempt > 1 then 2 else 1 end else 0 end,
                    wake_at = case when due_at > max(?, coalesce(run_at, 0)) then due_at end,
                    hold_by = case when due_at > max(?, coalesce(run_at, 0)) then ? end,
                    hold_key = case when due_at > max(?, coalesce(run_at, 0)) then ? end,
                    due_at = coalesce(due_at, ?), settled_token = coalesce(token, settled_token), token = null,
                    lease_until = null, worker = null, run_at = null
    where seq = ? returning due_at, state`,
  /** A delay of nothing is a new due time all the same: the end of the line. */
  releaseNow: `
    update ${t.item} set state = 0, wake_at = null, settled_token = coalesce(token, settled_token), token = null, lease_until = null, worker = null,
                    run_at = null, hold_by = null, hold_key = null, due_at = ?
    where seq = ?`,
  releaseLater: `
    update ${t.item} set state = case when ? then 3 when attempt > 1 then 2 else 1 end, due_at = ?, wake_at = ?,
                    hold_by = ?, hold_key = ?, settled_token = coalesce(token, settled_token), token = null, lease_until = null, worker = null,
                    run_at = null
    where seq = ? returning state`,
  /** Its fingerprint stays until its next run has ended: those that failed alike are found together also once they are redriven. */
  redriveItem: `
    update ${t.item} set seq = ?, state = ?, due_at = ?, wake_at = ?, start_at = ?, queue_at = ?, attempt = 1, envelope_rest = ?, deadline = ?,
                    flags = flags & ~3, hold_by = null, hold_key = null, gate_met = null, token = null, lease_until = null,
                    worker = null, run_at = null, lapses = 0, crashes = 0, deliveries = 0, cancelled = null, progress = null,
                    ending = null, class = null, outcome = null, end_at = null, keep_until = null,
                    run_attempt = null, run_started_at = null, run_ended_at = null, run_worker = null
    where seq = ?`,
  /** What a redrive has to know: the rest of the envelope, and a run that was folded in. */
  redriveRow: `
    select envelope_rest, run_attempt, run_started_at, run_ended_at, run_worker, waiter, type, group_id, priority from ${t.item} where seq = ?`,
  nextSeq: `select coalesce(max(seq), 0) + 1 from ${t.item}`,
  /** A settlement without its lease decides about it: the lease settles nothing, and its token is dropped. */
  dropToken: `update ${t.item} set token = null where seq = ?`,
  cancelItem: `update ${t.item} set cancelled = ? where seq = ? and state = 4 returning worker`,
  setFlags: `update ${t.item} set flags = flags | ? where seq = ?`,
  markGated: `update ${t.item} set flags = flags | 1 where id = ? and state < 5`,
  /** Only what this gate still holds: the hold may have ended with its time. */
  freeItem: `
    update ${t.item} set state = 0, due_at = ?, wake_at = null, gate_met = ?, hold_by = null, hold_key = null
    where id = ? and state = 3 and hold_by = 'gate' and hold_key = ? and (due_at is null or due_at > ?)
    returning queue, seq, flags`,
  deleteItem: `delete from ${t.item} where seq = ?`,

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
    select state < 5, group_value, group_final, group_version, waiter is not null or flags & 8, keep_until, seq
    from ${t.item} where id = ? and flags & 4 and (keep_until is null or keep_until > ?)`,
  /** The same two without the value: by the primary key, and by the unique index on id. */
  openOfGroup: `select open from ${t.item_group} where id = ? and (keep_until is null or keep_until > ?)`,
  openOfSingle: `select state < 5 from ${t.item} where id = ? and flags & 4 and (keep_until is null or keep_until > ?)`,
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
  addMember: `insert or ignore into ${t.gate_member} (gate, member) values (?, ?)`,
  /** By gate_member_member. */
  gatesOf: `select gate from ${t.gate_member} where member = ?`,
  tellMember: `delete from ${t.gate_member} where gate = ? and member = ?`,
  membersOf: `select member from ${t.gate_member} where gate = ?`,
  deleteMembers: `delete from ${t.gate_member} where gate = ?`,

  // ── claim ──
  /** By item_leased. */
  lapsed: `
    select seq, flags, type, is_running from ${t.item} where queue = ? and state = 4 and lease_until <= ?
    order by lease_until limit +?`,
  /** By item_leased: the same rows. The item keeps its due time and hence its place. */
  reclaim: `
    update ${t.item} set state = 0, lapses = lapses + 1, crashes = crashes + is_running,
                    token = null, lease_until = null, worker = null, run_at = null
    where seq in (select seq from ${t.item} where queue = ? and state = 4 and lease_until <= ? order by lease_until limit +?)`,
  /** By item_delayed. */
  due: `select seq, flags from ${t.item} where queue = ? and wake_at <= ? order by wake_at limit +?`,
  /** By item_delayed: the same rows. A hold ends with its time. */
  promote: `
    update ${t.item} set state = 0, wake_at = null, hold_by = null, hold_key = null
    where seq in (select seq from ${t.item} where queue = ? and wake_at <= ? order by wake_at limit +?)`,
  /** By item_ready. */
  ready: `
    select ${READY} from ${t.item} where queue = ? and state = 0 order by priority desc, due_at, seq limit +?`,
  /** By item_ready. */
  headType: `select type from ${t.item} where queue = ? and state = 0 order by priority desc, due_at, seq limit 1`,
  /** By item_ready, too: another index would know the types, and then have to sort. */
  readyOf: `
    select ${READY} from ${t.item} indexed by ${t.named('item_ready')}
    where queue = ? and state = 0 and type in (select value from json_each(?)) order by priority desc, due_at, seq limit +?`,
  /** By item_expiring. */
  expired: `
    select ${READY} from ${t.item} indexed by ${t.named('item_expiring')}
    where queue = ? and state = 0 and deadline < ? order by deadline, seq limit +?`,
  anyExpired: `
    select exists (select 1 from ${t.item} indexed by ${t.named('item_expiring')}
                   where queue = ? and state = 0 and deadline < ?)`,
  /** By item_listed, however much of other types there is. */
  anyWaitingOf: `
    select exists (select 1 from ${t.item} where state = 0 and queue = ? and type in (select value from json_each(?)))`,
  /** By seq. A claim reads first and writes then: with `returning` it was no quicker. */
  lease: `
    update ${t.item} set state = 4, token = ? || seq, lease_until = ?, worker = ?, run_at = ?, is_running = 0, fence = fence + 1,
                    deliveries = deliveries + 1
    where seq in (select value from json_each(?))`,
  /** By item_ready and item_delayed. */
  anyReady: `
    select exists (select 1 from ${t.item} where queue = ? and state = 0)
        or exists (select 1 from ${t.item} where queue = ? and wake_at <= ?)
        or exists (select 1 from ${t.message} where queue = ? and token is null)`,
  /** By item_listed, item_delayed and message_ready. */
  anyReadyOf: `
    select exists (select 1 from ${t.item} where state = 0 and queue = ? and type in (select value from json_each(?)))
        or exists (select 1 from ${t.item} where queue = ? and wake_at <= ?)
        or exists (select 1 from ${t.message} where queue = ? and token is null)`,
  anyDue: `select exists (select 1 from ${t.item} where queue = ? and wake_at <= ?)`,
  nextDue: `select min(wake_at) from ${t.item} where queue = ? and wake_at > ?`,
  extendItem: `
    update ${t.item} set lease_until = ?, is_running = ?, progress = coalesce(?, progress) where seq = ?`,
  heldRow: `select seq, cancelled from ${t.item} where id = ? and token = ?`,

  // ── pauses ──
  pauses: `select what, name, is_resumed from ${t.pause}`,
  putPause: `
    insert into ${t.pause} (what, name, is_resumed) values (?, ?, 0) on conflict (what, name) do update set is_resumed = 0`,
  endPause: `update ${t.pause} set is_resumed = 1 where what = ? and name = ? and is_resumed = 0`,
  deletePause: `delete from ${t.pause} where what = ? and name = ?`,
  holdPaused: `update ${t.item} set state = 3, hold_by = 'pause', hold_key = ? where seq = ?`,
  /** By item_paused. */
  paused: `select seq, flags from ${t.item} where hold_by = 'pause' and hold_key = ? limit +?`,
  /** By item_paused: the same rows. */
  freePaused: `
    update ${t.item} set state = 0, hold_by = null, hold_key = null
    where seq in (select seq from ${t.item} where hold_by = 'pause' and hold_key = ? limit +?)`,
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
  view: `select ${VIEW} from ${t.item} where id = ?`,
  input: `select input, keep_until from ${t.item} where id = ?`,
  summary: `select ${SUMMARY} from ${t.item} where id = ?`,
  /** By the index of the ids. */
  idsBetween: `
    select id from ${t.item} where id >= ? and id < ? and (keep_until is null or keep_until > ?) order by id limit +?`,
  summaryBySeq: `select ${SUMMARY} from ${t.item} where seq = ?`,
  /** By item_listed, one type of a queue after the other. (queue, type) > (?, ?) would walk over every item of the queue. */
  nextType: `
    select queue, type from ${t.item} where state = ? and queue = ? and type > ? order by type limit 1`,
  /** By item_listed: the first type of the next queue. */
  nextQueue: `
    select queue, type from ${t.item} where state = ? and queue > ? order by queue, type limit 1`,
  /** By item_listed. */
  listed: `
    select seq from ${t.item} where state = ? and queue = ? and type = ? and seq < ? order by seq desc limit +?`,
  /** By item_tag_listed. */
  listedByTag: `select item from ${t.item_tag} where tag = ? and state = ? and item < ? order by item desc limit +?`,
  /** By item_class. */
  listedByClass: `
    select seq from ${t.item} where class = ? and state = ? and seq < ? order by seq desc limit +?`,
  /** By item_fingerprint. */
  listedByFingerprint: `
    select seq from ${t.item} where fingerprint = ? and state = ? and seq < ? order by seq desc limit +?`,
  /** By item_grouped. */
  listedByGroup: `
    select seq from ${t.item} where group_id = ? and group_id <> id and seq < ? order by seq desc limit +?`,
  rootOfGroup: `select seq from ${t.item} where id = ? and group_id = ?`,
  /** By item_listed, which has all that is asked for. */
  counts: `select state, queue, type, count(*) from ${t.item} group by state, queue, type`,
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
  /** By item_ready, one priority after the other. */
  priorityBelow: `select max(priority) from ${t.item} where queue = ? and state = 0 and priority < ?`,
  /** By item_ready, from the first that is due on: of a queue with one type, the first row. */
  oldestDue: `
    select due_at from ${t.item} indexed by ${t.named('item_ready')}
    where queue = ? and state = 0 and priority = ? and type = ? order by due_at, seq limit 1`,
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
  /** By item_stuck. */
  stuckItems: `
    select ${SUMMARY}, seq from ${t.item} indexed by ${t.named('item_stuck')}
    where ((state = 4 and lease_until is null) or (state in (1, 2, 3) and wake_at is null and hold_by is null))
      and seq < ? order by seq desc limit +?`,
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
         + (select count(*) from ${t.item} where queue = ? and state in (0, 1, 2, 3, 4))`,
  /** By message_ready: bodies that are to become items. */
  foreignBodies: `
    select seq, body, due_at, id from ${t.message} where queue = ? and token is null order by priority desc, due_at, seq limit +?`,
  deleteMessage: `delete from ${t.message} where seq = ?`,

  // ── settings of the whole file ──
  mode: `select value from ${t.setting} where name = 'mode'`,
  setMode: `insert into ${t.setting} (name, value) values ('mode', ?) on conflict do nothing`,
  boot: `select value from ${t.setting} where name = 'boot'`,
  setBoot: `insert into ${t.setting} (name, value) values ('boot', ?) on conflict do update set value = excluded.value`,
  endItemLeases: `update ${t.item} set lease_until = ? where state = 4 and lease_until is not null`,
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
  releaseItem: readonly [dueAt: number, state: number]
  releaseLater: readonly [state: number]
  cancelItem: readonly [string | null]
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
  gatesOf: readonly [string]
  lapsed: readonly [seq: number, flags: number, type: string, wasRunning: number]
  due: readonly [seq: number, flags: number]
  paused: readonly [seq: number, flags: number]
  log: readonly [at: number, who: string, why: string, what: string]
  membersOf: readonly [string]
  input: readonly [input: string, keepUntil: number | null]
  ready: ReadyRow
  anyReady: readonly [number]
  headType: readonly [string]
  readyOf: ReadyRow
  expired: ReadyRow
  anyExpired: readonly [number]
  anyWaitingOf: readonly [number]
  anyReadyOf: readonly [number]
  anyDue: readonly [number]
  nextDue: readonly [number | null]
  heldRow: readonly [number, string | null]
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
  listed: readonly [number]
  listedByTag: readonly [number]
  listedByClass: readonly [number]
  listedByFingerprint: readonly [number]
  listedByGroup: readonly [number]
  rootOfGroup: readonly [number]
  counts: readonly [state: number, queue: string, type: string, count: number]
  goneCounts: readonly [state: number, queue: string, type: string, count: number]
  ended: readonly [queue: string, type: string, state: number, count: number]
  goneEnded: readonly [queue: string, type: string, state: number, count: number]
  priorityBelow: readonly [number | null]
  oldestDue: readonly [number]
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
