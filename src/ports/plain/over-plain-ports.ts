import { MillraceError } from '../../core/error.js'
import { unreachable } from '../../core/unreachable.js'
import type { Ledger } from '../ledger.js'
import type { OpenedLedger } from '../native.js'
import type { Ports, Queue } from '../ports.js'
import type { CommitResult, Settlement } from '../settlement.js'
import { act } from './act.js'
import { readScheduleOf } from './asides.js'
import { begin } from './begin.js'
import { outcomeOf } from './call.js'
import { Claims } from './claim.js'
import { type Desk, openDesk } from './desk.js'
import { extend } from './extend.js'
import { fire } from './fire.js'
import { readGroup } from './groups.js'
import { type PlainOptions, resolvePlainOptions } from './options.js'
import { partsOf } from './parts.js'
import { readPaused } from './pauses.js'
import { settleByLease } from './settle.js'
import { submit, watchGroups } from './submit.js'
import { Turns } from './turns.js'
import { readView } from './views.js'

/**
 * Implements the ledger over any three ports by ordered steps that are safe to repeat: what was decided is written first, its
 * consequences next, the ack last. Optional powers of the ports are used where they are there.
 *
 * What is weaker than a native ledger:
 * - a settlement is not atomic, only resumable: others may see the first half of it for a moment;
 * - a queue delivers any type: `rooms` of a claim are not kept, and the engine gives back what it has no room for;
 * - a lost lease is noticed by the queue's heartbeat or by the marks of the next holder, looked at before the first write;
 * - a handler runs again when its process dies before its outcome was written, and a dead letter may then be buried twice;
 * - without `incrementOnce`, a crash between a marker and its count leaves the count unmoved, and its group open;
 * - without `increment`, counts are right within one process only;
 * - items born leased live only as long as this process, until their first failure;
 * - a group that stays open for longer than `retentionMs` forgets its count;
 * - the input of what has ended is not kept, and there is neither history nor a list of items.
 *
 * Of `setMany` it is expected that it writes in order, or all at once. Bulk calls carry at most 500 entries.
 *
 * @example
 * ```ts
 * const { ledger, names } = overPlainPorts({ queue, pubsub, store }, [], { prefix: 'work:' })
 * ```
 */
export function overPlainPorts(
  ports: Ports,
  perType: readonly Queue[] = [],
  options?: PlainOptions,
): Omit<OpenedLedger, 'foreign' | 'ledger'> & { readonly ledger: Ledger } {
  const names = nameQueues(ports.queue, perType)
  const byName = new Map([...names].map(([queue, name]) => [name, queue]))
  const desk = openDesk(ports, byName, resolvePlainOptions(options))
  const claims = new Claims(desk)
  const finals = new Turns()
  const ledger: Ledger = {
    atomic: false,
    limits: { maxItemBytes: Infinity, maxDelayMs: Infinity },
    claim: (ask) => claims.claim(ask),
    begin: (leases) => begin(desk, leases),
    extend: (held, leaseMs) => extend(desk, held, leaseMs),
    commit: (batch) =>
      Promise.all(
        batch.map((settlement) => {
          // The first to lock a group's value wins, also where two of one batch travel over different connections.
          const lock = settlement.effects.find((effect) => effect.do === 'contribute' && effect.final)
          return lock?.do === 'contribute'
            ? finals.inTurn(lock.groupId, () => commitOne(desk, settlement))
            : commitOne(desk, settlement)
        }),
      ),
    read: (ids) => Promise.all(ids.map((id) => readView(desk, id))),
    groups: (ids) => Promise.all(ids.map((id) => readGroup(desk, id))),
    schedules: (names) => Promise.all(names.map((name) => readScheduleOf(desk, name))),
    watch: (_inbox, { groups }) => watchGroups(desk, groups),
    onReady: (wake) => desk.bell.onReady(wake),
    onInbox: (_inbox, hear) => desk.inbox.onInbox(hear),
    paused: (among) => readPaused(desk, among),
  }
  return { ledger, names }
}

/** The default queue, then the others in their order; the same object is the same queue. */
function nameQueues(queue: Queue, perType: readonly Queue[]): ReadonlyMap<Queue, string> {
  const names = new Map<Queue, string>([[queue, 'default']])
  for (const other of perType) if (!names.has(other)) names.set(other, `q${names.size}`)
  return names
}

/** A settlement fails alone, as a value: its neighbours in the batch have their own answers. */
async function commitOne(desk: Desk, settlement: Settlement): Promise<CommitResult> {
  const outcome = await outcomeOf(apply(desk, settlement))
  if (outcome.ok) return outcome.value
  const { error } = outcome
  if (error instanceof MillraceError && error.code === 'BAD_NAME')
    return { kind: 'refused', code: 'BAD_NAME', message: error.message }
  return { kind: 'failed', error }
}

async function apply(desk: Desk, { guard, effects }: Settlement): Promise<CommitResult> {
  switch (guard.by) {
    case 'lease':
      return settleByLease(desk, guard.lease, effects)
    case 'absent':
      return submit(desk, guard.id, partsOf(effects))
    case 'status':
      return act(desk, guard, partsOf(effects))
    case 'fire':
      return fire(desk, guard, partsOf(effects))
    case 'none':
      return submit(desk, undefined, partsOf(effects))
    default:
      return unreachable(guard)
  }
}
