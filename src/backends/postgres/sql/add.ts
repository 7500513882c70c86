import { WAITS_FOR_LOCKS } from './plan-settings.js'

/**
 * add_items: new items that are the only members of their groups, as most that are enqueued from outside are. What it cannot do is left to
 * `commit_batch`.
 *
 * Ids and inputs come joined by U+001F, which none of them contains: splitting them costs less than reading JSON. What items share is their
 * profile, of which there are few in a batch.
 *
 * REPLY  null: all are new; otherwise a letter for each: a applied, r repeated, or x for all of them: nothing was done, because a group that one of
 *        them would be the root of is there already
 */
export const ADD = `
create function {schema}.add_items(p_now bigint, p_ids text, p_inputs text, p_of text, p_profiles json, p_ready json) returns text
language plpgsql
${WAITS_FOR_LOCKS} set enable_hashjoin = on
as {body}
declare
  v_now   bigint := {schema}.at(p_now);
  v_batch bigint := nextval('{schema_text}.arrival');
  v_ids   text[] := string_to_array(p_ids, E'\\x1f');
  v_new   text[];
begin
  if exists (select from {schema}.item_group g where g.id = any(v_ids)) then
    return repeat('x', cardinality(v_ids));
  end if;
  with pushed as (
    insert into {schema}.item (id, seq, queue, queue_type, priority, attempt, state, is_single, queue_at, start_at, due_at, input,
                               envelope_rest, waiter)
    select u.id, (v_batch << 20) + u.n, p.queue, p.queue_type, p.priority, p.attempt, case when p.delay <= 0 then 0 else 1 end, true,
           p.queue_at, p.start_at, v_now + p.delay, u.input, p.rest, p.waiter
      from unnest(v_ids, string_to_array(p_inputs, E'\\x1f'), string_to_array(p_of, ',')::int[]) with ordinality u(id, input, of, n)
      join json_to_recordset(p_profiles) p(no int, queue int, queue_type int, priority float8, attempt int, delay bigint,
             queue_at float8, start_at float8, rest text, waiter text) on p.no = coalesce(u.of, 0)
     order by u.id collate "C"
    on conflict (id) do nothing
    returning id
  )
  select coalesce(array_agg(id), '{}') into v_new from pushed;
  v_new := {schema}.without_ended(v_new, v_now);
  if cardinality(v_new) > 0 then
    perform {schema}.send_notifications(
      (select json_agg(json_build_array(r.value->0, v_now + (r.value->>1)::bigint)) from json_array_elements(p_ready) r), null, null);
  end if;
  if cardinality(v_new) = cardinality(v_ids) then
    return null;
  end if;
  return (select string_agg(case when w.id is null then 'r' else 'a' end, '' order by u.n)
            from unnest(v_ids) with ordinality u(id, n) left join unnest(v_new) w(id) on w.id = u.id);
end {body};
`
