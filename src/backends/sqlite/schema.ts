import type { SchemaPlan } from '../../drivers/sqlite/schema.js'
import { ITEM_STATES } from '../../ports/words.js'
import type { Tables } from './tables.js'

/** The tables of one backend. A released step stays as it is; what changes comes as another step. */
export function schemaOf(t: Tables, prefix: string): SchemaPlan {
  return {
    component: `work ${prefix}`,
    steps: [{ version: 1, minReader: 1, sql: tables(t) }],
  }
}

/** The word for the state of an item `i` that `h` holds, if anything does. */
const stateWord = `case coalesce(i.state, case when h.seq is null then 0 else 4 end) ${ITEM_STATES.map((word, code) => `when ${code} then '${word}'`).join(' ')} end`

const dateOf = (ms: string): string => `strftime('%Y-%m-%dT%H:%M:%fZ', ${ms} / 1000.0, 'unixepoch')`

/**
 * The row of an item is written when it is enqueued, and again when it ends: a claim does not touch it. What can be claimed now has a
 * row in `ready`, and what is leased has one in `held`; both are narrow and go with the claim and with the end, so they stay small and
 * fast however many items are scheduled, held back or finished.
 *
 * state  null: open, in `ready` (waiting) or in `held` (active)     5 completed, until keep_until
 *        1 scheduled                                               6 dead, until keep_until
 *        2 retrying: scheduled, attempt > 1                        7 cancelled, until keep_until
 *        3 blocked: held back
 * flags  1 some gate waits for it    2 a gate holds it, or has held it   4 the root is the only member of its group, which has no row
 *        8 an inbox watches it        16 it has tags                      32 it has rows in attempt
 *
 * Times are real: SQLite stores those without a fraction as integers, and a clock may have fractions.
 */
const tables = (t: Tables): string => `
create table ${t.item} (
  seq         integer primary key,  -- arrival
  id          text    not null unique,
  queue       text    not null,
  type        text    not null,
  group_id    text,                 -- null: its own id, for it is a root
  priority    real    not null,
  attempt     integer not null,
  queue_at    real    not null,
  start_at    real    not null,
  profile     integer,              -- what else the envelope holds, if it shares that with others
  envelope_rest text,               -- if it does not, as JSON
  waiter      text,
  state       integer,
  due_at      real,                 -- null: only its hold can free it
  deadline    real,                 -- a claim ends what has expired, whatever its type
  wake_at     real,                 -- while it is scheduled, retrying or blocked: when that ends by itself
  hold_by     text,
  hold_key    text,
  gate_met    integer,
  flags       integer not null,
  settled_token  text,                 -- the token that settled it last: a repeated commit is known by it
  run_at      real,                 -- when it was last claimed, once that lease has ended it
  lapses      integer not null default 0,
  crashes     integer not null default 0,
  deliveries  integer not null default 0, -- those that were put back
  cancelled   text,                 -- why it is being cancelled
  ending      text,
  class       text,
  fingerprint text,                 -- of its last attempt
  end_at      real,
  keep_until     real,
  -- A run that completed its item at the first attempt is stored here and needs no row in attempt.
  run_attempt integer,
  run_started_at    real,
  run_ended_at      real,
  run_worker      text,
  -- Of a group that has no row.
  group_final   integer not null default 0,
  group_version integer not null default 0,
  -- What may be long comes last: to read a column SQLite reads all that comes before it in the row, page by page.
  outcome     text,                 -- result or error: lists read errors, which are short
  input       text    not null,
  progress    text,
  group_value text                  -- of a group that has no row
) strict;
create index ${t.named('item_delayed')} on ${t.item} (queue, wake_at) where wake_at is not null;
create index ${t.named('item_keep_until')} on ${t.item} (keep_until) where keep_until is not null;
-- What is open is listed by ready and held.
create index ${t.named('item_listed')} on ${t.item} (state, queue, type, seq) where state is not null;
create index ${t.named('item_grouped')} on ${t.item} (group_id, seq) where group_id is not null;
create index ${t.named('item_paused')} on ${t.item} (hold_key) where hold_by = 'pause';
create index ${t.named('item_class')} on ${t.item} (class, state, seq) where class is not null;
create index ${t.named('item_fingerprint')} on ${t.item} (fingerprint, state, seq) where fingerprint is not null;
-- Holds only what is open and has a deadline.
create index ${t.named('item_expiring')} on ${t.item} (queue, deadline, seq) where state is null and deadline is not null;
-- For operators: what ended lately (it grows at its right edge only), what failed alike, what is stuck (empty where all is well).
create index ${t.named('item_ended')} on ${t.item} (end_at, state, queue, type) where end_at is not null;
create index ${t.named('item_failures')} on ${t.item} (fingerprint, class, type, end_at, keep_until)
  where state = 6 and fingerprint is not null;
create index ${t.named('item_stuck')} on ${t.item} (seq) where state in (1, 2, 3) and wake_at is null and hold_by is null;

-- What envelopes have in common besides their columns: the version, and a retry policy. A bounded number of rows, which stay.
create table ${t.profile} (no integer primary key, rest text not null unique) strict;

-- What can be claimed now, in the order of claims within a type. A claim takes rows from the front, type by type.
create table ${t.ready} (
  queue  text    not null,
  type   text    not null,
  rank   real    not null,          -- the priority, negated: in this order the first is the next
  due_at real    not null,
  seq    integer not null,
  primary key (queue, type, rank, due_at, seq)
) strict, without rowid;

-- One row for each claim from a queue. Its number is the fence of what it leased, and never comes again.
create table ${t.lease} (
  no     integer primary key autoincrement,
  token  text    not null unique,   -- one that ends with a dot is completed by the number of the item
  queue  text    not null,
  until  real    not null,          -- none of its items is free before, in the time of the lease clock (lease-clock.ts)
  worker text    not null,
  at     real    not null,
  open   integer not null           -- items that it still holds
) strict;
create index ${t.named('lease_until')} on ${t.lease} (queue, until);

create table ${t.held} (
  seq        integer primary key,
  lease      integer not null,
  until      real    not null,
  is_running integer not null default 0 -- what the last heartbeat said; a lapse is a crash only then
) strict;

-- For people and their tools: what the tables above say, in words and dates.
create view ${t.job} as
select i.id, i.queue, i.type, ${stateWord} as state, i.ending, i.class, i.attempt, i.priority,
       ${dateOf('i.queue_at')} as enqueued_at, ${dateOf('i.due_at')} as due_at, ${dateOf('coalesce(l.at, i.run_at)')} as claimed_at,
       ${dateOf('i.end_at')} as ended_at, ${dateOf('i.keep_until')} as kept_until, l.worker, i.hold_by, i.hold_key,
       coalesce(i.group_id, i.id) as group_id, i.lapses, i.crashes, i.input,
       case when i.state = 5 then i.outcome end as result, case when i.state > 5 then i.outcome end as error
from ${t.item} i left join ${t.held} h on h.seq = i.seq left join ${t.lease} l on l.no = h.lease;

create table ${t.item_tag} (
  item  integer not null,
  tag   text    not null,
  state integer not null,           -- that of its item, moved with it
  primary key (item, tag)
) strict, without rowid;
create index ${t.named('item_tag_listed')} on ${t.item_tag} (tag, state, item);

create table ${t.attempt} (
  item        integer not null,
  n           integer not null,     -- from 1, in the order in which they ended
  attempt     integer not null,
  started_at  real    not null,
  ended_at    real    not null,
  worker      text    not null,
  class       text,
  rule        text,
  error       text,
  fingerprint text,
  detail      text,                 -- of its error, as JSON
  primary key (item, n)
) strict, without rowid;

-- A group that has other members than its root, or another name than its root.
create table ${t.item_group} (
  id         text not null primary key,
  open       integer not null,
  final      integer not null,
  version    integer not null,
  is_watched integer not null,
  keep_until    real,                  -- once it has closed: kept as long as the item that closed it
  value      text                   -- last, because it may be long
) strict; -- with a rowid: without one every lookup of an id would read the values of those it is compared with
create index ${t.named('item_group_keep_until')} on ${t.item_group} (keep_until) where keep_until is not null;

create table ${t.gate} (
  key   text primary key,
  held_id   text    not null,
  need  integer not null,
  remaining integer not null,       -- members that have not ended
  condition text    not null
) strict, without rowid;
create index ${t.named('gate_held_id')} on ${t.gate} (held_id);

-- A member that its gate still waits for. The row goes when the gate has counted it, so that no member is counted twice.
create table ${t.gate_member} (
  gate   text not null,
  member text not null,
  primary key (gate, member)
) strict, without rowid;
create index ${t.named('gate_member_member')} on ${t.gate_member} (member);

-- Inboxes to notify, beside the waiter that an item carries. kind: i item, g group.
create table ${t.watcher} (
  kind  text not null,
  id    text not null,
  inbox text not null,
  primary key (kind, id, inbox)
) strict, without rowid;

-- is_resumed: what it held is being freed step by step.
create table ${t.pause} (
  what    text    not null,
  name    text    not null,
  is_resumed integer not null,
  primary key (what, name)
) strict, without rowid;

create table ${t.schedule} (name text primary key, spec text not null, next_at real not null) strict, without rowid;

create table ${t.worker} (
  id      text primary key,
  host    text not null,
  version text not null,
  types   text not null,
  queues  text not null,
  seen_at real not null,
  settings text                     -- JSON
) strict, without rowid;

create table ${t.action_log} (seq integer primary key, at real not null, who text not null, why text not null, what text not null) strict;

-- For other processes: a notification of an inbox (kind i), a published message (kind p). Kept for a minute.
create table ${t.notification} (
  seq    integer primary key autoincrement,
  at     real not null,
  sender text not null,
  kind   text not null,
  name   text not null,
  body   text not null
) strict;

-- What came through the plain queue port.
create table ${t.message} (
  seq         integer primary key,
  queue       text    not null,
  body        text    not null,
  priority    real    not null,
  due_at      real    not null,
  dedupe_key  text,
  delivery    integer not null default 1,
  token       text,
  lease_until real,
  id          text    not null,
  starts      integer not null default 0, -- deliveries that began to run
  is_started  integer not null default 0, -- so did this one
  note        text                        -- what its consumer keeps with it
) strict;
create index ${t.named('message_ready')} on ${t.message} (queue, priority desc, due_at, seq) where token is null;
create index ${t.named('message_leased')} on ${t.message} (queue, lease_until) where token is not null;
create unique index ${t.named('message_token')} on ${t.message} (token) where token is not null;
create unique index ${t.named('message_dedupe')} on ${t.message} (queue, dedupe_key) where dedupe_key is not null;

create table ${t.dead_letter} (
  seq   integer primary key,
  queue text not null,
  body  text not null,
  error text not null,
  at    real not null,
  id    text not null,
  detail text
) strict;
create unique index ${t.named('dead_letter_id')} on ${t.dead_letter} (id, queue);
-- In the order of arrival: the number of the row is the end of every index.
create index ${t.named('dead_letter_listed')} on ${t.dead_letter} (queue);

create table ${t.setting} (name text primary key, value text not null) strict, without rowid;

create table ${t.store} (key text primary key, value text not null, keep_until real) strict, without rowid;
create index ${t.named('store_keep_until')} on ${t.store} (keep_until) where keep_until is not null;
`
