import { ENDED_VIEW, ITEM_VIEW, withNow } from '../read.js'
import { GROUP_VALUE, keptAt } from './groups.js'
import { BY_KEY } from './plan-settings.js'

/**
 * What waiters read. Functions, so that they can forbid to read tables whole: a plan made while those are empty would still do
 * so when they are large.
 */
export const READ = `
-- read_items: by the primary keys of item and ended_item. One JSON text each.
create function {schema}.read_items(p_ids text[], p_now bigint) returns setof text language sql stable
${BY_KEY}
as {body}
  ${withNow(
    `select row_to_json(x)::text from (
     select ${ITEM_VIEW} from {schema}.item i join {schema}.queue_type h on h.no = i.queue_type join {schema}.queue q on q.no = h.queue
      where i.id = any(p_ids)
     union all
     select ${ENDED_VIEW} from {schema}.ended_item f join {schema}.queue_type h on h.no = f.queue_type
       join {schema}.queue q on q.no = h.queue where f.id = any(p_ids) and f.keep_until > {now}
   ) x`,
    'p_now',
  )}
{body};

-- read_groups: by primary keys and group_share_group. A root that is the only member is the group. What users' transactions have added,
-- and no commit has counted yet, counts.
create function {schema}.read_groups(p_ids text[], p_now bigint)
returns table (id text, open int, value text, final boolean, version int) language sql stable
${BY_KEY}
as {body}
  ${withNow(
    `with known as materialized (
     select g.id, g.open, g.value, g.final, g.version from {schema}.item_group g
      where g.id = any(p_ids) and (g.keep_until is null or g.keep_until > ${keptAt('g.id', '{now}')})
     union all select i.id, 1, null, false, 0 from {schema}.item i where i.is_single and i.id = any(p_ids)
     union all select f.id, 0, ${GROUP_VALUE}, f.group_final, f.group_version from {schema}.ended_item f
      where f.is_single and f.id = any(p_ids) and f.keep_until > ${keptAt('f.id', '{now}')}
   ), added as materialized (
     select s.group_id, sum(s.by)::int as by from {schema}.group_share s where s.group_id = any(p_ids)
      group by s.group_id having sum(s.by) > 0
   )
   select coalesce(k.id, a.group_id), coalesce(k.open, 0) + coalesce(a.by, 0), k.value, coalesce(k.final, false),
          coalesce(k.version, 0)
     from known k full join added a on a.group_id = k.id`,
    'p_now',
  )}
{body};
`
