import { WAITS_FOR_LOCKS } from './plan-settings.js'

/** Whether anything at all is waited for in one of these ways. */
const IS_ANYTHING_AWAITED = `exists (select from {schema}.gate) or exists (select from {schema}.item_watcher)
     or exists (select from {schema}.group_share)`

/** Those of the items `ids` (an array) for which a gate or an inbox waits, or whose group has company that no commit has counted. */
const awaitedOf = (ids: string): string => `array(
      select m.member from {schema}.gate_member m where m.member = any(${ids})
      union select g.held_id from {schema}.gate g where g.held_id = any(${ids})
      union select w.item from {schema}.item_watcher w where w.item = any(${ids})
      union select s.group_id from {schema}.group_share s where s.group_id = any(${ids}))`

/**
 * end_items: complete items that are the only members of their groups and that no gate, watcher or share concerns, as most are. One
 * statement moves them. What it cannot do is left as it was, and `commit_batch` does it.
 *
 * Texts come joined by U+001F, which none of them contains: splitting them costs less than reading JSON. The worker, and how long they are
 * kept, are the same for all.
 *
 * Rows are locked in the order of their ids, as by `commit_batch`. What awaits an item is searched for after its row is locked, because
 * a commit that opens a gate or watches locks it, too; then it is too late to leave the item out, so everything is undone
 * (M0001) and the client takes the other way.
 *
 * REPLY  null: all of them, and no caller waits for their groups; otherwise JSON: heard (places of those whose group an inbox waits for), and
 *        others ([place, letter]...: r repeated, s stale, x not done here)
 */
export const END = `
create function {schema}.end_items(
  p_now bigint, p_ids text, p_tokens text,
  p_results text,      -- an empty one stands for none
  p_values  text,      -- a character for each: 0 no group value, 1 the result is the value, 2 it is final
  p_keep    bigint,
  p_worker  text,      -- of the runs that ended; null: no run is told of
  p_attempts text,
  p_started text,
  p_ended   text
) returns text
language plpgsql
${WAITS_FOR_LOCKS}
as {body}
declare
  v_now    bigint := {schema}.at(p_now);
  v_batch  bigint := nextval('{schema_text}.arrival');
  v_ids    text[] := string_to_array(p_ids, E'\\x1f');
  v_tokens text[] := string_to_array(p_tokens, E'\\x1f');
  v_apart  text[] := '{}';
  v_done   int[];
  v_gone   text[];
  v_heard  int[];
  v_items  json;
  v_others json;
begin
  if ${IS_ANYTHING_AWAITED} then
    v_apart := ${awaitedOf('v_ids')};
  end if;
  with e as materialized (
    select u.id, u.token, u.attempt, u.started, u.ended, u.result, u.value, u.n
      from unnest(v_ids, v_tokens, string_to_array(p_attempts, ',')::int[], string_to_array(p_started, ',')::float8[], string_to_array(p_ended, ',')::float8[],
                  string_to_array(p_results, E'\\x1f', ''), string_to_array(p_values, null))
           with ordinality u(id, token, attempt, started, ended, result, value, n)
     where u.id <> all(v_apart)
     order by u.id collate "C"
  ), gone as (
    delete from {schema}.item i using e
     where i.id = e.id and i.token = e.token and i.attempt = coalesce(e.attempt, i.attempt) and i.is_single
    returning i.*, e.started, e.ended, e.result, e.value, e.n
  ), kept as (
    insert into {schema}.ended_item (id, seq, queue_type, state, priority, attempt, fence, lapses, crashes, queue_at, start_at, run_at,
             end_at, keep_until, is_single, group_final, group_version, envelope_rest, settled_token, ending, outcome, progress,
             fingerprint, attempts, started_at, ended_at, worker)
    select g.id, (v_batch << 20) + g.n, g.queue_type, 5, g.priority, g.attempt, g.fence, g.lapses, g.crashes, g.queue_at, g.start_at,
           g.run_at, v_now, v_now + p_keep, true, g.value is not distinct from '2', (g.value <> '0')::int, g.envelope_rest, g.token, 'completed',
           g.result, g.progress, case when p_worker is null then g.fingerprint end, g.attempts, g.started, g.ended, p_worker
      from gone g
  )
  select array_agg(g.n), array_agg(g.id), array_agg(g.n) filter (where g.waiter is not null),
         json_agg(json_build_array(g.waiter, g.id)) filter (where g.waiter is not null)
    into v_done, v_gone, v_heard, v_items from gone g;
  if v_gone is not null and (${IS_ANYTHING_AWAITED}) and cardinality(${awaitedOf('v_gone')}) > 0 then
    raise exception 'a caller has begun to wait for one of these items' using errcode = 'M0001';
  end if;
  if v_items is not null then
    perform {schema}.send_notifications(null, v_items, v_items);
  end if;
  if cardinality(v_done) = cardinality(v_ids) then
    return case when v_heard is not null then json_build_object('heard', v_heard)::text end;
  end if;
  select json_agg(json_build_array(u.n, coalesce(
           (select case when i.token = u.token then 'x' when i.settled_token = u.token then 'r' else 's' end
              from {schema}.item i where i.id = u.id),
           (select case when f.settled_token = u.token then 'r' else 's' end
              from {schema}.ended_item f where f.id = u.id and f.keep_until > v_now), 's')))
    into v_others
    from unnest(v_ids, v_tokens) with ordinality u(id, token, n) where u.n <> all(coalesce(v_done, '{}'));
  return json_build_object('heard', v_heard, 'others', v_others)::text;
end {body};
`
