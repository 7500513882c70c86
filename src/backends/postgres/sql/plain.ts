import { IN_ORDER } from './plan-settings.js'

/** The plain queue: leases of opaque bodies. */
export const PLAIN = `
-- push_messages: bodies in the order of the list. A dedupe key that is in the queue makes a push a no-op: by message_dedupe.
create function {schema}.push_messages(p_now bigint, p_queue int, p_name text, p_bodies json) returns void language plpgsql as {body}
declare
  v_now bigint := {schema}.at(p_now);
  v_due bigint;
begin
  with pushed as (
    insert into {schema}.message (queue, priority, state, due_at, dedupe_key, id, body)
    select p_queue, m.priority, case when m.delay > 0 then 1 else 0 end, v_now + m.delay, m.dedupe_key, m.id, m.body
      from json_to_recordset(p_bodies) m(n int, body text, delay bigint, priority float8, dedupe_key text, id text)
     order by m.n
    on conflict (queue, dedupe_key) where dedupe_key is not null do nothing
    returning due_at
  )
  select min(due_at) into v_due from pushed;
  if v_due is not null then
    perform {schema}.send_notifications(json_build_array(json_build_array(p_name, v_due)), null, null);
  end if;
end {body};

-- pop_messages: free lapsed leases (message_leased), promote what is due (message_delayed), lease what is visible
-- (message_ready).
create function {schema}.pop_messages(p_now bigint, p_queue int, p_max int, p_lease bigint, p_token text, p_step int)
returns table (body text, token text, deliveries int, id text, starts int, note text) language plpgsql
${IN_ORDER}
as {body}
#variable_conflict use_column
declare
  v_now bigint := {schema}.at(p_now);
begin
  update {schema}.message m set state = 0, token = null, lease_until = null
   where m.no = any(array(select l.no from {schema}.message l where l.queue = p_queue and l.state = 2 and l.lease_until <= v_now
                           order by l.lease_until limit p_step for update skip locked));
  update {schema}.message m set state = 0
   where m.no = any(array(select l.no from {schema}.message l where l.queue = p_queue and l.state = 1 and l.due_at <= v_now
                           order by l.due_at limit p_step for update skip locked));
  return query
    with picked as materialized (
      select c.no, row_number() over (order by c.priority desc, c.due_at, c.no) as place from (
        select r.no, r.priority, r.due_at from {schema}.message r where r.queue = p_queue and r.state = 0
         order by r.priority desc, r.due_at, r.no limit p_max for update skip locked) c
    ), leased as (
      update {schema}.message m
         set state = 2, token = p_token || '.' || p.place, lease_until = v_now + p_lease, deliveries = m.deliveries + 1,
             is_started = false
        from picked p where m.no = p.no
      returning p.place, m.body, m.token, m.deliveries, m.id, m.starts, m.note
    )
    select l.body, l.token, l.deliveries, l.id, l.starts, l.note from leased l order by l.place;
end {body};

-- take_messages: bodies that came past the ledger leave their queue, to become items. By message_ready, message_delayed.
create function {schema}.take_messages(p_now bigint, p_queue int, p_max int)
returns table (body text, priority float8, id text) language plpgsql
${IN_ORDER}
as {body}
#variable_conflict use_column
declare
  v_now bigint := {schema}.at(p_now);
begin
  return query
    delete from {schema}.message m where m.no = any(array(
      select r.no from {schema}.message r where r.queue = p_queue and r.state = 0
       order by r.priority desc, r.due_at, r.no limit p_max for update skip locked)
      || array(
      select r.no from {schema}.message r where r.queue = p_queue and r.state = 1 and r.due_at <= v_now
       order by r.due_at limit p_max for update skip locked))
    returning m.body, m.priority, m.id;
end {body};

-- sweep_store: remove keys that have expired, and what was given up thirty days ago, at most so many. By store_expires,
-- dead_letter_at.
create function {schema}.sweep_store(p_now bigint, p_max int) returns void language sql volatile
${IN_ORDER}
as {body}
  delete from {schema}.store where key = any(array(
    select s.key from {schema}.store s where s.expires_at <= p_now order by s.expires_at limit p_max for update skip locked));
  delete from {schema}.dead_letter where no = any(array(
    select d.no from {schema}.dead_letter d where d.at <= p_now - 2592000000 order by d.at limit p_max for update skip locked))
{body};

-- bury: keep what was given up, and remove what was thirty days ago: nothing else may come by here. A letter with the same id is
-- replaced, and comes to the end of the list.
create function {schema}.bury(p_now bigint, p_queue int, p_body text, p_error text, p_id text, p_detail text) returns void
language plpgsql as {body}
declare
  v_now bigint := {schema}.at(p_now);
begin
  insert into {schema}.dead_letter (queue, at, body, error, id, detail) values (p_queue, v_now, p_body, p_error, p_id, p_detail)
  on conflict (queue, id) do update
    set no = default, at = excluded.at, body = excluded.body, error = excluded.error, detail = excluded.detail;
  perform {schema}.sweep_store(v_now, 8);
end {body};

-- redrive_letters: back into the queue they came from, as new messages with their ids. By the primary key.
create function {schema}.redrive_letters(p_now bigint, p_queue int, p_name text, p_nos bigint[]) returns bigint
language plpgsql as {body}
declare
  v_now bigint := {schema}.at(p_now);
  v_count bigint;
begin
  with gone as (
    delete from {schema}.dead_letter d where d.queue = p_queue and d.no = any(p_nos) returning d.no, d.body, d.id
  ), back as (
    insert into {schema}.message (queue, priority, state, due_at, id, body)
    select p_queue, 0, 0, v_now, g.id, g.body from gone g order by g.no
    returning 1
  )
  select count(*) into v_count from back;
  if v_count > 0 then
    perform {schema}.send_notifications(json_build_array(json_build_array(p_name, v_now)), null, null);
  end if;
  return v_count;
end {body};
`
