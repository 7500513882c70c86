import { ENDS } from './commit/ends.js'
import { FIND_CONFLICTS } from './commit/find-conflicts.js'
import { FIRST_LOCKS } from './commit/first-locks.js'
import { GATES } from './commit/gates.js'
import { GROUPS } from './commit/groups.js'
import { GUARDS } from './commit/guards.js'
import { NEW_ITEMS } from './commit/new-items.js'
import { PEOPLE } from './commit/people.js'
import { TELLING } from './commit/telling.js'
import { WITHOUT_FINISHED } from './commit/without-finished.js'
import { WAITS_FOR_LOCKS } from './plan-settings.js'

/**
 * commit_batch: apply a batch of settlements, each whole or not at all, each behind its guard.
 *
 * One call is one statement for the client, and one transaction. Inside, it is a function of several statements, because a
 * single statement cannot be right: its parts share one snapshot, taken before it waits for a lock. A gate that is opened
 * while another connection ends a member would wait for the member's row, find it gone, and not see that it has
 * finished; an enqueue would not see that its id has finished in the meantime. Here every statement has a snapshot of its
 * own, taken after the locks of the one before it. Its steps are the files of the folder beside this one.
 *
 * Locks are taken in one order by every batch: schedules, the lock on resumes, items by id, finished items by id, new items by id,
 * groups by id, gates by key. So batches wait for each other but never in a circle. (Two are out of their place: what a gate holds, if
 * the gate came after we looked for it, and groups that a user's transaction has added to. If these ever meet in a circle,
 * the server undoes one batch and the driver sends it again.)
 *
 * Settlements are numbered from 1 (`s`). A guard that does not hold, or a conflict, takes its settlement out of `v_ok`, and
 * every later statement looks there. Everything is found by a primary key, or by gate_holds, gate_member_gate, group_share_group, item_aside.
 *
 * REPLY  a JSON text: kinds (one letter for each settlement: a applied, o applied to an item that was alone in its group,
 *        which the client then knows to be closed if the item has ended, w the same and somebody waits for it, r repeated,
 *        s stale, c conflict), closed ([s, group, value, watched]...), conflicts ([s, group, value, final, version]...)
 */
export const COMMIT = `
create function {schema}.commit_batch(
  p_now      bigint,   -- null: the server's time
  p_ids      text[],   -- the guards: a leased item with its token, or an id that must be absent (token null); null: others
  p_tokens   text[],
  p_absent   int,      -- how many of them want an id to be absent
  p_locks    text[],   -- items that this batch needs to stand still: leased, members of new gates, roots of touched groups
  p_touched  text[],   -- groups that are moved or contributed to
  p_roots    json,     -- pushes of the id that the guard wants absent
  p_children json,     -- other pushes
  p_ends     json,     -- finish, park, retryAt, release
  p_moves    json,     -- what each settlement adds to the open count of a group, and who wants to hear of its close
  p_said     json,     -- contributions, in the order of the batch
  p_expects  boolean,  -- whether any of them expects a version
  p_gates    json,     -- gates to open, with their members
  p_tells    json,     -- gates to tell, beyond those that know the member themselves
  p_looks    text[],   -- gates that hold an item that is pushed here
  p_tags     json,     -- tags of pushed items
  p_ready    json,     -- [queue, delay]: which queues this batch gives work to
  p_rare     json      -- what people do: guards by status and schedule, reopen, erase, cancel, pause, schedule, log, notify
) returns text
language plpgsql
${WAITS_FOR_LOCKS}
as {body}
declare
  v_now       bigint := {schema}.at(p_now);
  v_batch     bigint;
  v_kinds     text[];
  v_ok        boolean[];
  v_joined    text[];      -- touched groups whose root was alone until now
  v_locks     text[] := p_locks;
  v_new       text[] := '{}'; -- ids that this batch has pushed
  v_some      text[];
  v_awaited   boolean := false; -- some gate waits for a member
  v_watched   boolean := false; -- some inbox waits for an item
  v_still     text[] := '{}'; -- items that this batch has locked; only known where it opens gates
  v_has_gates boolean := false;
  v_offered   int;
  v_counted   int;
  v_extra     json;        -- moves that only came to light here
  v_gated     text[];      -- ended items that a gate may wait for, and how they ended
  v_gated_ok  boolean[];
  v_ended     text[];      -- ended or erased
  v_opened    text[];
  v_told      text[];
  v_company   boolean;     -- somebody who was thought to end alone has company
  v_conflicts json;
  v_closed    json;
  v_ready     json;
  v_wake      int[] := '{}'; -- queues that got work in a way that the client could not know
  v_told_ids    json;      -- [inbox, item]
  v_told_groups json;      -- [inbox, group]
  v_rare      record;
  v_holds     boolean;
begin
${FIRST_LOCKS}
${GUARDS}
${NEW_ITEMS}
${ENDS}${GROUPS}
${GATES}
${PEOPLE}
${TELLING}
  return json_build_object('kinds', array_to_string(v_kinds, ''), 'closed', v_closed, 'conflicts', v_conflicts)::text;
end {body};

${FIND_CONFLICTS}
${WITHOUT_FINISHED}`
