import { ACTIONS } from './commit/actions.js'
import { ENDS } from './commit/ends.js'
import { FIND_CONFLICTS } from './commit/find-conflicts.js'
import { FIRST_LOCKS } from './commit/first-locks.js'
import { GATES } from './commit/gates.js'
import { GROUPS } from './commit/groups.js'
import { GUARDS } from './commit/guards.js'
import { HELD_ROWS } from './commit/held-rows.js'
import { NEW_ITEMS } from './commit/new-items.js'
import { NOTIFICATIONS } from './commit/notifications.js'
import { WITHOUT_ENDED } from './commit/without-ended.js'
import { WAITS_FOR_LOCKS } from './plan-settings.js'

/**
 * commit_batch: apply a batch of settlements, each whole or not at all, each behind its guard.
 *
 * One call is one statement for the client, and one transaction. Inside, it is a function of several statements, because a
 * single statement cannot be right: its parts share one snapshot, taken before it waits for a lock. A gate that is opened
 * while another connection ends a member would wait for the member's row, find it gone, and not see that it has
 * finished; an enqueue would not see that its id has finished in the meantime. Here every statement has its own
 * snapshot, taken after the locks of the one before it. Its steps are the files of the folder beside this one.
 *
 * Locks are taken in one order by every batch: schedules, the lock on resumes, items by id, finished items by id, new items by id,
 * groups by id, gates by key. So batches wait for each other but never in a circle. (Two are out of their place: what a gate holds, if
 * the gate came after we searched for it, and groups that a user's transaction has added to. If these ever meet in a circle,
 * a batch gives up its lock and goes past it, as past one of a user: see `past-locks.ts`.)
 *
 * Settlements are numbered from 1 (`s`). A guard that does not hold, or a conflict, takes its settlement out of `v_ok`, and
 * every later statement reads it. Everything is found by a primary key, or by gate_held_id, gate_member_gate, group_share_group, item_held.
 *
 * REPLY  a JSON text: kinds (one letter for each settlement: a applied, o applied to an item that was the only member of its group,
 *        which the client then knows to be closed if the item has ended, w the same and an inbox waits for it, r repeated,
 *        s stale, c conflict), closed ([s, group, value, watched]...), conflicts ([s, group, value, final, version]...)
 */
export const COMMIT = `
create function {schema}.commit_batch(
  p_now      bigint,   -- null: the server's time
  p_ids      text[],   -- the guards: a leased item with its token, or an id that must be absent (token null); null: others
  p_tokens   text[],
  p_absent   int,      -- how many of them want an id to be absent
  p_locks    text[],   -- items that this batch has to lock: leased, members of new gates, roots of touched groups
  p_touched  text[],   -- groups that are moved or contributed to
  p_roots    json,     -- pushes of the id that the guard wants absent
  p_children json,     -- other pushes
  p_ends     json,     -- complete, deadLetter, retry, release
  p_moves    json,     -- what each settlement adds to the open count of a group, and which inbox wants to be notified of its close
  p_values     json,     -- contributions, in the order of the batch
  p_expects  boolean,  -- whether any of them expects a version
  p_gates    json,     -- gates to open, with their members
  p_notify_gates    json,     -- gates to notify, beyond those that know the member themselves
  p_holding    text[],   -- gates that hold an item that is pushed here
  p_tags     json,     -- tags of pushed items
  p_ready    json,     -- [queue, delay]: which queues this batch gives work to
  p_actions     json      -- what people do: guards by status and schedule, reopen, erase, cancel, pause, schedule, log, notify
) returns text
language plpgsql
${WAITS_FOR_LOCKS}
as {body}
declare
  v_now       bigint := {schema}.at(p_now);
  v_batch     bigint;
  v_kinds     text[];
  v_ok        boolean[];
  v_joined    text[];      -- touched groups whose root was the only member until now
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
  v_notified      text[];
  v_company   boolean;     -- the group of a root that was sent as single has other members
  v_conflicts json;
  v_closed    json;
  v_ready     json;
  v_wake      int[] := '{}'; -- queues that got work in a way that the client could not know
  v_notify_items    json;      -- [inbox, item]
  v_notify_groups json;      -- [inbox, group]
  v_action      record;
  v_holds     boolean;
begin
${FIRST_LOCKS}
${GUARDS}
${NEW_ITEMS}
${ENDS}${GROUPS}
${GATES}
${ACTIONS}
${NOTIFICATIONS}
  return json_build_object('kinds', array_to_string(v_kinds, ''), 'closed', v_closed, 'conflicts', v_conflicts)::text;
end {body};

${FIND_CONFLICTS}
${HELD_ROWS}
${WITHOUT_ENDED}`
