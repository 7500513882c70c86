/** Guards by lease, and everything that has to be locked. An id that must be absent is searched for when it is pushed. */
const LEASES = `  if p_locks is not null then
    -- What a gate holds is locked with the rest, in its place in the order, because a gate that decides will write it.
    v_has_gates := exists (select from {schema}.gate);
    if v_has_gates then
      select v_locks || array_agg(g.held_id) into v_locks
        from {schema}.gate g
       where g.key = any(p_holding || array(select m.gate from {schema}.gate_member m where m.member = any(p_locks)));
    end if;
    if p_gates is null then
      perform from {schema}.item i where i.id = any(v_locks) order by i.id for update;
    else
      select coalesce(array_agg(x.id), '{}') into v_still
        from (select i.id from {schema}.item i where i.id = any(v_locks) order by i.id for update) x;
    end if;
    -- What users' transactions have added to these groups counts from here on.
    if exists (select from {schema}.group_share) then
      perform {schema}.fold_shares(v_locks);
    end if;
    -- A separate statement, which finds each row by its key: a join with the locked rows would compare all with all.
    select array_agg(g.kind order by g.s), array_agg(g.kind in ('a', 'o', 'w') order by g.s) into v_kinds, v_ok
      from (
        select g.s, case when g.token is null then 'a' when i.id is null then '?'
                         when i.token = g.token then
                           case when not i.is_single then 'a' when i.waiter is null then 'o' else 'w' end
                         when i.settled_token = g.token then 'r' else 's' end as kind
          from unnest(p_ids, p_tokens) with ordinality g(id, token, s)
          left join {schema}.item i on i.id = g.id and g.token is not null
      ) g;
    if '?' = any(v_kinds) then
      -- Not among the unfinished: it has finished, perhaps while we waited for its lock.
      select array_agg(case when v_kinds[g.s] <> '?' then v_kinds[g.s] when f.settled_token = g.token then 'r' else 's' end
                       order by g.s)
        into v_kinds
        from unnest(p_ids, p_tokens) with ordinality g(id, token, s)
        left join {schema}.ended_item f on f.id = g.id and v_kinds[g.s] = '?' and f.keep_until > v_now;
    end if;
    if p_touched is not null then
      select array_agg(i.id) into v_joined from {schema}.item i where i.is_single and i.id = any(p_touched);
    end if;
  else
    v_kinds := array_fill('a'::text, array[cardinality(p_ids)]);
    v_ok := array_fill(true, array[cardinality(p_ids)]);
  end if;
`

/** Guards by status and schedule, and items that are to be opened again. */
const ACTION_GUARDS = `  if p_actions is not null then
    perform from {schema}.ended_item f where f.id in (
        select g.id from json_to_recordset(p_actions->'guards') g(id text)
        union select r.id from json_to_recordset(p_actions->'redrive') r(id text)
        union select r.id from json_to_recordset(p_actions->'delete') r(id text))
      order by f.id for update;
    for v_action in
      select * from json_to_recordset(p_actions->'guards') g(s int, kind text, id text, statuses text[], name text, at bigint)
    loop
      if v_action.kind = 'status' then
        v_holds := exists (select from {schema}.item i where i.id = v_action.id
                            and case when i.state = 2 then 'running' else 'pending' end = any(v_action.statuses))
                or exists (select from {schema}.ended_item f where f.id = v_action.id and f.keep_until > v_now
                            and case when f.state = 5 then 'completed' else 'dead' end = any(v_action.statuses));
        -- It may end as the only member of its group, like one that is settled by its lease.
        v_kinds[v_action.s] := coalesce((select case when i.waiter is null then 'o' else 'w' end
                                         from {schema}.item i where i.id = v_action.id and i.is_single), 'a');
      else
        v_holds := (select h.next_at from {schema}.schedule h where h.name = v_action.name) is not distinct from v_action.at;
      end if;
      if not v_holds then
        v_kinds[v_action.s] := 's';
      end if;
    end loop;
    -- Nothing to run again: it is open already, or its input was not kept.
    for v_action in select r.s, r.id from json_to_recordset(p_actions->'redrive') r(s int, id text) loop
      if not exists (select from {schema}.ended_item f where f.id = v_action.id and f.keep_until > v_now and f.input is not null) then
        v_kinds[v_action.s] := 's';
      end if;
    end loop;
    select array_agg(k in ('a', 'o', 'w') order by s) into v_ok from unnest(v_kinds) with ordinality x(k, s);
  end if;
`

/** Step 1: `v_kinds` and `v_ok` say of each settlement whether its guard holds. */
export const GUARDS = `  -- 1. Stand still, and see whose guard holds ------------------------------------------------------------------------------
${LEASES}${ACTION_GUARDS}`
