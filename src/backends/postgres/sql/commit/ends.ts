import { GROUP_VALUE, rowsForRoots } from '../groups.js'

/** Groups that existed only in the row of their root get their own rows, if this batch touches them. */
const COMPANY = `  if v_joined is not null then
    -- A single root gets company: its group gets its own row, in which the root counts.
    ${rowsForRoots('v_joined')};
  end if;
  if p_touched is not null and exists (
       select from {schema}.ended_item f where f.is_single and f.id = any(p_touched) and f.keep_until > v_now) then
    -- The same for a single root that has ended.
    with ended as (
      update {schema}.ended_item f set is_single = false, group_value = null
       where f.is_single and f.id = any(p_touched) and f.keep_until > v_now
         and f.id in (select m.g from json_to_recordset(p_moves) m(s int, g text) where v_ok[m.s]
                     union select c.g from json_to_recordset(p_values) c(s int, g text) where v_ok[c.s])
      returning f.id
    )
    insert into {schema}.item_group (id, open, value, final, version, keep_until)
      select f.id, 0, ${GROUP_VALUE}, f.group_final, f.group_version, f.keep_until from {schema}.ended_item f
       where f.id in (select id from ended) order by f.id on conflict (id) do nothing;
  end if;
`

/** Completes, dead-letters, retries and releases: each by one statement for all of the batch. */
const MOVE_ITEMS = `  if p_ends is not null then
    -- Read now that what ends is locked: a gate whose opening we waited for, or that a check has passed, is seen.
    v_awaited := exists (select from {schema}.gate_member);
    v_watched := exists (select from {schema}.item_watcher);
    with e as materialized (
      select * from json_to_recordset(p_ends) as x(s int, n int, kind text, id text, ending text, class text, outcome text,
               ms bigint, attempt int, single boolean, value text, final boolean, version int, was text, fp text,
               started bigint, hold_by text, hold_key text)
       where v_ok[x.s]
    ), ended as (
      delete from {schema}.item i using e where i.id = e.id and e.kind in ('complete', 'deadLetter')
      returning i.*, e.s, e.n, e.kind, e.ending, e.class, e.outcome, e.ms, e.single, e.single and i.is_single as ends_single,
                e.value, e.final, e.version, e.was, e.fp, e.started
    ), kept as (
      insert into {schema}.ended_item (id, seq, queue_type, state, priority, attempt, fence, lapses, crashes, queue_at, start_at, run_at,
               end_at, keep_until, is_single, group_final, group_version, group_value, group_id, input, envelope_rest, settled_token, ending,
               class, outcome, progress, fingerprint, attempts)
      select g.id, (v_batch << 20) + g.n, g.queue_type,
             case when g.kind = 'complete' then 5 when g.ending = 'cancelled' then 7 else 6 end,
             g.priority, g.attempt, g.fence, g.lapses, g.crashes, g.queue_at, g.start_at, coalesce(g.run_at, g.started),
             v_now, v_now + g.ms, g.ends_single, g.ends_single and g.final,
             case when g.ends_single then g.version else 0 end, case when g.ends_single then g.value end, g.group_id,
             case when g.kind = 'deadLetter' then g.input end, g.envelope_rest,
             -- Only who settles by the lease is known again by its token.
             case when p_tokens[g.s] = g.token then g.token else g.settled_token end,
             g.ending, g.class, g.outcome, g.progress, case when g.was is null then coalesce(g.fp, g.fingerprint) else g.fp end,
             case when g.attempts is null or g.was is null then coalesce(g.was, g.attempts) else {schema}.with_attempt(g.attempts, g.was) end
        from ended g
    ), again as (
      update {schema}.item i
         set due_at = case when e.kind = 'release' and e.ms is null then i.due_at else v_now + e.ms end,
             state = case when e.kind = 'release' and e.ms is null then
                            case when i.due_at is null or i.due_at > v_now then 1 else 0 end
                          when e.ms > 0 then 1 else 0 end,
             hold_by = case when coalesce(v_now + e.ms, i.due_at, v_now + 1) > v_now then e.hold_by end,
             hold_key = case when coalesce(v_now + e.ms, i.due_at, v_now + 1) > v_now then e.hold_key end,
             attempt = coalesce(e.attempt, i.attempt),
             start_at = case when e.kind = 'retry' then v_now + e.ms else i.start_at end,
             deliveries = case when e.kind = 'retry' then 0 else i.deliveries end,
             settled_token = case when p_tokens[e.s] = i.token then i.token else i.settled_token end,
             token = null, lease_until = null, worker = null, run_at = null, running = false,
             fingerprint = case when e.was is null then i.fingerprint else e.fp end,
             attempts = case when i.attempts is null or e.was is null then coalesce(e.was, i.attempts)
                            else {schema}.with_attempt(i.attempts, e.was) end
        from e where i.id = e.id and e.kind in ('retry', 'release')
      returning i.queue, e.kind, p_tokens[e.s] as token
    ), noted as (
      update {schema}.item i
         set fingerprint = e.fp, run_at = coalesce(i.run_at, e.started),
             attempts = case when i.attempts is null then e.was else {schema}.with_attempt(i.attempts, e.was) end
        from e where i.id = e.id and e.kind = 'record'
    )
    select bool_or(g.single and not g.ends_single), array_agg(g.id) filter (where v_awaited),
           array_agg(g.kind = 'complete') filter (where v_awaited), array_agg(g.id) filter (where v_has_gates or v_watched),
           (select array_agg(a.queue) from again a where a.token is null),
           json_agg(json_build_array(g.waiter, g.id)) filter (where g.waiter is not null),
           json_agg(json_build_array(g.waiter, g.id)) filter (where g.waiter is not null and g.ends_single)
      into v_company, v_gated, v_gated_ok, v_ended, v_wake, v_notify_items, v_notify_groups
      from ended g;
    if v_watched then
      with watched as (
        delete from {schema}.item_watcher w where w.item = any(v_ended) returning w.inbox, w.item
      )
      select json_agg(x.value) into v_notify_items from (
        select value from json_array_elements(v_notify_items)
        union all select json_build_array(w.inbox, w.item) from watched w) x;
    end if;
  end if;
`

/** Step 3, first half: what becomes of items. */
export const ENDS = `  -- 3. Groups, and the ends of items ---------------------------------------------------------------------------------------
${COMPANY}${MOVE_ITEMS}  if v_joined is not null then
    -- Those that have not just ended.
    update {schema}.item set is_single = false where id = any(v_joined);
  end if;
`
