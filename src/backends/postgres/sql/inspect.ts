/**
 * Version 2: what people ask for. Only additions: an index that grows with every end, at its right edge only; one of what died of a
 * failure; one that is empty where all is sound; and two functions, so that their plans do not depend on how large vacuum found the tables.
 */
export const INSIGHT = `
create index ended_item_ended on {schema}.ended_item (end_at) include (queue_type, state, keep_until);
create index ended_item_failures on {schema}.ended_item (fingerprint, end_at) include (class, queue_type, keep_until)
  where state = 6 and fingerprint is not null;
create index item_stuck on {schema}.item (seq)
  where (state = 2 and lease_until is null) or (state = 1 and due_at is null and hold_by is null);

-- throughput_after: for each queue and type, how many completed and died after an instant, and since when the oldest waits.
-- Ends by ended_item_ended. The oldest by item_ready, one priority after the other, and by item_delayed for what no claim has promoted yet;
-- of a queue with one type it is the first row that is read.
create function {schema}.throughput_after(p_now bigint, p_window bigint)
returns table (queue text, type text, completed bigint, failed bigint, oldest_due_at bigint) language sql volatile
set enable_seqscan = off set enable_bitmapscan = off set jit = off
as {body}
  with recursive t as materialized (select {schema}.at(p_now) as now),
  ended as (
    select f.queue_type, count(*) filter (where f.state = 5) as completed, count(*) filter (where f.state = 6) as failed
      from {schema}.ended_item f
     where f.end_at > (select now from t) - p_window and f.keep_until > (select now from t) and f.state in (5, 6)
     group by f.queue_type
  ), level as (
    select q.no as queue, (select max(i.priority) from {schema}.item i where i.queue = q.no and i.state = 0) as priority
      from {schema}.queue q
    union all
    select l.queue, (select max(i.priority) from {schema}.item i
                      where i.queue = l.queue and i.state = 0 and i.priority < l.priority)
      from level l where l.priority is not null
  ), flowing as (
    select q.name as queue, h.type, coalesce(e.completed, 0) as completed, coalesce(e.failed, 0) as failed,
           case when exists (select from {schema}.pause p
                              where p.key in ('queue:' || q.name, 'type:' || h.type) and not p.is_resumed) then null
                else least(
                  case when exists (select from {schema}.item i where i.queue_type = h.no and i.state = 0) then
                    (select min(d.due_at) from level l cross join lateral (
                       select i.due_at from {schema}.item i
                        where i.queue = h.queue and i.state = 0 and i.priority = l.priority and i.queue_type = h.no
                        order by i.due_at, i.seq limit 1) d
                      where l.queue = h.queue) end,
                  case when exists (select from {schema}.item i where i.queue_type = h.no and i.state = 1) then
                    (select i.due_at from {schema}.item i
                      where i.queue = h.queue and i.state = 1 and i.due_at is not null and i.due_at <= (select now from t)
                        and i.queue_type = h.no order by i.due_at limit 1) end)
           end as oldest_due_at
      from {schema}.queue_type h join {schema}.queue q on q.no = h.queue left join ended e on e.queue_type = h.no
  )
  select f.queue, f.type, f.completed, f.failed, f.oldest_due_at
    from flowing f where f.completed + f.failed > 0 or f.oldest_due_at is not null
{body};

-- failure_groups: dead and retrying items by fingerprint, class and type, the largest groups first, each with the last as a sample.
-- Dead ones by ended_item_failures, retrying ones by item_failed and the last of their history.
create function {schema}.failure_groups(p_now bigint, p_limit int)
returns table (fingerprint text, class text, type text, dead bigint, retrying bigint, first_at float8, last_at float8,
               sample_id text, sample_error text) language sql volatile
set enable_seqscan = off set enable_bitmapscan = off set jit = off
as {body}
  with t as materialized (select {schema}.at(p_now) as now),
  tried as materialized (
    select i.id, i.fingerprint, i.queue_type, a.was->>'class' as class, a.was->>'error' as error,
           (a.was->>'endedAt')::float8 as ended_at
      from {schema}.item i cross join lateral (select ('[' || i.attempts || ']')::json -> -1 as was) a
     where i.fingerprint is not null and i.state = 1 and i.attempt > 1 and i.hold_by is null
       and i.due_at > (select now from t)
  ), part as (
    select f.fingerprint, f.class, f.queue_type, count(*) as dead, 0 as retrying,
           min(f.end_at)::float8 as first_at, max(f.end_at)::float8 as last_at
      from {schema}.ended_item f
     where f.state = 6 and f.fingerprint is not null and f.keep_until > (select now from t)
     group by 1, 2, 3
    union all
    select r.fingerprint, r.class, r.queue_type, 0, count(*), min(r.ended_at), max(r.ended_at) from tried r group by 1, 2, 3
  ), found as (
    select p.fingerprint, p.class, h.type, sum(p.dead)::bigint as dead, sum(p.retrying)::bigint as retrying,
           min(p.first_at) as first_at, max(p.last_at) as last_at, array_agg(p.queue_type) as queue_types
      from part p join {schema}.queue_type h on h.no = p.queue_type
     group by 1, 2, 3
     order by sum(p.dead) + sum(p.retrying) desc, max(p.last_at) desc, 1
     limit p_limit
  )
  select g.fingerprint, g.class, g.type, g.dead, g.retrying, g.first_at, g.last_at, s.id, s.error
    from found g left join lateral (
      select l.* from (
        (select f.id, f.outcome as error, f.end_at::float8 as at from {schema}.ended_item f
          where g.dead > 0 and f.state = 6 and f.fingerprint = g.fingerprint and f.class is not distinct from g.class
            and f.queue_type = any(g.queue_types) and f.keep_until > (select now from t)
          order by f.end_at desc limit 1)
        union all
        (select r.id, r.error, r.ended_at from tried r
          where g.retrying > 0 and r.fingerprint = g.fingerprint and r.class is not distinct from g.class
            and r.queue_type = any(g.queue_types)
          order by r.ended_at desc limit 1)
      ) l order by l.at desc limit 1
    ) s on true
   order by g.dead + g.retrying desc, g.last_at desc, g.fingerprint
{body};
`
