import { BY_KEY, WAITS_FOR_LOCKS } from '../plan-settings.js'

export const HELD_ROWS = `-- held_rows: which of these items a commit would have to wait for at this moment, and for which row of item each: its own, or that
-- of what a gate holds that waits for it. Takes what it can get and lets it go when it ends; waits for nothing. By primary keys.
create function {schema}.held_rows(p_ids text[]) returns table (asked text, held text) language plpgsql
${BY_KEY}
as {body}
begin
  return query
    with needed as materialized (
      select a.id as by, a.id from unnest(p_ids) a(id)
      union all
      select m.member, g.held_id from {schema}.gate_member m join {schema}.gate g on g.key = m.gate where m.member = any(p_ids)
    ), free as materialized (
      select i.id from {schema}.item i where i.id = any(array(select n.id from needed n)) for update skip locked
    )
    select n.by, n.id from needed n join {schema}.item i on i.id = n.id where n.id not in (select f.id from free f);
end {body};

-- when_free: waits until no other transaction holds the row of an item, or for a moment (55P03). By the primary key.
create function {schema}.when_free(p_id text) returns void language plpgsql
${WAITS_FOR_LOCKS}
as {body}
begin
  perform from {schema}.item i where i.id = p_id for update;
end {body};
`
