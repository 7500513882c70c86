-- Items that are not finished: small and hot, so that its indexes stay in memory and vacuum is quick.
--
-- state  0 ready: due, and claimed in the order of item_ready
--        1 later: scheduled, retrying or held; due_at is null if only its hold can free it
--        2 running: leased
-- Ids compare by bytes (collate "C"): the order in which rows are locked must not depend on a locale.
create table {schema}.item (
  id          text collate "C" primary key,
  seq         bigint   not null,              -- arrival: the batch, and the place in it
  queue       text     not null,
  type        text     not null,
  group_id    text     not null,
  priority    float8   not null,
  attempt     int      not null,
  queue_at    bigint   not null,
  start_at    bigint   not null,
  input       text     not null,
  rest        text,                           -- what else the envelope holds, as JSON
  state       smallint not null,
  due_at      bigint,
  hold_by     text,
  hold_key    text,
  gate_met    boolean,
  is_gated    boolean  not null,              -- some gate waits for it: look into gate_member when it ends
  is_alone    boolean  not null,              -- a root alone in its group, which needs no row in item_group
  token       text,
  settled_by  text,                           -- the token that settled it last: a repeated commit is known by it
  fence       int      not null default 0,
  lease_until bigint,
  worker      text,
  run_at      bigint,
  lapses      int      not null default 0,
  crashes     int      not null default 0,
  deliveries  int      not null default 0
);
create index item_ready  on {schema}.item (queue, priority desc, due_at, seq) where state = 0;
create index item_later  on {schema}.item (queue, due_at) where state = 1 and due_at is not null;
create index item_leased on {schema}.item (lease_until) where state = 2;
create sequence {schema}.arrival;

-- Items that have ended, until gone_at. An id stands in exactly one of the two tables.
create table {schema}.finished (
  id         text collate "C" primary key,
  queue      text    not null,
  type       text    not null,
  group_id   text    not null,
  priority   float8  not null,
  attempt    int     not null,
  queue_at   bigint  not null,
  start_at   bigint  not null,
  input      text    not null,
  rest       text,
  settled_by text,
  fence      int     not null,
  run_at     bigint,
  lapses     int     not null,
  crashes    int     not null,
  is_success boolean not null,
  ending     text    not null,
  class      text,
  outcome    text,                            -- result or error
  end_at     bigint  not null,
  gone_at    bigint  not null,
  -- A root that ended alone in its group carries the group's value.
  is_alone      boolean not null,
  group_value   text,
  group_final   boolean not null,
  group_version int     not null
);
-- Rows are written in the order of their end and removed in that order: a summary of block ranges is enough, and costs
-- nothing on the way in.
create index finished_gone on {schema}.finished using brin (gone_at);

create table {schema}.item_group (
  id      text collate "C" primary key,
  open    int     not null,
  value   text,
  final   boolean not null,
  version int     not null,
  gone_at bigint                              -- once it has closed: kept as long as the item that closed it
);

create table {schema}.gate (
  key   text collate "C" primary key,
  holds text collate "C" not null,
  need  int  not null,
  "left" int not null,                        -- members that have not ended
  "of"  text not null
);

-- A member that its gate still waits for. The row goes when the gate is told, so that nobody is counted twice.
create table {schema}.gate_member (
  member text collate "C" not null,
  gate   text collate "C" not null,
  primary key (member, gate)
);
create index gate_member_gate on {schema}.gate_member (gate);
