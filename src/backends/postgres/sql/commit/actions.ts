import { GROUP_VALUE } from '../groups.js'

const REDRIVE = `    for v_action in select * from json_to_recordset(p_actions->'redrive') r(s int, n int, id text, ms bigint) loop
      continue when not v_ok[v_action.s];
      -- As if it had arrived now; only its history, its fence and who settled it last go on.
      with back as (
        delete from {schema}.ended_item f where f.id = v_action.id returning f.*
      ), again as (
        insert into {schema}.item (id, seq, queue, queue_type, priority, attempt, state, is_single, fence, queue_at, start_at,
                                   due_at, input, group_id, envelope_rest, settled_token, waiter, fingerprint, attempts,
                                   deadline)
        select b.id, (v_batch << 20) + v_action.n, h.queue, b.queue_type, b.priority, 1, case when v_action.ms > 0 then 1 else 0 end,
               b.is_single, b.fence, v_now,
               v_now + v_action.ms, v_now + v_action.ms, b.input, b.group_id,
               ((case when (b.envelope_rest::jsonb->>'deadline')::float8 <= v_now then b.envelope_rest::jsonb - 'deadline'
                      else coalesce(b.envelope_rest::jsonb, '{}') end)
                || jsonb_build_object('redrives', coalesce((b.envelope_rest::jsonb->>'redrives')::int, 0) + 1))::text,
               b.settled_token, b.envelope_rest::jsonb->>'waiter', b.fingerprint, b.attempts,
               case when (b.envelope_rest::jsonb->>'deadline')::float8 > v_now then (b.envelope_rest::jsonb->>'deadline')::float8 end
          from back b join {schema}.queue_type h on h.no = b.queue_type
        returning queue
      )
      select v_wake || array_agg(a.queue) into v_wake from again a;
    end loop;
`

const DELETE = `    for v_action in select * from json_to_recordset(p_actions->'delete') r(s int, id text) loop
      continue when not v_ok[v_action.s];
      delete from {schema}.item where id = v_action.id;
      -- The group of a root that had ended as its only member is kept as long as it would have been.
      insert into {schema}.item_group (id, open, value, final, version, keep_until)
        select f.id, 0, ${GROUP_VALUE}, f.group_final, f.group_version, f.keep_until from {schema}.ended_item f
         where f.id = v_action.id and f.is_single and f.keep_until > v_now on conflict (id) do nothing;
      delete from {schema}.ended_item where id = v_action.id;
      delete from {schema}.item_tag where id = v_action.id;
      delete from {schema}.item_watcher where item = v_action.id;
      v_ended := v_ended || v_action.id;
      v_has_gates := true;
    end loop;
`

const CANCEL = `    for v_action in select * from json_to_recordset(p_actions->'requestCancel') r(s int, id text, reason text) loop
      continue when not v_ok[v_action.s];
      update {schema}.item i set cancelled = v_action.reason where i.id = v_action.id and i.state = 2;
      -- Notified, its worker sees the request immediately instead of at its next heartbeat.
      select json_agg(x.value) into v_notify_items from (
        select value from json_array_elements(v_notify_items)
        union all select json_build_array(i.worker, i.id) from {schema}.item i where i.id = v_action.id and i.state = 2) x;
    end loop;
`

const SCHEDULE = `    insert into {schema}.schedule (name, spec, next_at)
      select distinct on (h.name) h.name, h.spec, h.next_at
        from json_to_recordset(p_actions->'schedule') h(s int, name text, spec text, next_at bigint)
       where v_ok[h.s] order by h.name, h.s desc
    on conflict (name) do update set spec = excluded.spec, next_at = excluded.next_at;
`

const PAUSE_AND_RESUME = `    for v_action in select * from json_to_recordset(p_actions->'pause') r(s int, pause boolean, key text, name text) loop
      continue when not v_ok[v_action.s];
      if v_action.pause then
        insert into {schema}.pause (key, is_resumed) values (v_action.key, false)
          on conflict (key) do update set is_resumed = false;
      else
        update {schema}.pause set is_resumed = true where key = v_action.key;
        if found then
          perform {schema}.free_resumed(1000);
          -- What no claim has met is in its queue as before: the workers that serve it have to claim.
          select v_wake || array_agg(q.no) into v_wake from {schema}.queue q
           where v_action.key = 'queue:' || q.name
              or exists (select from {schema}.queue_type h where h.queue = q.no and v_action.key = 'type:' || h.type);
        end if;
      end if;
    end loop;
`

const LOG = `    insert into {schema}.action_log (at, who, why, what)
      select v_now, l.who, l.why, l.what from json_to_recordset(p_actions->'log') l(s int, n int, who text, why text, what text)
       where v_ok[l.s] order by l.n;
    if p_actions->'log' is not null then
      -- The last ten thousand are kept. More go than came, and none that another batch removes at this moment.
      delete from {schema}.action_log where no = any(array(
        select l.no from {schema}.action_log l where l.no <= (select max(m.no) from {schema}.action_log m) - 10000
         order by l.no limit 2000 for update skip locked));
    end if;
`

const NOTIFY = `    if p_actions->'notify' is not null then
      select json_agg(x.value) into v_notify_items from (
        select value from json_array_elements(v_notify_items)
        union all
        select json_build_array(n.inbox, i.id) from json_to_recordset(p_actions->'notify') n(s int, inbox text, ids json)
         cross join lateral json_array_elements_text(n.ids) i(id) where v_ok[n.s]) x;
    end if;
`

/** Step 5: effects that no run has. */
export const ACTIONS = `  -- 5. What people do ------------------------------------------------------------------------------------------------------
  if p_actions is not null then
${REDRIVE}${DELETE}${CANCEL}${SCHEDULE}${PAUSE_AND_RESUME}${LOG}${NOTIFY}  end if;
  if v_ended is not null and v_has_gates then
    -- A gate is over with the item that it holds.
    with closed as (delete from {schema}.gate g where g.held_id = any(v_ended) returning g.key)
    delete from {schema}.gate_member m using closed o where m.gate = o.key;
  end if;
`
