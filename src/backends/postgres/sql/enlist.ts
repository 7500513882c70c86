import { INSERT_PUSHED, PUSHED_ROW } from './commit/new-items.js'
import { BY_KEY } from './plan-settings.js'

/**
 * enlist: what a transaction of the user writes. One text in, one text out: such a library may know no arrays.
 *
 * The user decides when this commits, and what is locked here stays locked until then. So it only adds rows that did not exist,
 * and takes no lock that a claim, a heartbeat or a commit could wait for. An id that two transactions add at the same time is the
 * exception, as it has to be: the later one waits to see whether the earlier one commits.
 * - The item is inserted as usual. What is left of an older one of its id, kept long enough, stays until it is counted (fold_shares).
 * - Its place in its group is a share, which the next commit that moves the group adds to the row (fold_shares).
 * - A gate is inserted with all its members waiting, whether or not they have ended. The note makes claims check it (check_gates).
 *
 * It sends no notification: see `announcer.ts`.
 *
 * REPLY  a JSON text as that of commit_batch: kinds, of which there are a (applied) and r (repeated); and what to announce when the transaction has
 *        committed: its number, and the queues that it gives work to, with the time of that
 */
export const ENLIST = `
create function {schema}.enlist(p text) returns text language plpgsql
${BY_KEY}
as {body}
declare
  v_all    json := p::json;
  v_now    bigint := {schema}.at((v_all->>'now')::bigint);
  v_batch  bigint := nextval('{schema_text}.arrival');
  v_new    text[];
  v_there  text[];
  v_opened text[];
  v_ok     boolean[];
  v_ready  json;
begin
  with pushed as (
${INSERT_PUSHED}          from json_to_recordset(v_all->'roots') as ${PUSHED_ROW}
         order by p.id collate "C"
        on conflict (id) do nothing
        returning id
  )
  select coalesce(array_agg(id), '{}') into v_new from pushed;
  -- As in without_ended: the insert comes first, and what it should not have brought goes again.
  select array_agg(f.id) into v_there from {schema}.ended_item f where f.id = any(v_new) and f.keep_until > v_now;
  if v_there is not null then
    delete from {schema}.item where id = any(v_there);
    v_new := array(select x from unnest(v_new) x where x <> all(v_there));
  end if;
  select array_agg(p.id = any(v_new) order by p.s) into v_ok from json_to_recordset(v_all->'roots') p(s int, id text);
  insert into {schema}.group_share (group_id, item, by, watch, at)
    select coalesce(p.group_id, p.id), p.id, p.counted::int, p.waiter, v_now
      from json_to_recordset(v_all->'roots') p(s int, id text, group_id text, counted boolean, waiter text) where v_ok[p.s];
  insert into {schema}.item_tag (id, tag, seq)
    select t.id, t.tag, (v_batch << 20) + t.n from json_to_recordset(v_all->'tags') t(s int, n int, id text, tag text)
     where v_ok[t.s]
  on conflict do nothing;
  if v_all->'gates' is not null then
    with opened as (
      insert into {schema}.gate (key, held_id, need, remaining, condition)
      select distinct on (g.key collate "C") g.key, g.held_id, g.need,
             (select count(distinct m.id) from json_to_recordset(v_all->'gates') o(s int, key text, members json)
               cross join lateral json_array_elements_text(o.members) m(id) where o.key = g.key and v_ok[o.s]), g.condition
        from json_to_recordset(v_all->'gates') g(s int, key text, held_id text, need int, condition text)
       where v_ok[g.s]
       order by g.key collate "C", g.s
      on conflict (key) do nothing
      returning key
    )
    select array_agg(key) into v_opened from opened;
    insert into {schema}.gate_member (member, gate)
      select distinct m.id, g.key from json_to_recordset(v_all->'gates') g(s int, key text, members json)
       cross join lateral json_array_elements_text(g.members) m(id)
       where g.key = any(v_opened) and v_ok[g.s];
  end if;
  -- The gates of this transaction, and older gates that hold what came with it.
  insert into {schema}.gate_check (gate)
    select distinct p.hold_key from json_to_recordset(v_all->'roots') p(s int, hold_by text, hold_key text)
     where v_ok[p.s] and p.hold_by = 'gate'
    union select unnest(v_opened);
  if true = any(v_ok) then
    select json_agg(json_build_array(r.value->0, v_now + (r.value->>1)::bigint)) into v_ready
      from json_array_elements(v_all->'ready') r;
  end if;
  return json_build_object('transaction', pg_current_xact_id()::text, 'ready', v_ready, 'kinds', (select string_agg(case when x.ok then 'a' else 'r' end, '' order by x.s)
                                       from unnest(v_ok) with ordinality x(ok, s)))::text;
end {body};

-- announce: notifies the queues to which transactions gave work that have committed. Returns those that are still open.
create function {schema}.announce(p json) returns text[] language plpgsql
${BY_KEY}
as {body}
declare
  v_ready json;
  v_open  text[];
begin
  select coalesce(array_agg(t.xid), '{}') into v_open
    from json_to_recordset(p) t(xid text) where pg_xact_status(t.xid::xid8) = 'in progress';
  select json_agg(json_build_array(r.queue, r.due)) into v_ready from (
    select e.value->>0 as queue, min((e.value->>1)::bigint) as due
      from json_to_recordset(p) t(xid text, ready json) cross join lateral json_array_elements(t.ready) e
     where t.xid <> all(v_open) and pg_xact_status(t.xid::xid8) = 'committed' group by 1) r;
  if v_ready is not null then
    perform {schema}.send_notifications(v_ready, null, null);
  end if;
  return v_open;
end {body};
`
