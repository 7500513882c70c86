/** Step 6: whoever serves a queue, or waits, hears of it. */
export const TELLING = `  -- 6. What is now known -----------------------------------------------------------------------------------------------------
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
  if v_ready is not null or v_told_ids is not null or v_told_groups is not null then
    perform {schema}.tell(v_ready, v_told_ids, v_told_groups);
  end if;
`
