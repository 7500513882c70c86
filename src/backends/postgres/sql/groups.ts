import { BY_KEY } from './plan-settings.js'

/** The value of a group that an ended row `f` carries. */
export const GROUP_VALUE = `coalesce(f.group_value, case when f.group_version > 0 then f.outcome end)`

/** Whether a user's transaction has added to a group what no commit has counted yet. By group_share_group. */
export const isAddedTo = (id: string): string => `exists (select from {schema}.group_share s where s.group_id = ${id})`

/** Until when a group has to have been kept to be there at `now`: what a user's transaction has added to has been kept since. */
export const keptAt = (id: string, now: string): string =>
  `coalesce((select min(s.at) from {schema}.group_share s where s.group_id = ${id}), ${now})`

/** Gives the groups that live on these roots (an array of ids) their own rows, in which the roots count. */
export const rowsForRoots = (
  ids: string,
): string => `insert into {schema}.item_group (id, open, final, version, watchers)
      select i.id, 1, false, 0, case when i.waiter is not null then array[i.waiter] end
        from {schema}.item i where i.id = any(${ids}) order by i.id on conflict (id) do nothing`

export const FOLD_SHARES = `
-- fold_shares: what users' transactions have added to these groups is added to their rows. The items of that name are locked. By
-- group_share_group and primary keys.
--
-- A transaction of the user writes a share instead of the row of a group, which others would then wait for. The sum
-- is not needed before a commit moves the group, a reader asks for it (read_groups adds what is left here), or an inbox wants to be notified of its close.
create function {schema}.fold_shares(p_groups text[]) returns void language plpgsql
${BY_KEY}
as {body}
declare
  v_groups text[];
  v_items  text[];
  v_by     int[];
  v_watch  text[];
  v_at     bigint[];
  v_single  text[];
begin
  with taken as (
    delete from {schema}.group_share where no = any(array(
      select s.no from {schema}.group_share s where s.group_id = any(p_groups) order by s.no for update))
    returning group_id, item, by, watch, at
  )
  select array_agg(group_id), array_agg(item), array_agg(by), array_agg(watch), array_agg(at)
    into v_groups, v_items, v_by, v_watch, v_at from taken;
  if v_groups is null then
    return;
  end if;
  -- An id is in one of the two tables. The transaction that pushed it again could not remove the old row here.
  delete from {schema}.ended_item f where f.id = any(v_items) and exists (select from {schema}.item i where i.id = f.id);
  -- A group that was kept when a transaction added to it has been kept since, however late that is counted.
  delete from {schema}.item_group t where id = any(v_groups)
     and keep_until <= (select min(x.at) from unnest(v_groups, v_at) x(g, at) where x.g = t.id);
  select array_agg(i.id) into v_single from {schema}.item i where i.id = any(v_groups) and i.is_single;
  if v_single is not null then
    ${rowsForRoots('v_single')};
    update {schema}.item set is_single = false where id = any(v_single);
  end if;
  with ended as (
    update {schema}.ended_item f set is_single = false, group_value = null
     where f.is_single and f.id = any(v_groups)
       and f.keep_until > (select min(x.at) from unnest(v_groups, v_at) x(g, at) where x.g = f.id)
    returning f.id
  )
  insert into {schema}.item_group (id, open, value, final, version, keep_until)
    select f.id, 0, ${GROUP_VALUE}, f.group_final, f.group_version, f.keep_until from {schema}.ended_item f
     where f.id in (select id from ended) order by f.id on conflict (id) do nothing;
  insert into {schema}.item_group as t (id, open, final, version, watchers)
    select x.g, sum(x.by)::int, false, 0, array_agg(distinct x.watch) filter (where x.watch is not null)
      from unnest(v_groups, v_by, v_watch) x(g, by, watch) group by x.g having sum(x.by) > 0 order by x.g collate "C"
  on conflict (id) do update set
    open = t.open + excluded.open, keep_until = null,
    watchers = case when excluded.watchers is null then t.watchers else t.watchers || excluded.watchers end;
end {body};
`
