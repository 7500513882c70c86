/** Step 6: notifies the workers that serve a queue, and the inboxes that wait. */
export const NOTIFICATIONS = `  -- 6. What is now known -----------------------------------------------------------------------------------------------------
  v_ready := null;
  if p_ready is not null and true = any(v_ok) then
    select json_agg(json_build_array(r.value->0, v_now + (r.value->>1)::bigint)) into v_ready
      from json_array_elements(p_ready) r;
  end if;
  if cardinality(v_wake) > 0 then
    select json_agg(x.value) into v_ready from (
      select value from json_array_elements(v_ready)
      union all select json_build_array(q.name, null) from {schema}.queue q where q.no = any(v_wake)) x;
  end if;
  if v_ready is not null or v_notify_items is not null or v_notify_groups is not null then
    perform {schema}.send_notifications(v_ready, v_notify_items, v_notify_groups);
  end if;
`
