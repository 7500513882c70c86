/**
 * claim_ready: bring back lapsed leases and due items, then lease what is ready, in the order of the queues asked for.
 *
 * A function of several statements, because each must see what the one before it wrote: an item that is promoted here is
 * claimed here, in its right place among the others. The parts of one statement share a snapshot and would not.
 * Nothing here waits for a lock (skip locked), so a claim takes part in no deadlock.
 */
export const CLAIM = `
create function {schema}.claim_ready(
  p_now     bigint,      -- null: the server's time
  p_token   text,        -- of this claim; that of a lease has its place behind it
  p_lease   bigint,      -- ms
  p_worker  text,
  p_start   int,         -- how many of the items start at once
  p_step    int,         -- how many lapsed leases and due items are brought back at most
  p_queues  int[],
  p_max     int[]
) returns table (
  id text, home int, group_id text, priority float8, attempt int, queue_at float8, start_at float8,
  input text, rest text, fence int, lapses int, crashes int, deliveries int, gate_met boolean, started boolean, cancelled text
)
language plpgsql
-- The plan of a statement is made once and kept. Made while the tables are empty it would read them whole, and still do so
-- when they are large; every access here is meant to go through an index. Costs that are forbidden look huge, and must
-- not call for just-in-time compilation.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as {body}
#variable_conflict use_column
declare
  v_now    bigint := {schema}.at(p_now);
  v_more   boolean := false;
  v_due    bigint;
  v_paused int[] := '{}';
  v_calm   boolean;      -- no resume is under way, nor can one come before we have committed
  v_raw    boolean;
  v_queue  int;
  v_moved  int;
  v_found  int;
  v_crashed int[];       -- homes of runs that were cut off
  v_removed int := 0;
begin
  if cardinality(p_queues) > 0 then
  -- By item_leased. The item keeps its due time and hence its place.
  if exists (select from unnest(p_queues) q(no) cross join lateral (
       select from {schema}.item l where l.queue = q.no and l.state = 2 and l.lease_until <= v_now limit 1) c) then
    with lapsed as materialized (
      select c.id, c.has_started from unnest(p_queues) q(no) cross join lateral (
        select l.id, l.run_at is not null as has_started from {schema}.item l
         where l.queue = q.no and l.state = 2 and l.lease_until <= v_now
         order by l.lease_until limit p_step for update skip locked) c
    ), back as (
      update {schema}.item i
         set state = 0, lapses = i.lapses + 1, crashes = i.crashes + l.has_started::int,
             token = null, lease_until = null, worker = null, run_at = null
        from lapsed l where i.id = l.id
      returning i.home, l.has_started
    )
    select array_agg(b.home) filter (where b.has_started) into v_crashed from back b;
  end if;

  -- By item_later. A hold ends with its time.
  update {schema}.item i
     set state = 0, hold_by = null, hold_key = null
   where i.id = any(array(
     select d.id from unnest(p_queues) q(no) cross join lateral (
       select l.id from {schema}.item l where l.queue = q.no and l.state = 1 and l.due_at <= v_now
        order by l.due_at limit p_step for update skip locked) d));

  if exists (select from {schema}.pause) then
    v_more := {schema}.free_aside(p_step);
    -- A resume gives back what it sees aside, and what goes aside here it would see too late: nobody would ever give that
    -- back. So a resume waits for claims that set aside, and while one waits none does: it skips what is paused.
    v_calm := pg_try_advisory_xact_lock_shared(hashtextextended('{schema_text}', 2));
    v_paused := {schema}.paused_homes();
    -- By item_ready. What stands in front and is paused goes aside.
    if v_calm and cardinality(v_paused) > 0 then
      foreach v_queue in array p_queues loop
        for v_round in 1..20 loop
          with front as materialized (
            select f.id, f.home from {schema}.item f where f.queue = v_queue and f.state = 0
             order by f.priority desc, f.due_at, f.seq limit p_step for update skip locked
          )
          update {schema}.item i set state = 3, hold_by = 'pause', hold_key = {schema}.pause_of(f.home)
            from front f where i.id = f.id and f.home = any(v_paused);
          get diagnostics v_moved = row_count;
          exit when v_moved = 0;
        end loop;
      end loop;
    end if;
  end if;

  -- By item_ready.
  return query
    with picked as materialized (
      select c.id, row_number() over (order by q.place, c.priority desc, c.due_at, c.seq) as place
        from unnest(p_queues, p_max) with ordinality q(no, max, place)
       cross join lateral (
         select r.id, r.priority, r.due_at, r.seq from {schema}.item r
          where r.queue = q.no and r.state = 0 and r.home <> all(v_paused)
          order by r.priority desc, r.due_at, r.seq limit q.max for update skip locked) c
    ), leased as (
      update {schema}.item i
         set state = 2, token = p_token || '.' || p.place, lease_until = v_now + p_lease, worker = p_worker, fence = i.fence + 1,
             deliveries = i.deliveries + 1, run_at = case when p.place <= p_start then v_now end
        from picked p
       where i.id = p.id
      returning p.place, i.id, i.home, i.group_id, i.priority, i.attempt, i.queue_at, i.start_at, i.input, i.rest,
                i.fence, i.lapses, i.crashes, i.deliveries, i.gate_met, i.run_at, i.cancelled
    )
    select l.id, l.home, l.group_id, l.priority, l.attempt, l.queue_at, l.start_at, l.input, l.rest,
           l.fence, l.lapses, l.crashes, l.deliveries, l.gate_met, l.run_at is not null, l.cancelled
      from leased l order by l.place;
  get diagnostics v_found = row_count;

  -- What another connection holds at this moment is not more work for us.
  v_more := v_more or exists (select from unnest(p_queues) q(no) cross join lateral (
           select from {schema}.item r where r.queue = q.no and r.state = 0 and r.home <> all(v_paused) limit 1
              for update skip locked) c)
      or exists (select from unnest(p_queues) q(no) cross join lateral (
           select from {schema}.item l where l.queue = q.no and l.state = 1 and l.due_at <= v_now limit 1
              for update skip locked) c);
  select min(d.due_at) into v_due from unnest(p_queues) q(no) cross join lateral (
    select l.due_at from {schema}.item l where l.queue = q.no and l.state = 1 and l.due_at > v_now
     order by l.due_at limit 1) d;
  -- By message_ready, message_later: bodies that came past the ledger.
  v_raw := exists (select from unnest(p_queues) q(no) cross join lateral (
             select from {schema}.message m where m.queue = q.no and m.state = 0 limit 1) c)
        or exists (select from unnest(p_queues) q(no) cross join lateral (
             select from {schema}.message m where m.queue = q.no and m.state = 1 and m.due_at <= v_now limit 1) c);
  -- Twice as much as was taken, so that what is kept long enough goes faster than new comes; who finds nothing has time.
  v_removed := {schema}.sweep(v_now, case when v_found = 0 then p_step else 2 * v_found + 8 end);
  end if;

  -- The last row speaks of the claim itself: the time, when the next item falls due, which runs were cut off, how many ended
  -- items were removed, whether bodies wait that are no items yet, and whether there is more.
  return query select null::text, null::int, null::text, null::float8, null::int, v_now::float8, v_due::float8,
    array_to_string(v_crashed, ','), null::text, v_removed, null::int, null::int, null::int, v_raw, v_more, null::text;
end {body};

-- paused_homes: the queues and types that nothing is claimed of.
create function {schema}.paused_homes() returns int[] language sql stable as {body}
  select coalesce(array_agg(h.no), '{}') from {schema}.home h join {schema}.queue q on q.no = h.queue
   where exists (select from {schema}.pause p where not p.is_over and p.key in ('queue:' || q.name, 'type:' || h.type))
{body};

-- pause_of: which pause holds the items of a home; that of the queue comes first.
create function {schema}.pause_of(p_home int) returns text language sql stable as {body}
  select p.key from {schema}.home h join {schema}.queue q on q.no = h.queue
    join {schema}.pause p on not p.is_over and p.key in ('queue:' || q.name, 'type:' || h.type)
   where h.no = p_home order by p.key limit 1
{body};

-- free_aside: give what stands aside without a pause its old place, at most so many of each pause. By item_aside.
-- True: some are left.
create function {schema}.free_aside(p_step int) returns boolean language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as {body}
declare
  v_key  text;
  v_more boolean := false;
begin
  -- Who frees holds the row until it has committed: nobody pauses or resumes between the look at what is left and the delete.
  for v_key in select p.key from {schema}.pause p where p.is_over order by p.key for update skip locked loop
    update {schema}.item i set state = 0, hold_by = null, hold_key = null
     where i.id = any(array(select a.id from {schema}.item a where a.state = 3 and a.hold_key = v_key
                             order by a.seq limit p_step for update skip locked));
    if exists (select from {schema}.item a where a.state = 3 and a.hold_key = v_key) then
      v_more := true;
    else
      delete from {schema}.pause p where p.key = v_key;
    end if;
  end loop;
  return v_more;
end {body};
`
