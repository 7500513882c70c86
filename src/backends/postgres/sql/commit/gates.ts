/** What `n.ended` members that ended, `n.good` of them well, change in a gate `g`. */
export const COUNT_MEMBERS = `remaining = g.remaining - n.ended, need = g.need - case when g.condition = 'done' then n.ended else n.good end`

/** Whether a gate `g` can decide: it is met, or can no longer be. */
export const CAN_DECIDE = `(g.need <= 0 or g.need > g.remaining)`

/** The rest of a statement that begins with the gates `decided` (key, holds, met): what they hold is free, and they are over. */
export const FREE_HELD = `freed as (
      update {schema}.item i
         set state = 0, due_at = v_now, gate_met = d.met, hold_by = null, hold_key = null
        from decided d
       where i.id = d.held_id and i.state < 2 and i.hold_by = 'gate' and i.hold_key = d.key
         and (i.due_at is null or i.due_at > v_now)
      returning i.queue
    ), closed as (
      delete from {schema}.gate g using decided d where g.key = d.key
    ), forgotten as (
      delete from {schema}.gate_member m using decided d where m.gate = d.key
    )
    select v_wake || array_agg(f.queue) into v_wake from freed f;
`

const OPEN_GATES = `  if p_gates is not null then
    with opened as (
      insert into {schema}.gate (key, held_id, need, remaining, condition)
      select distinct on (g.key collate "C") g.key, g.held_id, g.need, 0, g.condition
        from json_to_recordset(p_gates) g(s int, key text, held_id text, need int, condition text) where v_ok[g.s]
       order by g.key collate "C", g.s
      on conflict (key) do nothing
      returning key
    )
    select array_agg(key) into v_opened from opened;
  end if;
  if v_opened is not null then
    -- A member that is locked since step 1, or that this batch pushes, ends after us and sees the gate. One that has finished is
    -- seen here. Any other has no row that we could lock: it may come and end while we are at work, and neither would see
    -- the other. The gate is checked again when it can be seen.
    with member as materialized (
      select distinct g.key, m.id, f.state = 5 as is_success
        from json_to_recordset(p_gates) g(s int, key text, members json)
       cross join lateral json_array_elements_text(g.members) m(id)
        left join {schema}.ended_item f on f.id = m.id and f.keep_until > v_now
       where g.key = any(v_opened) and v_ok[g.s]
    ), waits as (
      insert into {schema}.gate_member (member, gate) select id, key from member where is_success is null
    ), strange as (
      insert into {schema}.gate_check (gate)
        select distinct key from member where is_success is null and id not in (select unnest(v_still || v_new))
    )
    update {schema}.gate g
       set remaining = n.waiting, need = g.need - case when g.condition = 'done' then n.ended else n.good end
      from (select key, count(*) filter (where is_success is null) as waiting, count(is_success) as ended,
                   count(*) filter (where is_success) as good from member group by key) n
     where g.key = n.key;
  end if;
`

const NOTIFY_GATES = `  if v_gated is not null or p_notify_gates is not null then
    select array_agg(distinct x.gate) into v_notified from (
      select m.gate from {schema}.gate_member m where m.member = any(v_gated)
      union all select t.key from json_to_recordset(p_notify_gates) t(s int, key text) where v_ok[t.s]) x;
  end if;
  if v_notified is not null or p_holding is not null then
    perform from {schema}.gate g where g.key = any(v_notified || p_holding) order by g.key for update;
  end if;
  if v_notified is not null then
    with notified as (
      select m.gate, m.member, e.ok from unnest(v_gated, v_gated_ok) e(id, ok)
        join {schema}.gate_member m on m.member = e.id
      union select t.key, t.member, t.ok from json_to_recordset(p_notify_gates) t(s int, key text, member text, ok boolean)
       where v_ok[t.s]
    ), counted as (
      -- The first word about a member counts: the row is there once.
      delete from {schema}.gate_member m using notified t where m.gate = t.gate and m.member = t.member
      returning m.gate, t.ok
    )
    update {schema}.gate g
       set ${COUNT_MEMBERS}
      from (select gate, count(*) as ended, count(*) filter (where ok) as good from counted group by gate) n
     where g.key = n.gate;
  end if;
`

const DECIDE_GATES = `  v_notified := v_opened || v_notified || p_holding;
  if v_notified is not null then
    -- A gate may be opened before the item that it holds comes; then it decides when the item comes.
    with decided as materialized (
      select g.key, g.held_id, g.need <= 0 as met from {schema}.gate g
       where g.key = any(v_notified) and ${CAN_DECIDE}
         and (exists (select from {schema}.item i where i.id = g.held_id)
              or exists (select from {schema}.ended_item f where f.id = g.held_id))
    ), ${FREE_HELD}  end if;
`

/** Step 4: opens gates, notifies them of their members, and frees what they hold. */
export const GATES = `  -- 4. Gates ---------------------------------------------------------------------------------------------------------------
${OPEN_GATES}${NOTIFY_GATES}${DECIDE_GATES}`
