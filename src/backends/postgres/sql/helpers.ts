import { isAddedTo } from './groups.js'
import { IN_ORDER } from './plan-settings.js'

/** Small functions that the large ones share. */
export const HELPERS = `
-- at: the time that was given, or the server's.
create function {schema}.at(p_now bigint) returns bigint language sql volatile as {body}
  select coalesce(p_now, (extract(epoch from clock_timestamp()) * 1000)::bigint)
{body};

-- send_notifications: on one channel, when the transaction commits. One notification, unless it is too long for one:
-- PostgreSQL carries 8000 bytes.
--   r  [queue, due or null]: work is ready, or will be     i  [inbox, item]: it ended     g  [inbox, group]: it closed
create function {schema}.send_notifications(p_ready json, p_ids json, p_groups json) returns void language plpgsql as {body}
declare
  v_channel text := 'millrace_' || md5('{schema_text}');
  v_payload text := json_strip_nulls(json_build_object('r', p_ready, 'i', p_ids, 'g', p_groups))::text;
  v_one     record;
  v_part    text := '';
begin
  if octet_length(v_payload) < 7900 then
    perform pg_notify(v_channel, v_payload);
    return;
  end if;
  for v_one in
    select 'r' as kind, value::text as entry from json_array_elements(p_ready)
    union all select 'i', value::text from json_array_elements(p_ids)
    union all select 'g', value::text from json_array_elements(p_groups)
  loop
    -- Parts are lists of [kind, entry].
    if octet_length(v_part) + octet_length(v_one.entry) > 7800 then
      perform pg_notify(v_channel, '[' || v_part || ']');
      v_part := '';
    end if;
    v_part := v_part || case when v_part = '' then '' else ',' end || '["' || v_one.kind || '",' || v_one.entry || ']';
  end loop;
  perform pg_notify(v_channel, '[' || v_part || ']');
end {body};

-- with_attempt: a history and one more, the last hundred at most. An entry has its field names and values, fifty characters at least:
-- a short history is not counted.
create function {schema}.with_attempt(p_attempts text, p_was text) returns text language plpgsql immutable as {body}
declare
  v_all text := coalesce(p_attempts || ',', '') || p_was;
begin
  if length(v_all) < 5000 then
    return v_all;
  end if;
  return (select string_agg(e.value, ',' order by e.n)
            from (select a.value::text as value, a.n, count(*) over () as made
                    from json_array_elements(('[' || v_all || ']')::json) with ordinality a(value, n)) e
           where e.n > e.made - 100);
end {body};

-- sweep: remove for good what has been kept long enough, at most so many of each kind. Waits for no lock.
-- What a user's transaction has added to stays until it is counted. By ended_item_keep_until, item_group_keep_until, group_share_group.
create function {schema}.sweep(p_now bigint, p_max int) returns int language plpgsql
${IN_ORDER}
as {body}
declare
  v_tagged  text[];
  v_removed int := 0;
begin
  if exists (select from {schema}.ended_item where keep_until <= p_now) then
    with ended as (
      delete from {schema}.ended_item where id = any(array(
        select f.id from {schema}.ended_item f where f.keep_until <= p_now and not ${isAddedTo('f.id')}
         order by f.keep_until limit p_max for update skip locked))
      returning id, envelope_rest
    )
    select array_agg(id) filter (where envelope_rest is not null), count(*) into v_tagged, v_removed from ended;
    if v_tagged is not null then
      -- Not those of an item that a user's transaction has pushed under the same id since.
      delete from {schema}.item_tag t where t.id = any(v_tagged)
        and not exists (select from {schema}.item i where i.id = t.id);
    end if;
  end if;
  if exists (select from {schema}.item_group where keep_until <= p_now) then
    delete from {schema}.item_group where id = any(array(
      select g.id from {schema}.item_group g where g.keep_until <= p_now and not ${isAddedTo('g.id')}
       order by g.keep_until limit p_max for update skip locked));
  end if;
  return v_removed;
end {body};

-- queue_type_of: the number of a queue and type, made if it is new. Called in a separate transaction: numbers are never taken back.
create function {schema}.queue_type_of(p_queue text, p_type text) returns int[] language plpgsql as {body}
declare
  v_queue int;
  v_queue_type  int;
begin
  select no into v_queue from {schema}.queue where name = p_queue;
  if v_queue is null then
    insert into {schema}.queue (name) values (p_queue) on conflict (name) do update set name = excluded.name
      returning no into v_queue;
  end if;
  if p_type is not null then
    select no into v_queue_type from {schema}.queue_type where queue = v_queue and type = p_type;
    if v_queue_type is null then
      insert into {schema}.queue_type (queue, type) values (v_queue, p_type)
        on conflict (queue, type) do update set type = excluded.type returning no into v_queue_type;
    end if;
  end if;
  return array[v_queue, v_queue_type];
end {body};
`
