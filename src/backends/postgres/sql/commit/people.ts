const REOPEN = `    for v_rare in select * from json_to_recordset(p_rare->'reopen') r(s int, n int, id text, ms bigint) loop
      continue when not v_ok[v_rare.s];
      -- As if it had arrived now; only its history, its fence and who settled it last go on.
      with back as (
        delete from {schema}.finished f where f.id = v_rare.id returning f.*
      ), again as (
        insert into {schema}.item (id, seq, queue, home, priority, attempt, state, is_alone, fence, queue_at, start_at,
                                   due_at, input, group_id, rest, settled_by, waiter, fingerprint, history,
                                   deadline)
        select b.id, (v_batch << 20) + v_rare.n, h.queue, b.home, b.priority, 1, case when v_rare.ms > 0 then 1 else 0 end,
               b.is_alone, b.fence, v_now,
               v_now + v_rare.ms, v_now + v_rare.ms, b.input, b.group_id,
               ((case when (b.rest::jsonb->>'deadline')::float8 <= v_now then b.rest::jsonb - 'deadline'
                      else coalesce(b.rest::jsonb, '{}') end)
                || jsonb_build_object('redrives', coalesce((b.rest::jsonb->>'redrives')::int, 0) + 1))::text,
               b.settled_by, b.rest::jsonb->>'waiter', b.fingerprint, b.history,
               case when (b.rest::jsonb->>'deadline')::float8 > v_now then (b.rest::jsonb->>'deadline')::float8 end
          from back b join {schema}.home h on h.no = b.home
        returning queue
      )
      select v_wake || array_agg(a.queue) into v_wake from again a;
    end loop;
`

const ERASE = `    for v_rare in select * from json_to_recordset(p_rare->'erase') r(s int, id text) loop
      continue when not v_ok[v_rare.s];
      delete from {schema}.item where id = v_rare.id;
      -- The group of a root that had ended alone is kept as long as it would have been.
      insert into {schema}.item_group (id, open, value, final, version, gone_at)
        select f.id, 0, f.group_value, f.group_final, f.group_version, f.gone_at from {schema}.finished f
         where f.id = v_rare.id and f.is_alone and f.gone_at > v_now on conflict (id) do nothing;
      delete from {schema}.finished where id = v_rare.id;
      delete from {schema}.item_tag where id = v_rare.id;
      delete from {schema}.item_watcher where item = v_rare.id;
      v_ended := v_ended || v_rare.id;
      v_has_gates := true;
    end loop;
`

const CANCEL = `    for v_rare in select * from json_to_recordset(p_rare->'cancel') r(s int, id text, reason text) loop
      continue when not v_ok[v_rare.s];
      update {schema}.item i set cancelled = v_rare.reason where i.id = v_rare.id and i.state = 2;
      -- Its holder looks at once instead of at its next heartbeat.
      select json_agg(x.value) into v_told_ids from (
        select value from json_array_elements(v_told_ids)
        union all select json_build_array(i.worker, i.id) from {schema}.item i where i.id = v_rare.id and i.state = 2) x;
    end loop;
`

const SCHEDULE = `    insert into {schema}.schedule (name, spec, next_at)
      select distinct on (h.name) h.name, h.spec, h.next_at
        from json_to_recordset(p_rare->'schedule') h(s int, name text, spec text, next_at bigint)
       where v_ok[h.s] order by h.name, h.s desc
    on conflict (name) do update set spec = excluded.spec, next_at = excluded.next_at;
`

const PAUSE_AND_RESUME = `    for v_rare in select * from json_to_recordset(p_rare->'pause') r(s int, pause boolean, key text, name text) loop
      continue when not v_ok[v_rare.s];
      if v_rare.pause then
        insert into {schema}.pause (key, is_over) values (v_rare.key, false)
          on conflict (key) do update set is_over = false;
      else
        update {schema}.pause set is_over = true where key = v_rare.key;
        if found then
          perform {schema}.free_aside(1000);
          -- What no claim has met stands in its queue as before: whoever serves it has to look.
          select v_wake || array_agg(q.no) into v_wake from {schema}.queue q
           where v_rare.key = 'queue:' || q.name
              or exists (select from {schema}.home h where h.queue = q.no and v_rare.key = 'type:' || h.type);
        end if;
      end if;
    end loop;
`

const LOG = `    insert into {schema}.audit_log (at, who, why, what)
      select v_now, l.who, l.why, l.what from json_to_recordset(p_rare->'log') l(s int, n int, who text, why text, what text)
       where v_ok[l.s] order by l.n;
    if p_rare->'log' is not null then
      -- The last ten thousand are kept. More go than came, and none that another batch removes at this moment.
      delete from {schema}.audit_log where no = any(array(
        select l.no from {schema}.audit_log l where l.no <= (select max(m.no) from {schema}.audit_log m) - 10000
         order by l.no limit 2000 for update skip locked));
    end if;
`

const NOTIFY = `    if p_rare->'notify' is not null then
      select json_agg(x.value) into v_told_ids from (
        select value from json_array_elements(v_told_ids)
        union all
        select json_build_array(n."to", i.id) from json_to_recordset(p_rare->'notify') n(s int, "to" text, ids json)
         cross join lateral json_array_elements_text(n.ids) i(id) where v_ok[n.s]) x;
    end if;
`

/** Step 5: effects that no run has. */
export const PEOPLE = `  -- 5. What people do ------------------------------------------------------------------------------------------------------
  if p_rare is not null then
${REOPEN}${ERASE}${CANCEL}${SCHEDULE}${PAUSE_AND_RESUME}${LOG}${NOTIFY}  end if;
  if v_ended is not null and v_has_gates then
    -- A gate is over with the item that it holds.
    with over as (delete from {schema}.gate g where g.holds = any(v_ended) returning g.key)
    delete from {schema}.gate_member m using over o where m.gate = o.key;
  end if;
`
