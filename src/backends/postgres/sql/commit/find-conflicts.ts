import { BY_KEY } from '../plan-settings.js'

export const FIND_CONFLICTS = `-- find_conflicts: which settlements expect a version that their group does not have at their turn, earlier settlements of
-- the batch included. Locks the groups. Reply as in commit_batch, or null. Only appends come here.
create function {schema}.find_conflicts(p_ok boolean[], p_single text[], p_values json) returns json
language plpgsql
${BY_KEY}
as {body}
declare
  v_found  jsonb := '[]';
  v_groups jsonb;
  v_turn   record;
  v_lost   int := 0;
begin
  -- A group without a row has nothing to lock, unless it lives on its root, which stands still already.
  insert into {schema}.item_group (id, open, final, version)
    select distinct c.g collate "C", 0, false, 0 from json_to_recordset(p_values) c(s int, g text, expect int)
     where c.expect is not null and p_ok[c.s] and c.g <> all(coalesce(p_single, '{}'))
     order by 1
  on conflict (id) do nothing;
  perform from {schema}.item_group g
    where g.id in (select c.g from json_to_recordset(p_values) c(g text)) order by g.id for update;
  select coalesce(jsonb_object_agg(g.id, jsonb_build_object('value', g.value, 'final', g.final, 'version', g.version)), '{}')
    into v_groups
    from {schema}.item_group g where g.id in (select c.g from json_to_recordset(p_values) c(g text));
  -- Of one settlement, expectations come before what it says.
  for v_turn in
    select c.s, 0 as step, c.g, c.value, c.final, c.expect, c.n
      from json_to_recordset(p_values) c(s int, n int, g text, value text, final boolean, expect int)
     where p_ok[c.s] and c.expect is not null
    union all
    select c.s, 1, c.g, c.value, c.final, null, c.n
      from json_to_recordset(p_values) c(s int, n int, g text, value text, final boolean, expect int)
     where p_ok[c.s]
     order by 1, 2, 7
  loop
    continue when v_turn.s = v_lost;
    if v_turn.step = 0 then
      if coalesce((v_groups->v_turn.g->>'version')::int, 0) <> v_turn.expect then
        v_lost := v_turn.s;
        v_found := v_found || jsonb_build_array(jsonb_build_array(v_turn.s, v_turn.g, v_groups->v_turn.g->'value',
          coalesce(v_groups->v_turn.g->'final', 'false'), coalesce(v_groups->v_turn.g->'version', '0')));
      end if;
    elsif not coalesce((v_groups->v_turn.g->>'final')::boolean, false) then
      v_groups := v_groups || jsonb_build_object(v_turn.g, jsonb_build_object('value', v_turn.value, 'final', v_turn.final,
        'version', coalesce((v_groups->v_turn.g->>'version')::int, 0) + 1));
    end if;
  end loop;
  return case when v_found = '[]' then null else v_found::json end;
end {body};
`
