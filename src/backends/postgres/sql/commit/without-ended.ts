export const WITHOUT_ENDED = `-- without_ended: of the ids that were just inserted into item, those that have not finished before; the others are taken
-- out again. With a snapshot taken after the insert: a commit that finished such an id before us has done so by now, or never will,
-- because the id is ours. Before the insert that could not be known.
create function {schema}.without_ended(p_new text[], p_now bigint) returns text[]
language plpgsql
as {body}
declare
  v_there   text[];
  v_expired text[];
begin
  select array_agg(f.id) filter (where f.keep_until > p_now), array_agg(f.id) filter (where f.keep_until <= p_now)
    into v_there, v_expired
    from {schema}.ended_item f where f.id = any(p_new);
  if v_expired is not null then
    delete from {schema}.ended_item where id = any(v_expired);
    -- Theirs; those of the new items are written later.
    delete from {schema}.item_tag where id = any(v_expired);
  end if;
  if v_there is null then
    return p_new;
  end if;
  delete from {schema}.item where id = any(v_there);
  return array(select x from unnest(p_new) x where x <> all(v_there));
end {body};
`
