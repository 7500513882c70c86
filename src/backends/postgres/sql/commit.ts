/**
 * commit_batch: apply a batch of settlements, each whole or not at all, each behind its guard.
 *
 * One call is one statement for the client, and one transaction. Inside, it is a function of several statements, because a
 * single statement cannot be right: its parts share one snapshot, taken before it waits for a lock. A gate that is opened
 * while another connection ends a member would wait for the member's row, find it gone, and not see that it has
 * finished; an enqueue would not see that its id has finished in the meantime. Here every statement has a snapshot of its
 * own, taken after the locks of the one before it.
 *
 * Locks are taken in one order by every batch: schedules, the lock on resumes, the lock on pushes, items by id, finished items by id, new items by id,
 * groups by id, gates by key. So batches wait for each other but never in a circle.
 *
 * Settlements are numbered from 1 (`s`). A guard that does not hold, or a conflict, takes its settlement out of `v_ok`, and
 * every later statement looks there. Everything is found by a primary key, or by gate_holds, gate_member_gate, item_aside.
 *
 * REPLY  a JSON text: kinds (one letter for each settlement: a applied, o applied to an item that was alone in its group,
 *        which the client then knows to be closed if the item has ended, w the same and somebody waits for it, r repeated,
 *        s stale, c conflict), closed ([s, group, value, watched]...), conflicts ([s, group, value, final, version]...)
 */
export const COMMIT = `
-- texts: a JSON list of texts and nulls as an array; null if there is none.
create function {schema}.texts(p json) returns text[] language sql immutable as {body}
  select array_agg(t.value order by t.n) from json_array_elements_text(p) with ordinality t(value, n)
{body};

create function {schema}.commit_batch(
  p_now      bigint,   -- null: the server's time
  p_ids      text[],   -- the guards: a leased item with its token, or an id that must be absent (token null); null: others
  p_tokens   text[],
  p_absent   int,      -- how many of them want an id to be absent
  p_locks    text[],   -- items that this batch needs to stand still: leased, members of new gates, roots of touched groups
  p_touched  text[],   -- groups that are moved or contributed to
  p_roots    json,     -- pushes of the id that the guard wants absent
  p_children json,     -- other pushes
  p_ends     json,     -- finish, park, retryAt, release
  p_moves    json,     -- what each settlement adds to the open count of a group, and who wants to hear of its close
  p_said     json,     -- contributions, in the order of the batch
  p_expects  boolean,  -- whether any of them expects a version
  p_gates    json,     -- gates to open, with their members
  p_strangers text[],  -- members of those gates that this batch does not push itself
  p_tells    json,     -- gates to tell, beyond those that know the member themselves
  p_looks    text[],   -- gates that hold an item that is pushed here
  p_tags     json,     -- tags of pushed items
  p_ready    json,     -- [queue, delay]: which queues this batch gives work to
  p_rare     json      -- what people do: guards by status and schedule, reopen, erase, cancel, pause, schedule, log, notify
) returns text
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as {body}
declare
  v_now       bigint := {schema}.at(p_now);
  v_batch     bigint;
  v_kinds     text[];
  v_ok        boolean[];
  v_joined    text[];      -- touched groups whose root was alone until now
  v_locks     text[] := p_locks;
  v_new       text[] := '{}'; -- ids that this batch has pushed
  v_some      text[];
  v_awaited   boolean := true; -- some gate waits for somebody
  v_has_gates boolean := false;
  v_offered   int;
  v_counted   int;
  v_extra     json;        -- moves that only came to light here
  v_gated     text[];      -- ended items that some gate waits for, and how they ended
  v_gated_ok  boolean[];
  v_ended     text[];      -- ended or erased
  v_opened    text[];
  v_told      text[];
  v_company   boolean;     -- somebody who was thought to end alone has company
  v_conflicts json;
  v_closed    json;
  v_ready     json;
  v_wake      int[] := '{}'; -- queues that got work in a way that the client could not know
  v_told_ids    json;      -- [inbox, item]
  v_told_groups json;      -- [inbox, group]
  v_rare      record;
  v_holds     boolean;
begin
  -- 0. What has to come before the locks on items -------------------------------------------------------------------------
  if p_rare->'guards' is not null and exists (
       select from json_to_recordset(p_rare->'guards') g(kind text) where g.kind = 'fire') then
    -- A schedule that does not exist has no row to lock. Fires are few.
    lock table {schema}.schedule in share row exclusive mode;
  end if;
  if p_rare->'pause' is not null and exists (
       select from json_to_recordset(p_rare->'pause') r(pause boolean) where not r.pause) then
    -- Claims that set items aside have committed then, and those that come now set none aside.
    perform pg_advisory_xact_lock(hashtextextended('{schema_text}', 2));
  end if;
  -- A member that does not exist has no row to lock. So whoever opens such a gate keeps all pushes out until it has committed,
  -- and pushes, which do not hinder each other, look for gates that wait for them. Otherwise a member could be pushed, run
  -- and finished while its gate is being opened, and neither would see the other.
  if p_strangers is not null and exists (
    select from unnest(p_strangers) m(id)
     where not exists (select from {schema}.item i where i.id = m.id)
       and not exists (select from {schema}.finished f where f.id = m.id)) then
    perform pg_advisory_xact_lock(hashtextextended('{schema_text}', 1));
  elsif p_roots is not null or p_children is not null then
    perform pg_advisory_xact_lock_shared(hashtextextended('{schema_text}', 1));
    v_awaited := exists (select from {schema}.gate_member);
  end if;

  -- 1. Stand still, and see whose guard holds ------------------------------------------------------------------------------
  if p_locks is not null then
    -- What a gate holds is locked with the rest, in its place in the order, because a gate that decides will write it.
    v_has_gates := exists (select from {schema}.gate);
    if v_has_gates then
      select v_locks || array_agg(g.holds) into v_locks
        from {schema}.gate g
       where g.key = any(p_looks || array(select m.gate from {schema}.gate_member m where m.member = any(p_locks)));
    end if;
    perform from {schema}.item i where i.id = any(v_locks) order by i.id for update;
    -- A statement of its own, which finds each row by its key: a join with the locked rows would compare all with all.
    select array_agg(g.kind order by g.s), array_agg(g.kind in ('a', 'o', 'w') order by g.s) into v_kinds, v_ok
      from (
        select g.s, case when g.token is null then 'a' when i.id is null then '?'
                         when i.token = g.token then
                           case when not i.is_alone then 'a' when i.waiter is null then 'o' else 'w' end
                         when i.settled_by = g.token then 'r' else 's' end as kind
          from unnest(p_ids, p_tokens) with ordinality g(id, token, s)
          left join {schema}.item i on i.id = g.id and g.token is not null
      ) g;
    if '?' = any(v_kinds) then
      -- Not among the unfinished: it has finished, perhaps while we waited for its lock.
      select array_agg(case when v_kinds[g.s] <> '?' then v_kinds[g.s] when f.settled_by = g.token then 'r' else 's' end
                       order by g.s)
        into v_kinds
        from unnest(p_ids, p_tokens) with ordinality g(id, token, s)
        left join {schema}.finished f on f.id = g.id and v_kinds[g.s] = '?' and f.gone_at > v_now;
    end if;
    if p_touched is not null then
      select array_agg(i.id) into v_joined from {schema}.item i where i.is_alone and i.id = any(p_touched);
    end if;
  else
    v_kinds := array_fill('a'::text, array[cardinality(p_ids)]);
    v_ok := array_fill(true, array[cardinality(p_ids)]);
  end if;
  if p_rare is not null then
    perform from {schema}.finished f where f.id in (
        select g.id from json_to_recordset(p_rare->'guards') g(id text)
        union select r.id from json_to_recordset(p_rare->'reopen') r(id text)
        union select r.id from json_to_recordset(p_rare->'erase') r(id text))
      order by f.id for update;
    for v_rare in
      select * from json_to_recordset(p_rare->'guards') g(s int, kind text, id text, statuses text[], name text, at bigint)
    loop
      if v_rare.kind = 'status' then
        v_holds := exists (select from {schema}.item i where i.id = v_rare.id
                            and case when i.state = 2 then 'running' else 'pending' end = any(v_rare.statuses))
                or exists (select from {schema}.finished f where f.id = v_rare.id and f.gone_at > v_now
                            and case when f.state = 5 then 'success' else 'dead' end = any(v_rare.statuses));
        -- It may end alone in its group, like one that is settled by its lease.
        v_kinds[v_rare.s] := coalesce((select case when i.waiter is null then 'o' else 'w' end
                                         from {schema}.item i where i.id = v_rare.id and i.is_alone), 'a');
      else
        v_holds := (select h.next_at from {schema}.schedule h where h.name = v_rare.name) is not distinct from v_rare.at;
      end if;
      if not v_holds then
        v_kinds[v_rare.s] := 's';
      end if;
    end loop;
    -- Nothing to run again: it is open already, or its input was not kept.
    for v_rare in select r.s, r.id from json_to_recordset(p_rare->'reopen') r(s int, id text) loop
      if not exists (select from {schema}.finished f where f.id = v_rare.id and f.gone_at > v_now and f.input is not null) then
        v_kinds[v_rare.s] := 's';
      end if;
    end loop;
    select array_agg(k in ('a', 'o', 'w') order by s) into v_ok from unnest(v_kinds) with ordinality x(k, s);
  end if;

  -- 2. New items -----------------------------------------------------------------------------------------------------------
  -- Before groups are locked: an insert may have to wait for another batch, which may be waiting for a group.
  -- The loop goes round again only after a conflict, when the pushes of the others must be separated from those of the loser.
  v_batch := nextval('{schema_text}.arrival');
  loop
    v_new := '{}';
    v_extra := null;
    if p_roots is not null then
      -- The insert itself is the guard: of all who try at the same time, one succeeds.
      with pushed as (
        insert into {schema}.item (id, seq, queue, home, priority, attempt, state, is_gated, is_alone, fence, deliveries,
                                   queue_at, start_at, due_at, lease_until, run_at, input, group_id, rest, token, worker,
                                   waiter, hold_by, hold_key)
        select p.id, (v_batch << 20) + p.n, p.queue, p.home, p.priority, p.attempt,
               case when p.token is not null then 2 when p.delay <= 0 then 0 else 1 end,
               p.gated or (v_awaited and exists (select from {schema}.gate_member m where m.member = p.id)),
               p.alone and not exists (select from {schema}.item_group g
                                where g.id = p.id and (g.gone_at is null or g.gone_at > v_now)),
               (p.token is not null)::int, (p.token is not null)::int, p.queue_at, p.start_at, v_now + p.delay,
               v_now + p.lease, case when p.token is not null then v_now end, p.input, p.group_id, p.rest, p.token, p.worker,
               p.waiter, case when p.delay <= 0 then null else p.hold_by end, case when p.delay <= 0 then null else p.hold_key end
          from json_to_recordset(p_roots) as p(s int, n int, id text, queue int, home int, group_id text, priority float8,
                 attempt int, queue_at float8, start_at float8, input text, rest text, delay bigint, hold_by text,
                 hold_key text, gated boolean, alone boolean, waiter text, token text, worker text, lease bigint)
         where v_ok[p.s]
         order by p.id collate "C"
        on conflict (id) do nothing
        returning id, group_id, is_alone
      )
      select coalesce(array_agg(id), '{}'), array_agg(id) filter (where group_id is null and not is_alone)
        into v_new, v_some from pushed;
      v_new := {schema}.without_finished(v_new, v_now);
      if v_some is not null then
        -- It came as a root alone, but its group is there: it counts in the group's row.
        select json_agg(json_build_object('s', p.s, 'g', p.id, 'by', 1, 'watch', p.waiter)) into v_extra
          from json_to_recordset(p_roots) as p(s int, id text, alone boolean, waiter text)
         where p.alone and p.id = any(v_some) and p.id = any(v_new);
      end if;
    end if;
    -- An id that must be absent, and that this batch did not just bring, is there already.
    if cardinality(v_new) < p_absent then
      select array_agg(case when v_kinds[g.s] = 'a' and g.token is null and g.id <> all(v_new) and (
                              exists (select from {schema}.item i where i.id = g.id) or
                              exists (select from {schema}.finished f where f.id = g.id and f.gone_at > v_now))
                            then 'r' else v_kinds[g.s] end order by g.s)
        into v_kinds
        from unnest(p_ids, p_tokens) with ordinality g(id, token, s);
      select array_agg(k in ('a', 'o', 'w') order by s) into v_ok from unnest(v_kinds) with ordinality x(k, s);
    end if;
    if p_children is not null then
      with offered as materialized (
        select p.* from json_to_recordset(p_children) as p(s int, n int, id text, queue int, home int, group_id text,
                 priority float8, attempt int, queue_at float8, start_at float8, input text, rest text, delay bigint,
                 hold_by text, hold_key text, gated boolean, alone boolean, waiter text, token text, worker text, lease bigint)
         where v_ok[p.s]
      ), pushed as (
        insert into {schema}.item (id, seq, queue, home, priority, attempt, state, is_gated, is_alone, fence, deliveries,
                                   queue_at, start_at, due_at, lease_until, run_at, input, group_id, rest, token, worker,
                                   waiter, hold_by, hold_key)
        select p.id, (v_batch << 20) + p.n, p.queue, p.home, p.priority, p.attempt,
               case when p.token is not null then 2 when p.delay <= 0 then 0 else 1 end,
               p.gated or (v_awaited and exists (select from {schema}.gate_member m where m.member = p.id)),
               p.alone and not exists (select from {schema}.item_group g
                                where g.id = p.id and (g.gone_at is null or g.gone_at > v_now)),
               (p.token is not null)::int, (p.token is not null)::int, p.queue_at, p.start_at, v_now + p.delay,
               v_now + p.lease, case when p.token is not null then v_now end, p.input, p.group_id, p.rest, p.token, p.worker,
               p.waiter, case when p.delay <= 0 then null else p.hold_by end, case when p.delay <= 0 then null else p.hold_key end
          -- Of one id in two settlements, the first brings it.
          from (select distinct on (o.id collate "C") o.* from offered o order by o.id collate "C", o.n) p
         order by p.id collate "C"
        on conflict (id) do nothing
        returning id, group_id, is_alone
      )
      select coalesce(array_agg(id), '{}'), (select count(*) from offered),
             count(*) filter (where group_id is null and not is_alone)
        into v_some, v_offered, v_counted from pushed;
      v_some := {schema}.without_finished(v_some, v_now);
      if cardinality(v_some) < v_offered or v_counted > 0 then
        -- A child that is there already must not be counted again, or its group would wait for it for ever. And what came as a
        -- root alone counts in the row of its group, if there is one.
        select json_agg(json_build_object('s', x.s, 'g', x.g, 'by', x.by, 'watch', x.watch)) into v_extra
          from (
            select p.s, coalesce(p.group_id, p.id) as g, case when i.id is null then -1 else 1 end as by,
                   case when i.id is not null then p.waiter end as watch
              from json_to_recordset(p_children) as p(s int, n int, id text, group_id text, counted boolean, alone boolean,
                     waiter text)
              left join {schema}.item i on i.id = p.id and i.seq = (v_batch << 20) + p.n
             where v_ok[p.s] and case when i.id is null then p.counted and not p.alone else p.alone and not i.is_alone end
            union all
            select x.s, x.g, x.by, x.watch from json_to_recordset(v_extra) x(s int, g text, by int, watch text)
          ) x;
      end if;
      v_new := v_new || v_some;
    end if;

    -- A group that has been kept long enough is gone, whether or not a sweep has come by: what is said now is said to a new one.
    if (p_touched is not null or cardinality(v_new) > 0)
       and exists (select from {schema}.item_group g where g.gone_at <= v_now) then
      delete from {schema}.item_group where id = any(array(
        select g.id from {schema}.item_group g where g.id = any(v_new || p_touched) and g.gone_at <= v_now
         order by g.id for update));
    end if;

    exit when not p_expects;
    p_expects := false;
    v_conflicts := {schema}.find_conflicts(v_ok, v_joined, p_said);
    exit when v_conflicts is null;
    -- Nothing of a settlement in conflict happens: its pushes go, and the others push again what it had brought for them.
    delete from {schema}.item where id = any(v_new);
    select array_agg(case when g.s in (select (c->>0)::int from json_array_elements(v_conflicts) c) then 'c'
                          else v_kinds[g.s] end order by g.s)
      into v_kinds
      from unnest(p_ids, p_tokens) with ordinality g(id, token, s);
    select array_agg(k in ('a', 'o', 'w') order by s) into v_ok from unnest(v_kinds) with ordinality x(k, s);
  end loop;
  if p_tags is not null then
    insert into {schema}.item_tag (id, tag, seq)
      select t.id, t.tag, (v_batch << 20) + t.n from json_to_recordset(p_tags) t(s int, n int, id text, tag text)
       where v_ok[t.s] and t.id = any(v_new)
    on conflict do nothing;
  end if;

  -- 3. Groups, and the ends of items ---------------------------------------------------------------------------------------
  if v_joined is not null then
    -- A root that was alone gets company: its group gets a row of its own, in which the root counts.
    insert into {schema}.item_group (id, open, final, version, watchers)
      select i.id, 1, false, 0, case when i.waiter is not null then array[i.waiter] end
        from {schema}.item i where i.id = any(v_joined) order by i.id on conflict (id) do nothing;
  end if;
  if p_touched is not null and exists (
       select from {schema}.finished f where f.is_alone and f.id = any(p_touched) and f.gone_at > v_now) then
    -- The same for a root that had ended alone.
    with ended as (
      update {schema}.finished f set is_alone = false, group_value = null
       where f.is_alone and f.id = any(p_touched) and f.gone_at > v_now
         and f.id in (select m.g from json_to_recordset(p_moves) m(s int, g text) where v_ok[m.s]
                     union select c.g from json_to_recordset(p_said) c(s int, g text) where v_ok[c.s])
      returning f.id
    )
    insert into {schema}.item_group (id, open, value, final, version, gone_at)
      select f.id, 0, f.group_value, f.group_final, f.group_version, f.gone_at from {schema}.finished f
       where f.id in (select id from ended) order by f.id on conflict (id) do nothing;
  end if;
  if p_ends is not null then
    with e as materialized (
      select * from json_to_recordset(p_ends) as x(s int, n int, kind text, id text, ending text, class text, outcome text,
               ms bigint, attempt int, alone boolean, value text, final boolean, version int, was text, fp text,
               started bigint, hold_by text, hold_key text)
       where v_ok[x.s]
    ), gone as (
      delete from {schema}.item i using e where i.id = e.id and e.kind in ('finish', 'park')
      returning i.*, e.s, e.n, e.kind, e.ending, e.class, e.outcome, e.ms, e.alone, e.alone and i.is_alone as ends_alone,
                e.value, e.final, e.version, e.was, e.fp, e.started
    ), kept as (
      insert into {schema}.finished (id, seq, home, state, priority, attempt, fence, lapses, crashes, queue_at, start_at, run_at,
               end_at, gone_at, is_alone, group_final, group_version, group_value, group_id, input, rest, settled_by, ending,
               class, outcome, progress, fingerprint, history)
      select g.id, (v_batch << 20) + g.n, g.home,
             case when g.kind = 'finish' then 5 when g.ending = 'cancelled' then 7 else 6 end,
             g.priority, g.attempt, g.fence, g.lapses, g.crashes, g.queue_at, g.start_at, coalesce(g.run_at, g.started),
             v_now, v_now + g.ms, g.ends_alone, g.ends_alone and g.final,
             case when g.ends_alone then g.version else 0 end, case when g.ends_alone then g.value end, g.group_id,
             case when g.kind = 'park' then g.input end, g.rest,
             -- Only who settles by the lease is known again by its token.
             case when p_tokens[g.s] = g.token then g.token else g.settled_by end,
             g.ending, g.class, g.outcome, g.progress, case when g.was is null then coalesce(g.fp, g.fingerprint) else g.fp end,
             case when g.history is null or g.was is null then coalesce(g.was, g.history) else {schema}.with_attempt(g.history, g.was) end
        from gone g
    ), again as (
      update {schema}.item i
         set due_at = case when e.kind = 'release' and e.ms is null then i.due_at else v_now + e.ms end,
             state = case when e.kind = 'release' and e.ms is null then
                            case when i.due_at is null or i.due_at > v_now then 1 else 0 end
                          when e.ms > 0 then 1 else 0 end,
             hold_by = case when coalesce(v_now + e.ms, i.due_at, v_now + 1) > v_now then e.hold_by end,
             hold_key = case when coalesce(v_now + e.ms, i.due_at, v_now + 1) > v_now then e.hold_key end,
             attempt = coalesce(e.attempt, i.attempt),
             start_at = case when e.kind = 'retryAt' then v_now + e.ms else i.start_at end,
             deliveries = case when e.kind = 'retryAt' then 0 else i.deliveries end,
             settled_by = case when p_tokens[e.s] = i.token then i.token else i.settled_by end,
             token = null, lease_until = null, worker = null, run_at = null,
             fingerprint = case when e.was is null then i.fingerprint else e.fp end,
             history = case when i.history is null or e.was is null then coalesce(e.was, i.history)
                            else {schema}.with_attempt(i.history, e.was) end
        from e where i.id = e.id and e.kind in ('retryAt', 'release')
      returning i.queue, e.kind, p_tokens[e.s] as token
    ), noted as (
      update {schema}.item i
         set fingerprint = e.fp, run_at = coalesce(i.run_at, e.started),
             history = case when i.history is null then e.was else {schema}.with_attempt(i.history, e.was) end
        from e where i.id = e.id and e.kind = 'record'
    )
    select bool_or(g.alone and not g.ends_alone), array_agg(g.id) filter (where g.is_gated),
           array_agg(g.kind = 'finish') filter (where g.is_gated), array_agg(g.id) filter (where v_has_gates),
           (select array_agg(a.queue) from again a where a.token is null),
           (select json_agg(json_build_array(x.inbox, h.id))
              from (select * from gone w where w.waiter is not null or w.watchers is not null) h
             cross join lateral (select distinct u.inbox from unnest(h.watchers || h.waiter) u(inbox)) x
             where x.inbox is not null),
           json_agg(json_build_array(g.waiter, g.id)) filter (where g.waiter is not null and g.ends_alone)
      into v_company, v_gated, v_gated_ok, v_ended, v_wake, v_told_ids, v_told_groups
      from gone g;
  end if;
  if v_joined is not null then
    -- Those that have not just ended.
    update {schema}.item set is_alone = false where id = any(v_joined);
  end if;
  if p_touched is not null or v_extra is not null or v_company then
    with e as (
      -- Sent as the ends of roots alone, but they have company: they count in the group's row like others.
      select * from json_to_recordset(case when v_company then p_ends end) as x(s int, id text, ms bigint, alone boolean,
               value text, final boolean, version int)
       where v_kinds[x.s] = 'a' and x.alone
    ), moved as (
      select m.g, sum(m.by)::int as by, max(m.s) as s, (array_agg(m.keep order by m.s desc))[1] as keep,
             array_agg(distinct m.watch) filter (where m.watch is not null) as watchers from (
        select s, g, by, keep, watch
          from json_to_recordset(p_moves) x(s int, g text, by int, keep bigint, watch text) where v_ok[x.s]
        union all select s, g, by, 86400000, watch from json_to_recordset(v_extra) x(s int, g text, by int, watch text)
        union all select e.s, e.id, -1, e.ms, null from e
      ) m group by m.g
    ), said as (
      -- The first final value wins, otherwise the last one.
      select c.g, count(*) filter (where c.stop is null or c.n <= c.stop)::int as version, bool_or(c.final) as final,
             (array_agg(c.value order by c.final desc, case when c.final then c.n else -c.n end))[1] as value
        from (
          select x.*, min(x.n) filter (where x.final) over (partition by x.g) as stop
            from (
              select s, n, g, value, final
                from json_to_recordset(p_said) y(s int, n int, g text, value text, final boolean) where v_ok[y.s]
              union all select e.s, e.s, e.id, e.value, e.final from e where e.version > 0
            ) x
        ) c group by c.g
    ), put as (
      insert into {schema}.item_group as t (id, open, value, final, version, gone_at, watchers)
      select g, coalesce(m.by, 0), c.value, coalesce(c.final, false), coalesce(c.version, 0),
             case when coalesce(m.by, 0) <= 0 then v_now + m.keep end, m.watchers
        from moved m full join said c using (g)
       order by g collate "C"
      on conflict (id) do update set
        open = t.open + excluded.open,
        value = case when t.final then t.value else coalesce(excluded.value, t.value) end,
        version = t.version + case when t.final then 0 else excluded.version end,
        final = t.final or excluded.final,
        gone_at = case when t.open + excluded.open <= 0 then coalesce(excluded.gone_at, t.gone_at, v_now + 86400000) end,
        watchers = case when excluded.watchers is null then t.watchers else t.watchers || excluded.watchers end
      returning id, open, value, watchers
    ), closed as materialized (
      select m.s, p.id, p.value, p.watchers
        from put p join moved m on m.g = p.id where p.open <= 0 and p.open - m.by > 0
    )
    select json_agg(json_build_array(c.s, c.id, c.value, c.watchers is not null)),
           array_agg(c.id) filter (where c.watchers is not null),
           coalesce((select json_agg(json_build_array(x.inbox, h.id)) from closed h
             cross join lateral (select distinct u.inbox from unnest(h.watchers) u(inbox)) x), v_told_groups)
      into v_closed, v_some, v_ready
      from closed c;
    if v_some is not null then
      update {schema}.item_group set watchers = null where id = any(v_some);
      -- Those of roots alone, and these.
      v_told_groups := case when v_told_groups is null then v_ready
                            else (select json_agg(x.value) from (select value from json_array_elements(v_told_groups)
                                  union all select value from json_array_elements(v_ready)) x) end;
    end if;
  end if;

  -- 4. Gates ---------------------------------------------------------------------------------------------------------------
  if p_gates is not null then
    with opened as (
      insert into {schema}.gate (key, holds, need, "left", "of")
      select distinct on (g.key collate "C") g.key, g.holds, g.need, 0, g."of"
        from json_to_recordset(p_gates) g(s int, key text, holds text, need int, "of" text) where v_ok[g.s]
       order by g.key collate "C", g.s
      on conflict (key) do nothing
      returning key
    )
    select array_agg(key) into v_opened from opened;
  end if;
  if v_opened is not null then
    -- Members stand still since step 1: each is among the unfinished, or it has finished and is seen here.
    with member as materialized (
      select distinct g.key, m.id, f.state = 5 as is_success
        from json_to_recordset(p_gates) g(s int, key text, members json)
       cross join lateral json_array_elements_text(g.members) m(id)
        left join {schema}.finished f on f.id = m.id and f.gone_at > v_now
       where g.key = any(v_opened) and v_ok[g.s]
    ), waits as (
      insert into {schema}.gate_member (member, gate) select id, key from member where is_success is null
    ), marked as (
      update {schema}.item i set is_gated = true where not i.is_gated and i.id in (select id from member where is_success is null)
    )
    update {schema}.gate g
       set "left" = n.waiting, need = g.need - case when g."of" = 'done' then n.ended else n.good end
      from (select key, count(*) filter (where is_success is null) as waiting, count(is_success) as ended,
                   count(*) filter (where is_success) as good from member group by key) n
     where g.key = n.key;
  end if;
  if v_gated is not null or p_tells is not null then
    select array_agg(distinct x.gate) into v_told from (
      select m.gate from {schema}.gate_member m where m.member = any(v_gated)
      union all select t.key from json_to_recordset(p_tells) t(s int, key text) where v_ok[t.s]) x;
    perform from {schema}.gate g where g.key = any(v_told) order by g.key for update;
    with told as (
      select m.gate, m.member, e.ok from unnest(v_gated, v_gated_ok) e(id, ok)
        join {schema}.gate_member m on m.member = e.id
      union select t.key, t.member, t.ok from json_to_recordset(p_tells) t(s int, key text, member text, ok boolean)
       where v_ok[t.s]
    ), heard as (
      -- The first word about a member counts: the row is there once.
      delete from {schema}.gate_member m using told t where m.gate = t.gate and m.member = t.member
      returning m.gate, t.ok
    )
    update {schema}.gate g
       set "left" = g."left" - n.ended, need = g.need - case when g."of" = 'done' then n.ended else n.good end
      from (select gate, count(*) as ended, count(*) filter (where ok) as good from heard group by gate) n
     where g.key = n.gate;
  end if;
  v_told := v_opened || v_told || p_looks;
  if v_told is not null then
    -- A gate may be opened before the item that it holds comes; then it decides when the item comes.
    with decided as materialized (
      select g.key, g.holds, g.need <= 0 as met from {schema}.gate g
       where g.key = any(v_told) and (g.need <= 0 or g.need > g."left")
         and (exists (select from {schema}.item i where i.id = g.holds)
              or exists (select from {schema}.finished f where f.id = g.holds))
    ), freed as (
      update {schema}.item i
         set state = 0, due_at = v_now, gate_met = d.met, hold_by = null, hold_key = null
        from decided d
       where i.id = d.holds and i.state < 2 and i.hold_by = 'gate' and i.hold_key = d.key
         and (i.due_at is null or i.due_at > v_now)
      returning i.queue
    ), closed as (
      delete from {schema}.gate g using decided d where g.key = d.key
    ), forgotten as (
      delete from {schema}.gate_member m using decided d where m.gate = d.key
    )
    select v_wake || array_agg(f.queue) into v_wake from freed f;
  end if;

  -- 5. What people do ------------------------------------------------------------------------------------------------------
  if p_rare is not null then
    for v_rare in select * from json_to_recordset(p_rare->'reopen') r(s int, n int, id text, ms bigint) loop
      continue when not v_ok[v_rare.s];
      -- As if it had arrived now; only its history, its fence and who settled it last go on.
      with back as (
        delete from {schema}.finished f where f.id = v_rare.id returning f.*
      ), again as (
        insert into {schema}.item (id, seq, queue, home, priority, attempt, state, is_gated, is_alone, fence, queue_at, start_at,
                                   due_at, input, group_id, rest, settled_by, waiter, fingerprint, history)
        select b.id, (v_batch << 20) + v_rare.n, h.queue, b.home, b.priority, 1, case when v_rare.ms > 0 then 1 else 0 end,
               exists (select from {schema}.gate_member m where m.member = b.id), b.is_alone, b.fence, v_now,
               v_now + v_rare.ms, v_now + v_rare.ms, b.input, b.group_id,
               ((case when (b.rest::jsonb->>'deadline')::float8 <= v_now then b.rest::jsonb - 'deadline'
                      else coalesce(b.rest::jsonb, '{}') end)
                || jsonb_build_object('redrives', coalesce((b.rest::jsonb->>'redrives')::int, 0) + 1))::text,
               b.settled_by, b.rest::jsonb->>'waiter', b.fingerprint, b.history
          from back b join {schema}.home h on h.no = b.home
        returning queue
      )
      select v_wake || array_agg(a.queue) into v_wake from again a;
    end loop;
    for v_rare in select * from json_to_recordset(p_rare->'erase') r(s int, id text) loop
      continue when not v_ok[v_rare.s];
      delete from {schema}.item where id = v_rare.id;
      delete from {schema}.finished where id = v_rare.id;
      delete from {schema}.item_tag where id = v_rare.id;
      v_ended := v_ended || v_rare.id;
      v_has_gates := true;
    end loop;
    for v_rare in select * from json_to_recordset(p_rare->'cancel') r(s int, id text, reason text) loop
      continue when not v_ok[v_rare.s];
      update {schema}.item i set cancelled = v_rare.reason where i.id = v_rare.id and i.state = 2;
      -- Its holder looks at once instead of at its next heartbeat.
      select json_agg(x.value) into v_told_ids from (
        select value from json_array_elements(v_told_ids)
        union all select json_build_array(i.worker, i.id) from {schema}.item i where i.id = v_rare.id and i.state = 2) x;
    end loop;
    insert into {schema}.schedule (name, spec, next_at)
      select distinct on (h.name) h.name, h.spec, h.next_at
        from json_to_recordset(p_rare->'schedule') h(s int, name text, spec text, next_at bigint)
       where v_ok[h.s] order by h.name, h.s desc
    on conflict (name) do update set spec = excluded.spec, next_at = excluded.next_at;
    for v_rare in select * from json_to_recordset(p_rare->'pause') r(s int, pause boolean, key text, name text) loop
      continue when not v_ok[v_rare.s];
      if v_rare.pause then
        insert into {schema}.pause (key, is_over) values (v_rare.key, false)
          on conflict (key) do update set is_over = false;
      else
        update {schema}.pause set is_over = true where key = v_rare.key;
        if found then
          perform {schema}.free_aside(1000);
          -- What no claim has met stands in its queue as before: whoever serves it has to look.
          select v_wake || array_agg(q.no) into v_wake from {schema}.queue q
           where v_rare.key = 'queue:' || q.name
              or exists (select from {schema}.home h where h.queue = q.no and v_rare.key = 'type:' || h.type);
        end if;
      end if;
    end loop;
    insert into {schema}.audit_log (at, who, why, what)
      select v_now, l.who, l.why, l.what from json_to_recordset(p_rare->'log') l(s int, n int, who text, why text, what text)
       where v_ok[l.s] order by l.n;
    if p_rare->'log' is not null then
      -- The last ten thousand are kept. More go than came, and none that another batch removes at this moment.
      delete from {schema}.audit_log where no = any(array(
        select l.no from {schema}.audit_log l where l.no <= (select max(m.no) from {schema}.audit_log m) - 10000
         order by l.no limit 2000 for update skip locked));
    end if;
    if p_rare->'notify' is not null then
      select json_agg(x.value) into v_told_ids from (
        select value from json_array_elements(v_told_ids)
        union all
        select json_build_array(n."to", i.id) from json_to_recordset(p_rare->'notify') n(s int, "to" text, ids json)
         cross join lateral json_array_elements_text(n.ids) i(id) where v_ok[n.s]) x;
    end if;
  end if;
  if v_ended is not null and v_has_gates then
    -- A gate is over with the item that it holds.
    with over as (delete from {schema}.gate g where g.holds = any(v_ended) returning g.key)
    delete from {schema}.gate_member m using over o where m.gate = o.key;
  end if;

  -- 6. What is now known -----------------------------------------------------------------------------------------------------
  v_ready := null;
  if p_ready is not null and true = any(v_ok) then
    select json_agg(json_build_array(r.value->0, v_now + (r.value->>1)::bigint)) into v_ready
      from json_array_elements(p_ready) r;
  end if;
  if cardinality(v_wake) > 0 then
    select json_agg(x.value) into v_ready from (
      select value from json_array_elements(v_ready)
      union all select json_build_array(q.name, null) from {schema}.queue q where q.no = any(v_wake)) x;
  end if;
  if v_ready is not null or v_told_ids is not null or v_told_groups is not null then
    perform {schema}.tell(v_ready, v_told_ids, v_told_groups);
  end if;

  return json_build_object('kinds', array_to_string(v_kinds, ''), 'closed', v_closed, 'conflicts', v_conflicts)::text;
end {body};

-- commit_json: the same for a transaction of the user, whose library may know no arrays: one text in, one text out.
create function {schema}.commit_json(p text) returns text language sql volatile as {body}
  select {schema}.commit_batch(
    (j->>'now')::bigint, {schema}.texts(j->'ids'), {schema}.texts(j->'tokens'), (j->>'absent')::int,
    {schema}.texts(j->'locks'), {schema}.texts(j->'touched'), j->'roots', j->'children', j->'ends', j->'moves', j->'said',
    (j->>'expects')::boolean, j->'gates', {schema}.texts(j->'strangers'), j->'tells', {schema}.texts(j->'looks'),
    j->'tags', j->'ready', j->'rare')
  from (select p::json as j) x
{body};

-- find_conflicts: which settlements expect a version that their group does not have at their turn, earlier settlements of
-- the batch included. Locks the groups. Reply as in commit_batch, or null. Only appends come here.
create function {schema}.find_conflicts(p_ok boolean[], p_alone text[], p_said json) returns json
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as {body}
declare
  v_found  jsonb := '[]';
  v_groups jsonb;
  v_turn   record;
  v_lost   int := 0;
begin
  -- A group without a row has nothing to lock, unless it lives on its root, which stands still already.
  insert into {schema}.item_group (id, open, final, version)
    select distinct c.g collate "C", 0, false, 0 from json_to_recordset(p_said) c(s int, g text, expect int)
     where c.expect is not null and p_ok[c.s] and c.g <> all(coalesce(p_alone, '{}'))
     order by 1
  on conflict (id) do nothing;
  perform from {schema}.item_group g
    where g.id in (select c.g from json_to_recordset(p_said) c(g text)) order by g.id for update;
  select coalesce(jsonb_object_agg(g.id, jsonb_build_object('value', g.value, 'final', g.final, 'version', g.version)), '{}')
    into v_groups
    from {schema}.item_group g where g.id in (select c.g from json_to_recordset(p_said) c(g text));
  -- Of one settlement, expectations come before what it says.
  for v_turn in
    select c.s, 0 as step, c.g, c.value, c.final, c.expect, c.n
      from json_to_recordset(p_said) c(s int, n int, g text, value text, final boolean, expect int)
     where p_ok[c.s] and c.expect is not null
    union all
    select c.s, 1, c.g, c.value, c.final, null, c.n
      from json_to_recordset(p_said) c(s int, n int, g text, value text, final boolean, expect int)
     where p_ok[c.s]
     order by 1, 2, 7
  loop
    continue when v_turn.s = v_lost;
    if v_turn.step = 0 then
      if coalesce((v_groups->v_turn.g->>'version')::int, 0) <> v_turn.expect then
        v_lost := v_turn.s;
        v_found := v_found || jsonb_build_array(jsonb_build_array(v_turn.s, v_turn.g, v_groups->v_turn.g->'value',
          coalesce(v_groups->v_turn.g->'final', 'false'), coalesce(v_groups->v_turn.g->'version', '0')));
      end if;
    elsif not coalesce((v_groups->v_turn.g->>'final')::boolean, false) then
      v_groups := v_groups || jsonb_build_object(v_turn.g, jsonb_build_object('value', v_turn.value, 'final', v_turn.final,
        'version', coalesce((v_groups->v_turn.g->>'version')::int, 0) + 1));
    end if;
  end loop;
  return case when v_found = '[]' then null else v_found::json end;
end {body};

-- without_finished: of the ids that were just inserted into item, those that have not finished before; the others are taken
-- out again. With a snapshot taken after the insert: who finished such an id before us has done so by now, or never will,
-- because the id is ours. Before the insert that could not be told.
create function {schema}.without_finished(p_new text[], p_now bigint) returns text[]
language plpgsql
as {body}
declare
  v_there   text[];
  v_expired text[];
begin
  select array_agg(f.id) filter (where f.gone_at > p_now), array_agg(f.id) filter (where f.gone_at <= p_now)
    into v_there, v_expired
    from {schema}.finished f where f.id = any(p_new);
  if v_expired is not null then
    delete from {schema}.finished where id = any(v_expired);
  end if;
  if v_there is null then
    return p_new;
  end if;
  delete from {schema}.item where id = any(v_there);
  return array(select x from unnest(p_new) x where x <> all(v_there));
end {body};
`
