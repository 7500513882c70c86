/** Step 0: locks that every batch takes before those on items. */
export const FIRST_LOCKS = `  -- 0. What has to come before the locks on items -------------------------------------------------------------------------
  if p_actions->'guards' is not null and exists (
       select from json_to_recordset(p_actions->'guards') g(kind text) where g.kind = 'schedule') then
    -- A schedule that does not exist has no row to lock. Fires are few.
    lock table {schema}.schedule in share row exclusive mode;
  end if;
  if p_actions->'pause' is not null and exists (
       select from json_to_recordset(p_actions->'pause') r(pause boolean) where not r.pause) then
    -- Claims that put items on hold have committed then, and those that come now put none on hold.
    perform pg_advisory_xact_lock(hashtextextended('{schema_text}', 2));
  end if;
`
