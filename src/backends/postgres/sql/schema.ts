/**
 * Tables and indexes, version 1.
 *
 * An item that has not ended is one row of `item`, small and hot, so that its indexes stay in memory and vacuum is quick; when
 * it ends the row moves to `ended_item`, where it stays until `keep_until`. An id is in exactly one of the two. Ids compare by
 * bytes (collate "C"): the order in which rows are locked must not depend on a locale.
 *
 * Names of queues, and pairs of queue and type, are kept once and are numbers in rows: rows and indexes are
 * narrower for it, and one index by queue_type answers for type, queue, and both.
 */
export const SCHEMA = `
create table {schema}.queue (
  no   int generated always as identity primary key,
  name text collate "C" not null unique
);
create table {schema}.queue_type (
  no    int generated always as identity primary key,
  queue int not null references {schema}.queue,
  type  text collate "C" not null,
  unique (queue, type)
);

-- state  0 ready: due, and claimed in the order of item_ready
--        1 later: scheduled, retrying or held; due_at is null if only its hold can free it
--        2 running: leased
--        3 on hold: a claim met it while its queue or type was paused; it keeps its due time, and with it its place
create table {schema}.item (
  id          text collate "C" primary key,
  seq         bigint   not null,              -- arrival: the batch, and the place in it
  queue       int      not null,
  queue_type        int      not null,
  priority    float8   not null,
  attempt     int      not null,
  state       smallint not null,
  is_single    boolean  not null,              -- a root that is the only member of its group, which needs no row in item_group
  fence       int      not null default 0,
  lapses      int      not null default 0,
  crashes     int      not null default 0,
  deliveries  int      not null default 0,
  queue_at    float8   not null,
  start_at    float8   not null,
  due_at      bigint,
  deadline    float8,                         -- of its envelope: a claim ends what has expired, whatever its type
  lease_until bigint,
  run_at      bigint,                         -- when it was last handed to a worker
  running     boolean  not null default false, -- what the last heartbeat of its lease said; a lapse is a crash only then
  input       text     not null,
  group_id    text collate "C",               -- null: its own id
  envelope_rest        text,                           -- what else the envelope holds, as JSON
  token       text,
  worker      text,
  settled_token  text,                           -- the token that settled it last: a repeated commit is known by it
  waiter      text,
  hold_by     text,
  hold_key    text,
  gate_met    boolean,
  cancelled   text,
  progress    text,
  fingerprint text,                           -- of its last failure
  attempts     text                            -- its last attempts: JSON objects, with commas between
) with (
  -- Every item leaves two dead rows here, however small the table is: a share of it says nothing.
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
create index item_ready  on {schema}.item (queue, priority desc, due_at, seq) where state = 0;
-- The same of each type: what there is room for is found without stepping over what there is none for.
create index item_typed  on {schema}.item (queue_type, priority desc, due_at, seq) where state = 0;
create index item_expiring on {schema}.item (queue, deadline, seq) where state = 0 and deadline is not null;
create index item_delayed  on {schema}.item (queue, due_at) where state = 1 and due_at is not null;
create index item_leased on {schema}.item (queue, lease_until) where state = 2;
create index item_held  on {schema}.item (hold_key, seq) where state = 3;
-- Not of leased items: those are few, and found by item_leased. Every claim would write it.
create index item_list   on {schema}.item (queue_type, state, seq) where state <> 2;
create index item_failed on {schema}.item (fingerprint, seq) where fingerprint is not null;
-- Of those in the group of another; a root is found by its id.
create index item_grouped on {schema}.item (group_id, seq) where group_id is not null;
create sequence {schema}.arrival;

-- state  5 completed, 6 dead, 7 cancelled
create table {schema}.ended_item (
  id          text collate "C" primary key,
  seq         bigint   not null,              -- in the order of ends; from the same numbers as arrivals
  queue_type        int      not null,
  state       smallint not null,
  priority    float8   not null,
  attempt     int      not null,
  fence       int      not null,
  lapses      int      not null,
  crashes     int      not null,
  queue_at    float8   not null,
  start_at    float8   not null,
  run_at      bigint,
  end_at      bigint   not null,
  keep_until     bigint   not null,
  -- A root that ended as the only member of its group carries the group's value: its own outcome, where there is a version and no value.
  is_single      boolean not null,
  group_final   boolean not null,
  group_version int     not null,
  group_value   text,
  group_id    text collate "C",
  input       text,                           -- only of what may be driven again
  envelope_rest        text,
  settled_token  text,
  ending      text     not null,
  class       text,
  outcome     text,                           -- result or error
  progress    text,
  fingerprint text,
  attempts     text,
  -- The run that completed it, which is not among its attempts.
  started_at  float8,
  ended_at    float8,
  worker      text
);
create index ended_item_keep_until   on {schema}.ended_item (keep_until);
create index ended_item_list   on {schema}.ended_item (queue_type, state, seq);
create index ended_item_class  on {schema}.ended_item (class, seq) where class is not null;
create index ended_item_failed on {schema}.ended_item (fingerprint, seq) where fingerprint is not null;
create index ended_item_grouped on {schema}.ended_item (group_id, seq) where group_id is not null;

-- Only of items that have tags. seq is that of the arrival.
create table {schema}.item_tag (
  id  text collate "C" not null,
  tag text collate "C" not null,
  seq bigint not null,
  primary key (id, tag)
);
create index item_tag_list on {schema}.item_tag (tag, seq);
-- An inbox to notify when an item ends. Not in the row of the item: a claim passes over rows that are being written, and the item
-- would start after those behind it, or only when the next poll finds it.
create table {schema}.item_watcher (
  item  text collate "C" not null,
  inbox text collate "C" not null,
  primary key (item, inbox)
);

create table {schema}.item_group (
  id       text collate "C" primary key,
  open     int     not null,
  final    boolean not null,
  version  int     not null,
  keep_until  bigint,                            -- once it has closed: kept as long as the item that closed it
  value    text,
  watchers text[]
);
create index item_group_keep_until on {schema}.item_group (keep_until) where keep_until is not null;

create table {schema}.gate (
  key    text collate "C" primary key,
  held_id  text collate "C" not null,
  need   int  not null,
  remaining int  not null,                       -- members that have not ended
  condition   text not null
);
create index gate_held_id on {schema}.gate (held_id);
-- A member that its gate still waits for. The row is deleted when the gate is notified, so no member counts twice.
create table {schema}.gate_member (
  member text collate "C" not null,
  gate   text collate "C" not null,
  primary key (member, gate)
);
create index gate_member_gate on {schema}.gate_member (gate);

-- What a transaction of the user leaves to us, since it may only add rows: everything else would be locked until it commits.
-- A gate that has to be checked: members may have ended without seeing it. Claims check it (check_gates).
create table {schema}.gate_check (
  no    bigint generated always as identity primary key,
  gate  text collate "C" not null,
  at    bigint not null default 0,            -- not before then
  tries int    not null default 0
);
create index gate_check_at on {schema}.gate_check (at, no);
-- An item that counts in a group, but not yet in the row of that group. Commits add it there (fold_shares).
create table {schema}.group_share (
  no       bigint generated always as identity primary key,
  group_id text collate "C" not null,
  item     text collate "C" not null,
  by       int  not null,
  watch    text,
  at       bigint not null                  -- when it was added: what its group kept then, it keeps
);
create index group_share_group on {schema}.group_share (group_id);

create table {schema}.pause (
  key     text collate "C" primary key,       -- queue:name or type:name
  is_resumed boolean not null                    -- resumed, but not everything on hold has its place back
);
create table {schema}.schedule (name text collate "C" primary key, spec text not null, next_at bigint not null);
create table {schema}.action_log (
  no bigint generated always as identity primary key,
  at bigint not null, who text not null, why text not null, what text not null
);
create index action_log_at on {schema}.action_log (at);
-- passed_over  tokens of leases that its last heartbeats could not extend, because a transaction held the row
create table {schema}.worker (
  id text collate "C" primary key, record text not null, seen_at bigint not null, passed_over text[] not null default '{}'
);

-- The plain ports: bodies on queues, keys with expiry, and what was given up.
-- state  0 visible, 1 delayed, 2 leased
create table {schema}.message (
  no          bigint generated always as identity primary key,
  queue       int      not null,
  priority    float8   not null,
  state       smallint not null,
  deliveries  int      not null default 0,
  due_at      bigint   not null,
  lease_until bigint,
  token       text,
  dedupe_key  text collate "C",
  id          text collate "C" not null,
  starts      int      not null default 0,    -- deliveries that began to run
  is_started  boolean  not null default false, -- so did this one
  note        text,                           -- what its consumer keeps with it
  body        text     not null
);
create index message_ready  on {schema}.message (queue, priority desc, due_at, no) where state = 0;
create index message_delayed  on {schema}.message (queue, due_at) where state = 1;
create index message_leased on {schema}.message (queue, lease_until) where state = 2;
create unique index message_token  on {schema}.message (token) where token is not null;
create unique index message_dedupe on {schema}.message (queue, dedupe_key) where dedupe_key is not null;
create table {schema}.dead_letter (
  no bigint generated always as identity primary key,
  queue int not null, at bigint not null, body text not null, error text not null,
  id text collate "C" not null, detail text,
  unique (queue, id)
);
create index dead_letter_list on {schema}.dead_letter (queue, no);
create index dead_letter_at on {schema}.dead_letter (at);
create table {schema}.store (key text collate "C" primary key, value text not null, expires_at bigint);
create index store_expires on {schema}.store (expires_at) where expires_at is not null;

-- Fillers: rows of no queue and type, which nothing ever finds. PostgreSQL plans by the rows that vacuum or analyze counted last. A queue is
-- often all but empty then, and where a table has one row it costs least to walk it whole, by its key if need be, for every row of the other
-- side. Such a plan is kept when the work comes: with 30,000 items a claim of a thousand took 7 s and their end 13 s. With these, the tables are
-- never small.
insert into {schema}.item (id, seq, queue, queue_type, priority, attempt, state, is_single, queue_at, start_at, input)
  select E'\\x01filler ' || n, 0, 0, 0, 0, 0, 9, false, 0, 0, '' from generate_series(1, 5000) n;
insert into {schema}.ended_item (id, seq, queue_type, state, priority, attempt, fence, lapses, crashes, queue_at, start_at, end_at, keep_until,
                               is_single, group_final, group_version, ending)
  select E'\\x01filler ' || n, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 9223372036854775807, false, false, 0, 'done'
    from generate_series(1, 5000) n;
insert into {schema}.item_group (id, open, final, version)
  select E'\\x01filler ' || n, 0, false, 0 from generate_series(1, 5000) n;

-- Which mode works here: native or plain.
create table {schema}.setting (name text primary key, value text not null);
`
