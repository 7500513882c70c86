/** Heartbeats, and who wants to be told. */
export const EXTEND = `
-- extend_leases: push leases forward, if their tokens still hold them, and remember who told of itself. By the primary key.
-- REPLY  [place, cancelled]... of those that are held, as JSON
create function {schema}.extend_leases(
  p_now bigint, p_ids text[], p_tokens text[], p_started boolean[], p_progress text[], p_lease bigint,
  p_worker text, p_told text
) returns text language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as {body}
declare
  v_now  bigint := {schema}.at(p_now);
  v_held json;
begin
  -- A worker that was not heard of for an hour is forgotten.
  delete from {schema}.worker where seen_at <= v_now - 3600000;
  insert into {schema}.worker (id, told, seen_at) values (p_worker, p_told, v_now)
    on conflict (id) do update set told = excluded.told, seen_at = excluded.seen_at;
  if cardinality(p_ids) = 0 then
    return '[]';
  end if;
  -- In the order in which every batch locks items.
  perform from {schema}.item i where i.id = any(p_ids) order by i.id for update;
  with told as (
    select * from unnest(p_ids, p_tokens, p_started, p_progress) with ordinality t(id, token, started, progress, n)
  ), held as (
    update {schema}.item i
       set lease_until = v_now + p_lease, progress = coalesce(t.progress, i.progress),
           run_at = case when t.started then coalesce(i.run_at, v_now) else i.run_at end
      from told t
     where i.id = t.id and i.state = 2 and i.token = t.token
    returning t.n, i.cancelled is not null as is_cancelled
  )
  select json_agg(json_build_array(n, is_cancelled)) into v_held from held;
  return coalesce(v_held, '[]')::text;
end {body};

-- watch_for: an inbox wants to hear of the end of items and the close of groups. By primary keys.
create function {schema}.watch_for(p_inbox text, p_ids text[], p_groups text[]) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as {body}
declare
  v_alone text[];
begin
  perform from {schema}.item i where i.id = any(p_ids || p_groups) order by i.id for update;
  update {schema}.item i set watchers = array_append(i.watchers, p_inbox)
   where i.id = any(p_ids) and not coalesce(p_inbox = any(i.watchers), false);
  -- A group that lives on its root gets a row, which can hold watchers.
  select array_agg(i.id) into v_alone from {schema}.item i where i.id = any(p_groups) and i.is_alone;
  if v_alone is not null then
    insert into {schema}.item_group (id, open, final, version, watchers)
      select i.id, 1, false, 0, case when i.waiter is not null then array[i.waiter] end
        from {schema}.item i where i.id = any(v_alone) order by i.id on conflict (id) do nothing;
    update {schema}.item set is_alone = false where id = any(v_alone);
  end if;
  perform from {schema}.item_group g where g.id = any(p_groups) order by g.id for update;
  update {schema}.item_group g set watchers = array_append(g.watchers, p_inbox)
   where g.id = any(p_groups) and g.open > 0 and not coalesce(p_inbox = any(g.watchers), false);
end {body};
`
