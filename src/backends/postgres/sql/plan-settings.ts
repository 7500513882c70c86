/**
 * How statements inside our functions are planned. A plan is made once and kept; made while a table is empty, or before anything has
 * counted its rows, it would read the table whole and still do so when the table is large. Every access is meant to go
 * through an index. To plan again at each call took 7 % of the processor time of a drain. Costs that are forbidden look huge, and must not call for just-in-time compilation.
 */
export const BY_KEY =
  'set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off'

/**
 * For functions that wait for locks while they hold others. Heartbeats pass over the rows that they hold, so this is how long a lease may go
 * without one, for each lock that is waited for. It is enough for other commits, and little even of a short lease; a user's
 * transaction may hold a row for as long as it likes. After this time the server gives up with 55P03, and the client waits without
 * holding anything. A deadlock ends the same way, because the server looks for one only after `deadlock_timeout` (1 s).
 */
export const WAITS_FOR_LOCKS = `${BY_KEY} set lock_timeout = '250ms'`

/**
 * The same for functions that take the first so many in the order of an index. Where the planner expects few rows it would rather
 * collect them all and sort them: 150,000 items that nothing has counted yet, for each claim. Not for functions that lock rows by a list
 * of keys and in order: to save that sort the planner would walk the whole index.
 */
export const IN_ORDER = `${BY_KEY} set enable_bitmapscan = off set enable_sort = off`
