-- One table for every item, whatever its state. The indexes are partial: the ready index holds what can be claimed now and
-- nothing else, so it stays small and fast however many items are scheduled, held or finished.
--
-- state  0 ready: due, and claimed in the order of item_ready
--        1 later: scheduled, retrying or held; due_at is null if only its hold can free it
--        2 running: leased
--        3 success, 4 dead: kept until gone_at
create table if not exists item (
  seq         integer primary key,            -- arrival
  id          text    not null unique,
  queue       text    not null,
  type        text    not null,
  group_id    text    not null,
  priority    real    not null,
  attempt     integer not null,
  queue_at    integer not null,
  start_at    integer not null,
  input       text    not null,
  rest        text,                           -- what else the envelope holds, as JSON
  state       integer not null,
  due_at      integer,
  hold_by     text,
  hold_key    text,
  gate_met    integer,
  is_gated    integer not null,               -- some gate waits for it: look into gate_member when it ends
  token       text,
  settled_by  text,                           -- the token that settled it last: a repeated commit is known by it
  fence       integer not null default 0,
  lease_until integer,
  worker      text,
  run_at      integer,
  lapses      integer not null default 0,
  crashes     integer not null default 0,
  deliveries  integer not null default 0,
  ending      text,
  class       text,
  outcome     text,                           -- result or error
  end_at      integer,
  gone_at     integer,
  -- A root alone in its group (group_id = id) carries the group: open while it is unfinished, and then its value.
  is_alone      integer not null,
  group_value   text,
  group_final   integer not null default 0,
  group_version integer not null default 0
) strict;

create index if not exists item_ready  on item (queue, priority desc, due_at, seq) where state = 0;
create index if not exists item_later  on item (queue, due_at) where state = 1 and due_at is not null;
create index if not exists item_leased on item (lease_until) where state = 2;
create index if not exists item_gone   on item (gone_at) where gone_at is not null;

create table if not exists item_group (
  id      text primary key,
  open    integer not null,
  value   text,
  final   integer not null,
  version integer not null,
  gone_at integer                             -- once it has closed: kept as long as the item that closed it
) strict, without rowid;
create index if not exists item_group_gone on item_group (gone_at) where gone_at is not null;

create table if not exists gate (
  key   text primary key,
  holds text    not null,
  need  integer not null,
  left  integer not null,                     -- members that have not ended
  of    text    not null
) strict, without rowid;

-- A member that its gate still waits for. The row goes when the gate is told, so that nobody is counted twice.
create table if not exists gate_member (
  gate   text not null,
  member text not null,
  primary key (gate, member)
) strict, without rowid;
create index if not exists gate_member_member on gate_member (member);
