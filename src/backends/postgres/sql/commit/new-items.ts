/** What is sent of a push. */
export const PUSHED_ROW = `p(s int, n int, id text, queue int, queue_type int, group_id text, priority float8,
                 attempt int, queue_at float8, start_at float8, input text, envelope_rest text, delay bigint, hold_by text,
                 hold_key text, single boolean, waiter text, token text, worker text, lease bigint,
                 deadline float8)`

/** From rows `p` as above. */
export const INSERT_PUSHED = `        insert into {schema}.item (id, seq, queue, queue_type, priority, attempt, state, is_single, fence, deliveries,
                                   queue_at, start_at, due_at, lease_until, run_at, input, group_id, envelope_rest, token, worker,
                                   waiter, hold_by, hold_key, deadline)
        select p.id, (v_batch << 20) + p.n, p.queue, p.queue_type, p.priority, p.attempt,
               case when p.token is not null then 2 when p.delay <= 0 then 0 else 1 end,
               p.single and not exists (select from {schema}.item_group g
                                where g.id = p.id and (g.keep_until is null or g.keep_until > v_now)),
               (p.token is not null)::int, (p.token is not null)::int, p.queue_at, p.start_at, v_now + p.delay,
               v_now + p.lease, case when p.token is not null then v_now end, p.input, p.group_id, p.envelope_rest, p.token, p.worker,
               p.waiter, case when p.delay <= 0 then null else p.hold_by end, case when p.delay <= 0 then null else p.hold_key end,
               p.deadline
`

/** The items that their guards want to be absent. */
const ROOTS = `    if p_roots is not null then
      -- The insert itself is the guard: of all who try at the same time, one succeeds.
      with pushed as (
${INSERT_PUSHED}          from json_to_recordset(p_roots) as ${PUSHED_ROW}
         where v_ok[p.s]
         order by p.id collate "C"
        on conflict (id) do nothing
        returning id, group_id, is_single
      )
      select coalesce(array_agg(id), '{}'), array_agg(id) filter (where group_id is null and not is_single)
        into v_new, v_some from pushed;
      v_new := {schema}.without_ended(v_new, v_now);
      if v_some is not null then
        -- It came as a single root, but its group is there: it counts in the group's row.
        select json_agg(json_build_object('s', p.s, 'g', p.id, 'by', 1, 'watch', p.waiter)) into v_extra
          from json_to_recordset(p_roots) as p(s int, id text, single boolean, waiter text)
         where p.single and p.id = any(v_some) and p.id = any(v_new);
      end if;
    end if;
`

const THERE_ALREADY = `    -- An id that must be absent, and that this batch did not just bring, is there already.
    if cardinality(v_new) < p_absent then
      select array_agg(case when v_kinds[g.s] = 'a' and g.token is null and g.id <> all(v_new) and (
                              exists (select from {schema}.item i where i.id = g.id) or
                              exists (select from {schema}.ended_item f where f.id = g.id and f.keep_until > v_now))
                            then 'r' else v_kinds[g.s] end order by g.s)
        into v_kinds
        from unnest(p_ids, p_tokens) with ordinality g(id, token, s);
      select array_agg(k in ('a', 'o', 'w') order by s) into v_ok from unnest(v_kinds) with ordinality x(k, s);
    end if;
`

/** All other pushes: those that a run makes, and what comes with a root. */
const CHILDREN = `    if p_children is not null then
      with offered as materialized (
        select p.* from json_to_recordset(p_children) as ${PUSHED_ROW}
         where v_ok[p.s]
      ), pushed as (
${INSERT_PUSHED}          -- Of one id in two settlements, the first brings it.
          from (select distinct on (o.id collate "C") o.* from offered o order by o.id collate "C", o.n) p
         order by p.id collate "C"
        on conflict (id) do nothing
        returning id, group_id, is_single
      )
      select coalesce(array_agg(id), '{}'), (select count(*) from offered),
             count(*) filter (where group_id is null and not is_single)
        into v_some, v_offered, v_counted from pushed;
      v_some := {schema}.without_ended(v_some, v_now);
      if cardinality(v_some) < v_offered or v_counted > 0 then
        -- A child that is there already must not be counted again, or its group would wait for it forever. And what came as a
        -- single root counts in the row of its group, if there is one.
        select json_agg(json_build_object('s', x.s, 'g', x.g, 'by', x.by, 'watch', x.watch)) into v_extra
          from (
            select p.s, coalesce(p.group_id, p.id) as g, case when i.id is null then -1 else 1 end as by,
                   case when i.id is not null then p.waiter end as watch
              from json_to_recordset(p_children) as p(s int, n int, id text, group_id text, counted boolean, single boolean,
                     waiter text)
              left join {schema}.item i on i.id = p.id and i.seq = (v_batch << 20) + p.n
             where v_ok[p.s] and case when i.id is null then p.counted and not p.single else p.single and not i.is_single end
            union all
            select x.s, x.g, x.by, x.watch from json_to_recordset(v_extra) x(s int, g text, by int, watch text)
          ) x;
      end if;
      v_new := v_new || v_some;
    end if;
`

const EXPIRED_GROUPS = `    -- A group that has been kept long enough is gone, whether or not a sweep has removed it: effects on it apply to a new one.
    if (p_touched is not null or cardinality(v_new) > 0)
       and exists (select from {schema}.item_group g where g.keep_until <= v_now) then
      delete from {schema}.item_group where id = any(array(
        select g.id from {schema}.item_group g where g.id = any(v_new || p_touched) and g.keep_until <= v_now
         order by g.id for update));
    end if;
`

/** Leaves the loop unless some settlement lost the version that it folded on. */
const CONFLICTS = `    exit when not p_expects;
    p_expects := false;
    v_conflicts := {schema}.find_conflicts(v_ok, v_joined, p_values);
    exit when v_conflicts is null;
    -- Nothing of a settlement in conflict happens: its pushes go, and the others push again what it had brought for them.
    delete from {schema}.item where id = any(v_new);
    select array_agg(case when g.s in (select (c->>0)::int from json_array_elements(v_conflicts) c) then 'c'
                          else v_kinds[g.s] end order by g.s)
      into v_kinds
      from unnest(p_ids, p_tokens) with ordinality g(id, token, s);
    select array_agg(k in ('a', 'o', 'w') order by s) into v_ok from unnest(v_kinds) with ordinality x(k, s);
`

const TAGS = `  if p_tags is not null then
    insert into {schema}.item_tag (id, tag, seq)
      select t.id, t.tag, (v_batch << 20) + t.n from json_to_recordset(p_tags) t(s int, n int, id text, tag text)
       where v_ok[t.s] and t.id = any(v_new)
    on conflict do nothing;
  end if;
`

/** Step 2: `v_new` has what this batch pushed, and nothing of a settlement in conflict remains. */
export const NEW_ITEMS = `  -- 2. New items -----------------------------------------------------------------------------------------------------------
  -- Before groups are locked: an insert may have to wait for another batch, which may be waiting for a group.
  -- The loop goes round again only after a conflict, when the pushes of the others must be separated from those of the loser.
  v_batch := nextval('{schema_text}.arrival');
  loop
    v_new := '{}';
    v_extra := null;
${ROOTS}${THERE_ALREADY}${CHILDREN}
${EXPIRED_GROUPS}
${CONFLICTS}  end loop;
${TAGS}`
