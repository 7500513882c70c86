import { IN_ORDER } from './plan-settings.js'

/** A text that U+001F can join with others: where it occurs in it, an escape stands for it. */
const joinable = (text: string): string =>
  `case when position(E'\\x1f' in ${text}) + position(E'\\x1e' in ${text}) = 0 then ${text}
                else replace(replace(${text}, E'\\x1e', E'\\x1e0'), E'\\x1f', E'\\x1e1') end`

/**
 * Where there is no room for some types, or a room may be full before its queue is. By item_typed: of each type the first that fit in,
 * of those the first that fit into their rooms, and of those the first that the queue has place for; then exactly these are
 * locked. To lock while searching would lock what is not taken, and another claim would pass it over. What others were
 * quicker to take is skipped in another round.
 */
const PICK_BY_ROOM = `    for v_place in 1..cardinality(p_queues) loop
      v_left := v_free[v_place];
      for v_round in 1..8 loop
        exit when v_left <= 0;
        select array_agg(c.id) into v_some from (
          select c.id from (
            select x.*, row_number() over (partition by x.room order by x.priority desc, x.due_at, x.seq) as nth from (
              select h.room, r.* from unnest(v_queue_types, v_rooms, v_of) h(no, room, queue) cross join lateral (
                select r.id, r.priority, r.due_at, r.seq from {schema}.item r
                 where r.queue_type = h.no and r.state = 0 and r.id <> all(v_tried)
                 order by r.priority desc, r.due_at, r.seq limit least(v_room[h.room], v_left)) r
               where h.queue = p_queues[v_place] and v_room[h.room] > 0 and h.no <> all(v_paused)
            ) x
          ) c where c.nth <= v_room[c.room]
          order by c.priority desc, c.due_at, c.seq limit v_left) c;
        exit when v_some is null;
        v_tried := v_tried || v_some;
        -- By the primary key: the sum keeps it from the indexes of what is ready.
        select coalesce(array_agg(x.id order by x.priority desc, x.due_at, x.seq), '{}'),
               coalesce(array_agg(v_rooms[array_position(v_queue_types, x.queue_type)]), '{}')
          into v_got, v_used
          from (select r.id, r.queue_type, r.priority, r.due_at, r.seq from {schema}.item r
                 where r.id = any(v_some) and r.state + 0 = 0 for no key update skip locked) x;
        select array_agg(m.free - (select count(*) from unnest(v_used) u(room) where u.room = m.room)::int order by m.room)
          into v_room from unnest(v_room) with ordinality m(free, room);
        v_picked := v_picked || v_got;
        v_left := v_left - cardinality(v_got);
        exit when cardinality(v_got) = cardinality(v_some);
        -- Others are at it, too: let the client come again.
        v_more := v_more or v_round = 8;
      end loop;
    end loop;
`

/**
 * What has expired needs no room: the worker that claims it ends it. By item_expiring, no more than the share of each queue; what is paused is put
 * on hold on the way, so that it is not ahead of the others at the next claim.
 */
const PICK_EXPIRED = `    for v_place in 1..cardinality(p_queues) loop
      select coalesce(array_agg(e.id order by e.deadline, e.seq) filter (where e.queue_type <> all(v_paused)), '{}'),
             array_agg(e.id) filter (where e.queue_type = any(v_paused))
        into v_got, v_some
        from (select x.id, x.queue_type, x.deadline, x.seq from {schema}.item x
               where x.queue = p_queues[v_place] and x.state = 0 and x.deadline < v_now
               order by x.deadline, x.seq limit p_expired[v_place] for no key update skip locked) e;
      if v_calm and v_some is not null then
        update {schema}.item i set state = 3, hold_by = 'pause', hold_key = {schema}.pause_of(i.queue_type) where i.id = any(v_some);
        v_more := true;
      end if;
      v_tried := v_tried || v_got;
      v_free[v_place] := v_free[v_place] - cardinality(v_got);
    end loop;
    v_expired := v_tried;
`

/** Any type, as much as there is: by item_ready. A type that came a moment ago is left: the claim did not say that it has room for it. */
const PICK_ANY = `    select coalesce(array_agg(c.id order by q.place, c.priority desc, c.due_at, c.seq), '{}') into v_picked
      from unnest(p_queues, v_free) with ordinality q(no, max, place)
     cross join lateral (
       select r.id, r.priority, r.due_at, r.seq from {schema}.item r
        where r.queue = q.no and r.state = 0 and r.queue_type <> all(v_paused) and (v_queue_types is null or r.queue_type = any(v_queue_types))
          and r.id <> all(v_expired)
        order by r.priority desc, r.due_at, r.seq limit q.max for no key update skip locked) c;
`

/** Whether something is left that could be taken. What another connection holds at this moment is not more work for us. */
const IS_THERE_MORE = `  if not v_any then
    v_more := v_more or exists (select from unnest(v_queue_types) h(no) cross join lateral (
                select from {schema}.item r where r.queue_type = h.no and r.state = 0 limit 1 for no key update skip locked) c
               where h.no <> all(v_paused));
  elsif v_found > 0 and (cardinality(p_queues) > 1 or v_found >= p_max[1]) then
    -- A claim that comes back short has seen everything.
    v_more := v_more or exists (select from unnest(p_queues, p_max) q(no, max) cross join lateral (
                select from {schema}.item r
                 where r.queue = q.no and r.state = 0 and r.queue_type <> all(v_paused) and (v_queue_types is null or r.queue_type = any(v_queue_types))
                 limit 1 for no key update skip locked) c where q.max > 0);
  end if;
  v_more := v_more or (cardinality(v_expired) > 0 and exists (
    select from unnest(p_queues, p_max) q(no, max) cross join lateral (
      select from {schema}.item x where x.queue = q.no and x.state = 0 and x.deadline < v_now and x.queue_type <> all(v_paused)
       limit 1 for no key update skip locked) c where q.max > 0));
  v_more := v_more or exists (select from unnest(p_queues, p_max) q(no, max) cross join lateral (
           select from {schema}.item l where l.queue = q.no and l.state = 1 and l.due_at <= v_now limit 1
              for no key update skip locked) c where q.max > 0);
`

/**
 * claim_ready: bring back lapsed leases and due items, then lease what is ready, in the order of the queues asked for.
 *
 * A function of several statements, because each must see what the one before it wrote: an item that is promoted here is
 * claimed here, in its right place among the others. The parts of one statement share a snapshot and would not.
 * Nothing here waits for a lock (skip locked), so a claim takes part in no deadlock. Rows are locked "for no key update", as an update
 * does by itself: a check of gates, which locks the keys of members, is not in the way.
 */
export const CLAIM = `
create function {schema}.claim_ready(
  p_now     bigint,      -- null: the server's time
  p_token   text,        -- of this claim; that of a lease has its place behind it
  p_lease   bigint,      -- ms
  p_worker  text,
  p_step    int,         -- how many lapsed leases and due items are brought back at most
  p_queues  int[],
  p_max     int[],
  p_expired int[],       -- how many expired items each queue hands out at most, where there are rooms
  p_types   text[],      -- what there is room for, and in which room (from 1); null: any type
  p_in_room int[],
  p_rooms   int[]        -- how much room each has
) returns table (
  now bigint, due bigint, more boolean, raw boolean, removed int, crashed text,
  -- Of each item, joined by U+001F, and in any order: its head begins with its place. Null where there are none, or where no item has one.
  ids text, heads text, inputs text, rests text, groups text, cancels text
)
language plpgsql
${IN_ORDER}
as {body}
#variable_conflict use_column
declare
  v_now    bigint := {schema}.at(p_now);
  v_more   boolean := false;
  v_due    bigint;
  v_paused int[] := '{}';
  v_calm   boolean;      -- no resume is under way, nor can one come before we have committed
  v_any    boolean := true; -- there is room for whatever comes
  v_queue_types  int[];        -- of what there is room for, with its room and its queue
  v_rooms  int[];
  v_of     int[];
  v_room   int[] := p_rooms; -- how much of each room is left
  v_free   int[] := p_max; -- how much of the place of each queue is left
  v_expired text[] := '{}'; -- what is handed out to be ended
  v_picked text[] := '{}'; -- in the order of the reply
  v_some   text[];
  v_got    text[];
  v_used   int[];
  v_tried  text[] := '{}';
  v_left   int;
  v_raw    boolean;
  v_queue  int;
  v_moved  int;
  v_found  int;
  v_crashed int[];       -- queues and types of runs that were cut off
  v_removed int := 0;
begin
  if cardinality(p_queues) > 0 then
  -- By gate_check_at. First, because what is freed may be claimed.
  if exists (select from {schema}.gate_check l where l.at <= v_now) then
    perform {schema}.check_gates(v_now, p_step);
  end if;

  -- By item_leased. The item keeps its due time and hence its place.
  if exists (select from unnest(p_queues) q(no) cross join lateral (
       select from {schema}.item l where l.queue = q.no and l.state = 2 and l.lease_until <= v_now limit 1) c) then
    with lapsed as materialized (
      -- A run whose worker was heard of while a transaction held the row was not ended by a crash.
      select c.id, c.running and not exists (
          select from {schema}.worker w where w.id = c.worker and c.token = any(w.passed_over)) as running
        from unnest(p_queues) q(no) cross join lateral (
        select l.id, l.running, l.worker, l.token from {schema}.item l
         where l.queue = q.no and l.state = 2 and l.lease_until <= v_now
         order by l.lease_until limit p_step for no key update skip locked) c
    ), back as (
      update {schema}.item i
         set state = 0, lapses = i.lapses + 1, crashes = i.crashes + l.running::int,
             token = null, lease_until = null, worker = null, run_at = null, running = false
        from lapsed l where i.id = l.id
      returning i.queue_type, l.running
    )
    select array_agg(b.queue_type) filter (where b.running) into v_crashed from back b;
  end if;

  -- By item_delayed. A hold ends with its time.
  update {schema}.item i
     set state = 0, hold_by = null, hold_key = null
   where i.id = any(array(
     select d.id from unnest(p_queues) q(no) cross join lateral (
       select l.id from {schema}.item l where l.queue = q.no and l.state = 1 and l.due_at <= v_now
        order by l.due_at limit p_step for no key update skip locked) d));

  if exists (select from {schema}.pause) then
    v_more := {schema}.free_resumed(p_step);
    -- A resume gives back what it sees on hold. What a claim puts on hold at the same time it would not see, and nothing would
    -- ever give that back. So a resume waits for claims that hold items, and while one waits claims only skip what is paused.
    v_calm := pg_try_advisory_xact_lock_shared(hashtextextended('{schema_text}', 2));
    v_paused := {schema}.paused_queue_types();
    -- By item_ready. What is in front and paused is put on hold.
    if v_calm and cardinality(v_paused) > 0 then
      foreach v_queue in array p_queues loop
        for v_round in 1..20 loop
          with front as materialized (
            select f.id, f.queue_type from {schema}.item f where f.queue = v_queue and f.state = 0
             order by f.priority desc, f.due_at, f.seq limit p_step for no key update skip locked
          )
          update {schema}.item i set state = 3, hold_by = 'pause', hold_key = {schema}.pause_of(f.queue_type)
            from front f where i.id = f.id and f.queue_type = any(v_paused);
          get diagnostics v_moved = row_count;
          exit when v_moved = 0;
        end loop;
      end loop;
    end if;
  end if;

  if p_types is not null then
    -- By the key of queue_type.
    select coalesce(array_agg(h.no), '{}'), coalesce(array_agg(t.room), '{}'), coalesce(array_agg(h.queue), '{}')
      into v_queue_types, v_rooms, v_of
      from unnest(p_types, p_in_room) t(type, room)
      join {schema}.queue_type h on h.type = t.type and h.queue = any(array(
             select q.no from unnest(p_queues, p_max) q(no, max) where q.max > 0))
     where p_rooms[t.room] > 0;
    v_any := coalesce((select min(r.free) from unnest(p_rooms) r(free) where r.free > 0) >= (select sum(m.max) from unnest(p_max) m(max)), false)
         and not exists (select from {schema}.queue_type h where h.queue = any(p_queues) and h.no <> all(v_queue_types));
  end if;
  if p_types is not null and exists (select from unnest(p_queues) q(no) cross join lateral (
       select from {schema}.item x where x.queue = q.no and x.state = 0 and x.deadline < v_now limit 1) c) then
${PICK_EXPIRED}  end if;
  if v_any then
${PICK_ANY}  elsif cardinality(v_queue_types) > 0 then
${PICK_BY_ROOM}  end if;
  if cardinality(v_expired) > 0 then
    v_picked := v_expired || v_picked;
    -- By the primary key. Queues come in the order that was asked for.
    if cardinality(p_queues) > 1 then
      select array_agg(p.id order by array_position(p_queues, i.queue), p.place) into v_picked
        from unnest(v_picked) with ordinality p(id, place) join {schema}.item i on i.id = p.id;
    end if;
  end if;
  v_found := cardinality(v_picked);
  if v_found > 0 then
    return query
      with leased as (
        update {schema}.item i
           set state = 2, token = p_token || '.' || p.place, lease_until = v_now + p_lease, worker = p_worker, fence = i.fence + 1,
               deliveries = i.deliveries + 1, run_at = v_now, running = false
          from unnest(v_picked) with ordinality p(id, place)
         where i.id = p.id
        returning p.place, i.id, i.queue_type, i.group_id, i.priority, i.attempt, i.queue_at, i.start_at, i.input, i.envelope_rest,
                  i.fence, i.lapses, i.crashes, i.deliveries, i.gate_met, i.cancelled
      )
      select null::bigint, null::bigint, null::boolean, null::boolean, null::int, null::text,
             string_agg(${joinable('l.id')}, E'\\x1f'),
             string_agg(concat_ws(',', l.place, l.queue_type, l.priority, l.attempt, l.queue_at, l.start_at, l.fence, l.lapses, l.crashes,
                                  l.deliveries, l.gate_met), E'\\x1f'),
             string_agg(${joinable('l.input')}, E'\\x1f'),
             case when count(l.envelope_rest) > 0 then string_agg(coalesce(l.envelope_rest, ''), E'\\x1f') end,
             case when count(l.group_id) > 0 then string_agg(coalesce(${joinable('l.group_id')}, ''), E'\\x1f') end,
             case when count(l.cancelled) > 0 then string_agg(coalesce(${joinable("'=' || l.cancelled")}, ''), E'\\x1f') end
        -- A large input has a row to itself, so that none takes more than 128 MiB beside it.
        from leased l group by case when octet_length(l.input) > 1048576 then -l.place else l.place / 128 end;
  end if;
${IS_THERE_MORE}  select min(d.due_at) into v_due from unnest(p_queues) q(no) cross join lateral (
    select l.due_at from {schema}.item l where l.queue = q.no and l.state = 1 and l.due_at > v_now
     order by l.due_at limit 1) d;
  v_due := least(v_due, (select min(l.at) from {schema}.gate_check l where l.at > v_now));
  -- By message_ready, message_delayed: bodies that came past the ledger.
  v_raw := exists (select from unnest(p_queues) q(no) cross join lateral (
             select from {schema}.message m where m.queue = q.no and m.state = 0 limit 1) c)
        or exists (select from unnest(p_queues) q(no) cross join lateral (
             select from {schema}.message m where m.queue = q.no and m.state = 1 and m.due_at <= v_now limit 1) c);
  -- Twice as much as was taken, so that what is kept long enough goes faster than new comes; a claim that finds nothing has time.
  v_removed := {schema}.sweep(v_now, case when v_found = 0 then p_step else 2 * v_found + 8 end);
  end if;

  -- The last row describes the claim itself: the time, when the next item falls due, whether there is more, whether bodies wait that are no
  -- items yet, how many ended items were removed, and which runs were cut off.
  return query select v_now, v_due, v_more, v_raw, v_removed, array_to_string(v_crashed, ','), null::text, null::text, null::text,
    null::text, null::text, null::text;
end {body};

-- paused_queue_types: the queues and types that nothing is claimed of.
create function {schema}.paused_queue_types() returns int[] language sql stable as {body}
  select coalesce(array_agg(h.no), '{}') from {schema}.queue_type h join {schema}.queue q on q.no = h.queue
   where exists (select from {schema}.pause p where not p.is_resumed and p.key in ('queue:' || q.name, 'type:' || h.type))
{body};

-- pause_of: which pause holds the items of a queue and type; that of the queue comes first.
create function {schema}.pause_of(p_queue_type int) returns text language sql stable as {body}
  select p.key from {schema}.queue_type h join {schema}.queue q on q.no = h.queue
    join {schema}.pause p on not p.is_resumed and p.key in ('queue:' || q.name, 'type:' || h.type)
   where h.no = p_queue_type order by p.key limit 1
{body};

-- free_resumed: give what is on hold without a pause its old place, at most so many of each pause. By item_held.
-- True: some are left.
create function {schema}.free_resumed(p_step int) returns boolean language plpgsql
${IN_ORDER}
as {body}
declare
  v_key  text;
  v_more boolean := false;
begin
  -- This transaction holds the row until it has committed: no other pauses or resumes between the count of what is left and the delete.
  for v_key in select p.key from {schema}.pause p where p.is_resumed order by p.key for update skip locked loop
    update {schema}.item i set state = 0, hold_by = null, hold_key = null
     where i.id = any(array(select a.id from {schema}.item a where a.state = 3 and a.hold_key = v_key
                             order by a.seq limit p_step for no key update skip locked));
    if exists (select from {schema}.item a where a.state = 3 and a.hold_key = v_key) then
      v_more := true;
    else
      delete from {schema}.pause p where p.key = v_key;
    end if;
  end loop;
  return v_more;
end {body};
`
