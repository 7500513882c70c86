import { rowsForRoots } from './groups.js'
import { BY_KEY, WAITS_FOR_LOCKS } from './plan-settings.js'

/** Heartbeats, and inboxes that want to be notified. */
export const EXTEND = `
-- extend_leases: push leases forward, if their tokens still hold them, and store the worker's record. By the primary key.
--
-- Waits for no row: a row that another transaction holds is left as it is, and its lease is reported as unknown; it was neither
-- extended nor lost. A lease is lost only if no committed row has its token. These hold such rows for a moment: a
-- commit that settles the item, opens a gate over it or moves the group that has its id; another heartbeat; a user's own
-- "select ... for update", for as long as that takes. Claims lock rows that are not leased, or whose lease has lapsed; a check of
-- gates locks the keys of members only ("for key share"), which does not hinder us; and a user's transaction locks only rows that it added.
-- The other way round, we hold rows for this one statement: a commit waits for them that long, a claim passes them over.
-- Only a lock on the whole table (a migration, "vacuum full") stops a heartbeat.
-- REPLY  JSON: held and unknown, each [place, word]...; those left out are lost
create function {schema}.extend_leases(
  p_now bigint, p_ids text[], p_tokens text[], p_running boolean[], p_progress text[], p_lease bigint,
  p_worker text, p_record text
) returns text language plpgsql
${BY_KEY}
as {body}
declare
  v_now     bigint := {schema}.at(p_now);
  v_held    json;
  v_count   int;
  v_places  bigint[];
  v_unknown json;
  v_seen    int;
begin
  -- A worker that has sent nothing for an hour is forgotten.
  if exists (select from {schema}.worker where seen_at <= v_now - 3600000) then
    delete from {schema}.worker where id = any(array(
      select w.id from {schema}.worker w where w.seen_at <= v_now - 3600000 for update skip locked));
  end if;
  update {schema}.worker set record = p_record, seen_at = v_now where id = any(array(
    select w.id from {schema}.worker w where w.id = p_worker for no key update skip locked));
  get diagnostics v_seen = row_count;
  if v_seen = 0 then
    -- It is new, or another heartbeat of the same process writes it at this moment.
    insert into {schema}.worker (id, record, seen_at) values (p_worker, p_record, v_now) on conflict (id) do nothing;
  end if;
  if cardinality(p_ids) = 0 then
    return '{}';
  end if;
  -- Only the row of a lease has a token. A condition on the state as well would lead the planner to item_leased, which is long.
  with sent as materialized (
    select t.* from unnest(p_ids, p_tokens, p_running, p_progress) with ordinality t(id, token, running, progress, n)
      join {schema}.item i on i.id = t.id and i.token = t.token
       for no key update of i skip locked
  ), held as (
    update {schema}.item i
       set lease_until = v_now + p_lease, progress = coalesce(t.progress, i.progress), running = t.running
      from sent t where i.id = t.id
    returning t.n, i.cancelled
  )
  select json_agg(json_build_array(n, case when cancelled is null then 'held' else 'cancelled' end)), count(*), array_agg(n)
    into v_held, v_count, v_places from held;
  if v_count < cardinality(p_ids) then
    select json_agg(json_build_array(t.n, 'unknown')) into v_unknown
      from unnest(p_ids, p_tokens) with ordinality t(id, token, n)
      join {schema}.item i on i.id = t.id and i.token = t.token
     where t.n not in (select unnest(v_places));
  end if;
  if v_unknown is not null then
    -- The worker is alive, so these leases do not lapse by a crash, whatever an earlier heartbeat wrote into the row. The last hundred
    -- are enough: a transaction holds few rows.
    update {schema}.worker w
       set passed_over = (array(
             select t.token from unnest(p_tokens) with ordinality t(token, n)
              where t.n in (select (u.value->>0)::bigint from json_array_elements(v_unknown) u)
           ) || w.passed_over)[:100]
     where w.id = any(array(select o.id from {schema}.worker o where o.id = p_worker for no key update skip locked));
  end if;
  return json_build_object('held', v_held, 'unknown', v_unknown)::text;
end {body};

-- watch_for: an inbox wants to be notified when items end and groups close. By primary keys.
--
-- An item that is watched is locked by its key only: a commit that ends it waits, and then sees the watcher, while a claim takes it as if
-- nothing were locked. Only a group that still lives on its root needs the root's row to be written.
create function {schema}.watch_for(p_now bigint, p_inbox text, p_ids text[], p_groups text[]) returns void language plpgsql
${WAITS_FOR_LOCKS}
as {body}
declare
  v_single text[];
begin
  if exists (select from {schema}.item i where i.id = any(p_groups) and i.is_single) then
    perform from {schema}.item i where i.id = any(p_ids || p_groups) order by i.id for update;
  else
    perform from {schema}.item i where i.id = any(p_ids || p_groups) order by i.id for key share;
  end if;
  if exists (select from {schema}.group_share) then
    perform {schema}.fold_shares(p_groups);
  end if;
  insert into {schema}.item_watcher (item, inbox)
    select i.id, p_inbox from {schema}.item i where i.id = any(p_ids) and i.waiter is distinct from p_inbox on conflict do nothing;
  -- A group that lives on its root gets a row, which can hold watchers.
  select array_agg(i.id) into v_single from {schema}.item i where i.id = any(p_groups) and i.is_single;
  if v_single is not null then
    ${rowsForRoots('v_single')};
    update {schema}.item set is_single = false where id = any(v_single);
  end if;
  perform from {schema}.item_group g where g.id = any(p_groups) order by g.id for update;
  update {schema}.item_group g set watchers = array_append(g.watchers, p_inbox)
   where g.id = any(p_groups) and g.open > 0 and not coalesce(p_inbox = any(g.watchers), false);
end {body};
`
