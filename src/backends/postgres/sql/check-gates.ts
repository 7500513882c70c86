import { CAN_DECIDE, COUNT_MEMBERS, FREE_HELD } from './commit/gates.js'
import { BY_KEY } from './plan-settings.js'

/**
 * check_gates: gates that members may have passed unseen.
 *
 * A gate that is opened within a user's transaction cannot lock its members: their heartbeats and settlements would wait until the
 * user commits. It is only written, with a note (gate_check), and becomes visible with that commit. Members that end after
 * it see the gate and notify it, as always. Members that ended before did not. This function finds those, from what is
 * committed. It runs in every claim that sees a note, and the commit wakes the workers that serve the queue of what the gate holds.
 *
 * No end is missed between the two. A commit that ends an item locks its row, and only then searches for gates. For each member, either
 * - we get its key ("for key share"): no commit is ending it, and one that will, sees the gate;
 * - we do not get it: a commit may be ending it that searched before the gate was there. The note stays for a later check, soon;
 * - it has no row: it has ended, which the next statement sees, or it does not exist yet, and the commit that ends it later sees the gate.
 * A repeated check is harmless: a member counts with its row in gate_member, which is deleted then.
 *
 * Nothing here waits for a lock: what is not free is left for a later check. "For key share" is in the way only of
 * a commit, for the length of a claim.
 */
export const CHECK_GATES = `
-- check_gates: by gate_check_at, gate_member_gate and primary keys.
create function {schema}.check_gates(v_now bigint, p_step int) returns void language plpgsql
${BY_KEY}
as {body}
declare
  v_nos   bigint[];
  v_keys  text[];
  v_gates text[];      -- those of them that are ours now
  v_still text[];      -- members that no commit is ending
  v_again text[];      -- gates that have to be checked again
  v_held  text[];
  v_wake  int[] := '{}';
  v_ready json;
begin
  select array_agg(l.no), array_agg(distinct l.gate) into v_nos, v_keys from (
    select n.no, n.gate from {schema}.gate_check n where n.at <= v_now order by n.at, n.no limit p_step for update skip locked) l;
  if v_nos is null then
    return;
  end if;
  select coalesce(array_agg(x.key), '{}') into v_gates
    from (select g.key from {schema}.gate g where g.key = any(v_keys) order by g.key for update skip locked) x;
  select coalesce(array_agg(x.id), '{}') into v_still from (
    select i.id from {schema}.item i
     where i.id = any(array(select m.member from {schema}.gate_member m where m.gate = any(v_gates)))
     order by i.id for key share skip locked) x;
  select coalesce(array_agg(distinct m.gate), '{}') into v_again
    from {schema}.gate_member m join {schema}.item i on i.id = m.member
   where m.gate = any(v_gates) and i.id not in (select unnest(v_still));
  with counted as (
    delete from {schema}.gate_member m using {schema}.ended_item f
     where m.gate = any(v_gates) and f.id = m.member and f.keep_until > v_now
    returning m.gate, f.state = 5 as ok
  )
  update {schema}.gate g
     set ${COUNT_MEMBERS}
    from (select gate, count(*) as ended, count(*) filter (where ok) as good from counted group by gate) n
   where g.key = n.gate;
  select coalesce(array_agg(x.id), '{}') into v_held from (
    select i.id from {schema}.item i
     where i.id = any(array(select g.held_id from {schema}.gate g where g.key = any(v_gates) and ${CAN_DECIDE}))
     order by i.id for no key update skip locked) x;
  with decided as materialized (
      select g.key, g.held_id, g.need <= 0 as met from {schema}.gate g
       where g.key = any(v_gates) and ${CAN_DECIDE}
         and (g.held_id = any(v_held) or exists (select from {schema}.ended_item f where f.id = g.held_id)
                                   and not exists (select from {schema}.item i where i.id = g.held_id))
    ), ${FREE_HELD}
  -- One that holds what is not there yet decides when that comes.
  select coalesce(array_agg(g.key), '{}') into v_again from {schema}.gate g
   where g.key = any(v_keys) and (g.key <> all(v_gates) or g.key = any(v_again)
          or ${CAN_DECIDE} and exists (select from {schema}.item i where i.id = g.held_id));
  delete from {schema}.gate_check where no = any(v_nos) and gate <> all(v_again);
  update {schema}.gate_check set tries = tries + 1, at = v_now + least(1000, 20 * (1 << least(tries, 6)))
   where no = any(v_nos) and gate = any(v_again);
  if cardinality(v_wake) > 0 then
    -- Not every queue is one of ours.
    select json_agg(json_build_array(q.name, null)) into v_ready from {schema}.queue q where q.no = any(v_wake);
    perform {schema}.send_notifications(v_ready, null, null);
  end if;
end {body};
`
