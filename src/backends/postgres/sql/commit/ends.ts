import { rowsForRoots } from '../groups.js'

/** Groups that lived on their root alone get rows of their own, if this batch speaks of them. */
const COMPANY = `  if v_joined is not null then
    -- A root that was alone gets company: its group gets a row of its own, in which the root counts.
    ${rowsForRoots('v_joined')};
  end if;
  if p_touched is not null and exists (
       select from {schema}.finished f where f.is_alone and f.id = any(p_touched) and f.gone_at > v_now) then
    -- The same for a root that had ended alone.
    with ended as (
      update {schema}.finished f set is_alone = false, group_value = null
       where f.is_alone and f.id = any(p_touched) and f.gone_at > v_now
         and f.id in (select m.g from json_to_recordset(p_moves) m(s int, g text) where v_ok[m.s]
                     union select c.g from json_to_recordset(p_said) c(s int, g text) where v_ok[c.s])
      returning f.id
    )
    insert into {schema}.item_group (id, open, value, final, version, gone_at)
      select f.id, 0, f.group_value, f.group_final, f.group_version, f.gone_at from {schema}.finished f
       where f.id in (select id from ended) order by f.id on conflict (id) do nothing;
  end if;
`

/** Finish, park, retry, put back: each by one statement for all of the batch. */
const MOVE_ITEMS = `  if p_ends is not null then
    -- Looked at now that what ends stands still: a gate whose opening we waited for, or that a look has passed, is seen.
    v_awaited := exists (select from {schema}.gate_member);
    v_watched := exists (select from {schema}.item_watcher);
    with e as materialized (
      select * from json_to_recordset(p_ends) as x(s int, n int, kind text, id text, ending text, class text, outcome text,
               ms bigint, attempt int, alone boolean, value text, final boolean, version int, was text, fp text,
               started bigint, hold_by text, hold_key text)
       where v_ok[x.s]
    ), gone as (
      delete from {schema}.item i using e where i.id = e.id and e.kind in ('finish', 'park')
      returning i.*, e.s, e.n, e.kind, e.ending, e.class, e.outcome, e.ms, e.alone, e.alone and i.is_alone as ends_alone,
                e.value, e.final, e.version, e.was, e.fp, e.started
    ), kept as (
      insert into {schema}.finished (id, seq, home, state, priority, attempt, fence, lapses, crashes, queue_at, start_at, run_at,
               end_at, gone_at, is_alone, group_final, group_version, group_value, group_id, input, rest, settled_by, ending,
               class, outcome, progress, fingerprint, history)
      select g.id, (v_batch << 20) + g.n, g.home,
             case when g.kind = 'finish' then 5 when g.ending = 'cancelled' then 7 else 6 end,
             g.priority, g.attempt, g.fence, g.lapses, g.crashes, g.queue_at, g.start_at, coalesce(g.run_at, g.started),
             v_now, v_now + g.ms, g.ends_alone, g.ends_alone and g.final,
             case when g.ends_alone then g.version else 0 end, case when g.ends_alone then g.value end, g.group_id,
             case when g.kind = 'park' then g.input end, g.rest,
             -- Only who settles by the lease is known again by its token.
             case when p_tokens[g.s] = g.token then g.token else g.settled_by end,
             g.ending, g.class, g.outcome, g.progress, case when g.was is null then coalesce(g.fp, g.fingerprint) else g.fp end,
             case when g.history is null or g.was is null then coalesce(g.was, g.history) else {schema}.with_attempt(g.history, g.was) end
        from gone g
    ), again as (
      update {schema}.item i
         set due_at = case when e.kind = 'release' and e.ms is null then i.due_at else v_now + e.ms end,
             state = case when e.kind = 'release' and e.ms is null then
                            case when i.due_at is null or i.due_at > v_now then 1 else 0 end
                          when e.ms > 0 then 1 else 0 end,
             hold_by = case when coalesce(v_now + e.ms, i.due_at, v_now + 1) > v_now then e.hold_by end,
             hold_key = case when coalesce(v_now + e.ms, i.due_at, v_now + 1) > v_now then e.hold_key end,
             attempt = coalesce(e.attempt, i.attempt),
             start_at = case when e.kind = 'retryAt' then v_now + e.ms else i.start_at end,
             deliveries = case when e.kind = 'retryAt' then 0 else i.deliveries end,
             settled_by = case when p_tokens[e.s] = i.token then i.token else i.settled_by end,
             token = null, lease_until = null, worker = null, run_at = null, running = false,
             fingerprint = case when e.was is null then i.fingerprint else e.fp end,
             history = case when i.history is null or e.was is null then coalesce(e.was, i.history)
                            else {schema}.with_attempt(i.history, e.was) end
        from e where i.id = e.id and e.kind in ('retryAt', 'release')
      returning i.queue, e.kind, p_tokens[e.s] as token
    ), noted as (
      update {schema}.item i
         set fingerprint = e.fp, run_at = coalesce(i.run_at, e.started),
             history = case when i.history is null then e.was else {schema}.with_attempt(i.history, e.was) end
        from e where i.id = e.id and e.kind = 'record'
    )
    select bool_or(g.alone and not g.ends_alone), array_agg(g.id) filter (where v_awaited),
           array_agg(g.kind = 'finish') filter (where v_awaited), array_agg(g.id) filter (where v_has_gates or v_watched),
           (select array_agg(a.queue) from again a where a.token is null),
           json_agg(json_build_array(g.waiter, g.id)) filter (where g.waiter is not null),
           json_agg(json_build_array(g.waiter, g.id)) filter (where g.waiter is not null and g.ends_alone)
      into v_company, v_gated, v_gated_ok, v_ended, v_wake, v_told_ids, v_told_groups
      from gone g;
    if v_watched then
      with watched as (
        delete from {schema}.item_watcher w where w.item = any(v_ended) returning w.inbox, w.item
      )
      select json_agg(x.value) into v_told_ids from (
        select value from json_array_elements(v_told_ids)
        union all select json_build_array(w.inbox, w.item) from watched w) x;
    end if;
  end if;
`

/** Step 3, first half: what becomes of items. */
export const ENDS = `  -- 3. Groups, and the ends of items ---------------------------------------------------------------------------------------
${COMPANY}${MOVE_ITEMS}  if v_joined is not null then
    -- Those that have not just ended.
    update {schema}.item set is_alone = false where id = any(v_joined);
  end if;
`
