/** Step 3, second half: the counts and values of groups, summed over the batch, and which of them closed. */
export const GROUPS = `  if p_touched is not null or v_extra is not null or v_company then
    with e as (
      -- Sent as the ends of single roots, but their groups have other members: they count in the group's row like others.
      select * from json_to_recordset(case when v_company then p_ends end) as x(s int, id text, ms bigint, single boolean,
               value text, final boolean, version int)
       where v_kinds[x.s] = 'a' and x.single
    ), moved as (
      select m.g, sum(m.by)::int as by, max(m.s) as s, (array_agg(m.keep order by m.s desc))[1] as keep,
             array_agg(distinct m.watch) filter (where m.watch is not null) as watchers from (
        select s, g, by, keep, watch
          from json_to_recordset(p_moves) x(s int, g text, by int, keep bigint, watch text) where v_ok[x.s]
        union all select s, g, by, 86400000, watch from json_to_recordset(v_extra) x(s int, g text, by int, watch text)
        union all select e.s, e.id, -1, e.ms, null from e
      ) m group by m.g
    ), contributed as (
      -- The first final value wins, otherwise the last one.
      select c.g, count(*) filter (where c.stop is null or c.n <= c.stop)::int as version, bool_or(c.final) as final,
             (array_agg(c.value order by c.final desc, case when c.final then c.n else -c.n end))[1] as value
        from (
          select x.*, min(x.n) filter (where x.final) over (partition by x.g) as stop
            from (
              select s, n, g, value, final
                from json_to_recordset(p_values) y(s int, n int, g text, value text, final boolean) where v_ok[y.s]
              union all select e.s, e.s, e.id, e.value, e.final from e where e.version > 0
            ) x
        ) c group by c.g
    ), put as (
      insert into {schema}.item_group as t (id, open, value, final, version, keep_until, watchers)
      select g, coalesce(m.by, 0), c.value, coalesce(c.final, false), coalesce(c.version, 0),
             case when coalesce(m.by, 0) <= 0 then v_now + m.keep end, m.watchers
        from moved m full join contributed c using (g)
       order by g collate "C"
      on conflict (id) do update set
        open = t.open + excluded.open,
        value = case when t.final then t.value else coalesce(excluded.value, t.value) end,
        version = t.version + case when t.final then 0 else excluded.version end,
        final = t.final or excluded.final,
        keep_until = case when t.open + excluded.open <= 0 then coalesce(excluded.keep_until, t.keep_until, v_now + 86400000) end,
        watchers = case when excluded.watchers is null then t.watchers else t.watchers || excluded.watchers end
      returning id, open, value, watchers
    ), closed as materialized (
      select m.s, p.id, p.value, p.watchers
        from put p join moved m on m.g = p.id where p.open <= 0 and p.open - m.by > 0
    )
    select json_agg(json_build_array(c.s, c.id, c.value, c.watchers is not null)),
           array_agg(c.id) filter (where c.watchers is not null),
           coalesce((select json_agg(json_build_array(x.inbox, h.id)) from closed h
             cross join lateral (select distinct u.inbox from unnest(h.watchers) u(inbox)) x), v_notify_groups)
      into v_closed, v_some, v_ready
      from closed c;
    if v_some is not null then
      update {schema}.item_group set watchers = null where id = any(v_some);
      -- Those of single roots, and these.
      v_notify_groups := case when v_notify_groups is null then v_ready
                            else (select json_agg(x.value) from (select value from json_array_elements(v_notify_groups)
                                  union all select value from json_array_elements(v_ready)) x) end;
    end if;
  end if;
`
