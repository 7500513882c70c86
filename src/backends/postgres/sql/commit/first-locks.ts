/** Step 0: locks that every batch takes before those on items. */
export const FIRST_LOCKS = `  -- 0. What has to come before the locks on items -------------------------------------------------------------------------
  if p_rare->'guards' is not null and exists (
       select from json_to_recordset(p_rare->'guards') g(kind text) where g.kind = 'fire') then
    -- A schedule that does not exist has no row to lock. Fires are few.
    lock table {schema}.schedule in share row exclusive mode;
  end if;
  if p_rare->'pause' is not null and exists (
       select from json_to_recordset(p_rare->'pause') r(pause boolean) where not r.pause) then
    -- Claims that set items aside have committed then, and those that come now set none aside.
    perform pg_advisory_xact_lock(hashtextextended('{schema_text}', 2));
  end if;
  -- A member that does not exist has no row to lock. So whoever opens such a gate keeps all pushes out until it has committed,
  -- and pushes, which do not hinder each other, look for gates that wait for them. Otherwise a member could be pushed, run
  -- and finished while its gate is being opened, and neither would see the other.
  if p_strangers is not null and exists (
    select from unnest(p_strangers) m(id)
     where not exists (select from {schema}.item i where i.id = m.id)
       and not exists (select from {schema}.finished f where f.id = m.id)) then
    perform pg_advisory_xact_lock(hashtextextended('{schema_text}', 1));
  elsif p_roots is not null or p_children is not null then
    perform pg_advisory_xact_lock_shared(hashtextextended('{schema_text}', 1));
    v_awaited := exists (select from {schema}.gate_member);
  end if;
`
