import { ITEM_STATE } from '../query.js'
import { withNow } from '../read.js'

const time = (ms: string): string => `to_timestamp((${ms}) / 1000.0)`

/**
 * What the tables say, for people with a SQL client: names instead of numbers, words instead of codes, times as timestamps. Our programs
 * do not read it. A column that is not asked for costs nothing.
 */
export const JOB = withNow(
  `
create view {schema}.job as
select i.id, q.name as queue, h.type, ${ITEM_STATE} as state, i.priority, i.attempt, coalesce(i.group_id, i.id) as group_id,
       ${time('i.queue_at')} as queued_at, ${time('i.due_at')} as due_at, ${time('i.run_at')} as started_at, null::timestamptz as ended_at,
       i.worker, ${time('i.lease_until')} as leased_until, i.hold_by, i.hold_key, i.input, i.progress,
       null::text as ending, null::text as class, null::text as result, null::text as error, i.fingerprint
  from {schema}.item i join {schema}.queue_type h on h.no = i.queue_type join {schema}.queue q on q.no = h.queue
union all
select f.id, q.name, h.type, case f.state when 5 then 'completed' when 6 then 'dead' else 'cancelled' end, f.priority, f.attempt,
       coalesce(f.group_id, f.id), ${time('f.queue_at')}, null, ${time('f.run_at')}, ${time('f.end_at')}, f.worker, null, null, null, f.input,
       f.progress, f.ending, f.class, case when f.state = 5 then f.outcome end, case when f.state > 5 then f.outcome end, f.fingerprint
  from {schema}.ended_item f join {schema}.queue_type h on h.no = f.queue_type join {schema}.queue q on q.no = h.queue
 where f.keep_until > {now};
`,
  'null',
)
