-- claim_ready: bring back lapsed leases and due items, then lease what is ready, in the order of the queues asked for.
--
-- A function of several statements, because each must see what the one before it wrote: an item that is promoted here is
-- claimed here, in its right place among the others. The parts of one statement share a snapshot and would not.
-- Nothing here waits for a lock (skip locked), so a claim takes part in no deadlock.
create function {schema}.claim_ready(
  p_now     bigint,      -- null: the server's time
  p_token   text,        -- of every lease of this claim
  p_lease   bigint,      -- ms
  p_worker  text,
  p_start   int,         -- how many of the items start at once
  p_step    int,         -- how many lapsed leases and due items are brought back at most
  p_queues  text[],
  p_max     int[]
) returns table (
  id text, queue text, type text, group_id text, priority float8, attempt int, queue_at bigint, start_at bigint,
  input text, rest text, fence int, lapses int, crashes int, deliveries int, gate_met boolean, started boolean
)
language plpgsql
-- The plan of a statement is made once and kept. Made while the tables are empty it would read them whole, and still do so
-- when they are large; every access here is meant to go through an index. Costs that are forbidden look huge, and must
-- not call for just-in-time compilation.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $millrace$
#variable_conflict use_column
declare
  v_now  bigint := coalesce(p_now, (extract(epoch from clock_timestamp()) * 1000)::bigint);
  v_more boolean;
  v_due  bigint;
begin
  -- By item_leased. The item keeps its due time and hence its place.
  update {schema}.item i
     set state = 0, lapses = i.lapses + 1, crashes = i.crashes + (i.run_at is not null)::int,
         token = null, lease_until = null, worker = null, run_at = null
   where i.id in (
     select l.id from {schema}.item l where l.state = 2 and l.lease_until <= v_now
      order by l.lease_until limit p_step for update skip locked);

  -- By item_later. A hold ends with its time.
  update {schema}.item i
     set state = 0
   where i.id in (
     select d.id from unnest(p_queues) q(name) cross join lateral (
       select l.id from {schema}.item l where l.queue = q.name and l.state = 1 and l.due_at <= v_now
        order by l.due_at limit p_step for update skip locked) d);

  -- By item_ready.
  return query
    with picked as materialized (
      select c.id, row_number() over (order by q.place, c.priority desc, c.due_at, c.seq) as place
        from unnest(p_queues, p_max) with ordinality q(name, max, place)
       cross join lateral (
         select r.id, r.priority, r.due_at, r.seq from {schema}.item r where r.queue = q.name and r.state = 0
          order by r.priority desc, r.due_at, r.seq limit q.max for update skip locked) c
    ), leased as (
      update {schema}.item i
         set state = 2, token = p_token, lease_until = v_now + p_lease, worker = p_worker, fence = i.fence + 1,
             deliveries = i.deliveries + 1, run_at = case when p.place <= p_start then v_now end,
             hold_by = null, hold_key = null
        from picked p
       where i.id = p.id
      returning p.place, i.id, i.queue, i.type, i.group_id, i.priority, i.attempt, i.queue_at, i.start_at, i.input, i.rest,
                i.fence, i.lapses, i.crashes, i.deliveries, i.gate_met, i.run_at
    )
    select l.id, l.queue, l.type, l.group_id, l.priority, l.attempt, l.queue_at, l.start_at, l.input, l.rest,
           l.fence, l.lapses, l.crashes, l.deliveries, l.gate_met, l.run_at is not null
      from leased l order by l.place;

  -- What another connection holds at this moment is not more work for us.
  select exists (select from unnest(p_queues) q(name) cross join lateral (
           select from {schema}.item r where r.queue = q.name and r.state = 0 limit 1 for update skip locked) c)
      or exists (select from unnest(p_queues) q(name) cross join lateral (
           select from {schema}.item l where l.queue = q.name and l.state = 1 and l.due_at <= v_now limit 1
              for update skip locked) c)
    into v_more;
  select min(d.due_at) into v_due from unnest(p_queues) q(name) cross join lateral (
    select l.due_at from {schema}.item l where l.queue = q.name and l.state = 1 and l.due_at > v_now
     order by l.due_at limit 1) d;

  -- The last row speaks of the claim itself: the time, when the next item falls due, and whether there is more.
  return query select null::text, null::text, null::text, null::text, null::float8, null::int, v_now, v_due,
    null::text, null::text, null::int, null::int, null::int, null::int, null::boolean, v_more;
end $millrace$;
