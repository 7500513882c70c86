/** Guards by lease, and everything that has to stand still. An id that must be absent is looked for when it is pushed. */
const LEASES = `  if p_locks is not null then
    -- What a gate holds is locked with the rest, in its place in the order, because a gate that decides will write it.
    v_has_gates := exists (select from {schema}.gate);
    if v_has_gates then
      select v_locks || array_agg(g.holds) into v_locks
        from {schema}.gate g
       where g.key = any(p_looks || array(select m.gate from {schema}.gate_member m where m.member = any(p_locks)));
    end if;
    if p_gates is null then
      perform from {schema}.item i where i.id = any(v_locks) order by i.id for update;
    else
      select coalesce(array_agg(x.id), '{}') into v_still
        from (select i.id from {schema}.item i where i.id = any(v_locks) order by i.id for update) x;
    end if;
    -- What users' transactions have added to these groups counts from here on.
    if exists (select from {schema}.group_share) then
      perform {schema}.fold_shares(v_locks, v_now);
    end if;
    -- A statement of its own, which finds each row by its key: a join with the locked rows would compare all with all.
    select array_agg(g.kind order by g.s), array_agg(g.kind in ('a', 'o', 'w') order by g.s) into v_kinds, v_ok
      from (
        select g.s, case when g.token is null then 'a' when i.id is null then '?'
                         when i.token = g.token then
                           case when not i.is_alone then 'a' when i.waiter is null then 'o' else 'w' end
                         when i.settled_by = g.token then 'r' else 's' end as kind
          from unnest(p_ids, p_tokens) with ordinality g(id, token, s)
          left join {schema}.item i on i.id = g.id and g.token is not null
      ) g;
    if '?' = any(v_kinds) then
      -- Not among the unfinished: it has finished, perhaps while we waited for its lock.
      select array_agg(case when v_kinds[g.s] <> '?' then v_kinds[g.s] when f.settled_by = g.token then 'r' else 's' end
                       order by g.s)
        into v_kinds
        from unnest(p_ids, p_tokens) with ordinality g(id, token, s)
        left join {schema}.finished f on f.id = g.id and v_kinds[g.s] = '?' and f.gone_at > v_now;
    end if;
    if p_touched is not null then
      select array_agg(i.id) into v_joined from {schema}.item i where i.is_alone and i.id = any(p_touched);
    end if;
  else
    v_kinds := array_fill('a'::text, array[cardinality(p_ids)]);
    v_ok := array_fill(true, array[cardinality(p_ids)]);
  end if;
`

/** Guards by status and schedule, and items that are to be opened again. */
const PEOPLES_GUARDS = `  if p_rare is not null then
    perform from {schema}.finished f where f.id in (
        select g.id from json_to_recordset(p_rare->'guards') g(id text)
        union select r.id from json_to_recordset(p_rare->'reopen') r(id text)
        union select r.id from json_to_recordset(p_rare->'erase') r(id text))
      order by f.id for update;
    for v_rare in
      select * from json_to_recordset(p_rare->'guards') g(s int, kind text, id text, statuses text[], name text, at bigint)
    loop
      if v_rare.kind = 'status' then
        v_holds := exists (select from {schema}.item i where i.id = v_rare.id
                            and case when i.state = 2 then 'running' else 'pending' end = any(v_rare.statuses))
                or exists (select from {schema}.finished f where f.id = v_rare.id and f.gone_at > v_now
                            and case when f.state = 5 then 'success' else 'dead' end = any(v_rare.statuses));
        -- It may end alone in its group, like one that is settled by its lease.
        v_kinds[v_rare.s] := coalesce((select case when i.waiter is null then 'o' else 'w' end
                                         from {schema}.item i where i.id = v_rare.id and i.is_alone), 'a');
      else
        v_holds := (select h.next_at from {schema}.schedule h where h.name = v_rare.name) is not distinct from v_rare.at;
      end if;
      if not v_holds then
        v_kinds[v_rare.s] := 's';
      end if;
    end loop;
    -- Nothing to run again: it is open already, or its input was not kept.
    for v_rare in select r.s, r.id from json_to_recordset(p_rare->'reopen') r(s int, id text) loop
      if not exists (select from {schema}.finished f where f.id = v_rare.id and f.gone_at > v_now and f.input is not null) then
        v_kinds[v_rare.s] := 's';
      end if;
    end loop;
    select array_agg(k in ('a', 'o', 'w') order by s) into v_ok from unnest(v_kinds) with ordinality x(k, s);
  end if;
`

/** Step 1: `v_kinds` and `v_ok` say of each settlement whether its guard holds. */
export const GUARDS = `  -- 1. Stand still, and see whose guard holds ------------------------------------------------------------------------------
${LEASES}${PEOPLES_GUARDS}`
