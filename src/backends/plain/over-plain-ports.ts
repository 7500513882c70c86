import { MillraceError } from '../../core/error.js'
import { functionOption, numberOption, optionsObject } from '../../core/options.js'
import { systemClock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { OpenedLedger, PlainPortsOptions } from '../../ports/find-ledger.js'
import type { Ledger } from '../../ports/ledger.js'
import { KEEP_COMPLETED_MS } from '../../ports/limits.js'
import type { Ports, Queue } from '../../ports/ports.js'
import type { CommitResult, Settlement } from '../../ports/settlement.js'
import { sortEffects } from '../shared/sort-effects.js'
import { Claims } from './claim.js'
import { PlainContext } from './context.js'
import { commitItemAction, readPaused } from './control.js'
import { enqueue, watchGroups } from './enqueue.js'
import { readGroup } from './groups.js'
import { extend, markStarted } from './held-leases.js'
import { readView } from './item-state.js'
import type { RetryPort } from './plain-ports.js'
import { fireSchedule, readSchedule } from './schedules.js'
import { settleByLease } from './settle.js'

/** Options of {@link overPlainPorts}. Default: keys that begin with `work:`, real time, 1000 ms, no repetition, no reports. */
export interface PlainOptions extends Partial<PlainPortsOptions> {
  /**
   * How long states, plans, markers and group keys are kept after they were last written, beyond the delay of what they
   * belong to. A group that stays open for longer needs more. Default: 24 h.
   */
  readonly retentionMs?: Ms
}

function resolvePlainOptions(given: PlainOptions | undefined): Readonly<Required<PlainOptions>> {
  const names = ['prefix', 'clock', 'retentionMs', 'putBackMs', 'retryPort', 'onError'] as const
  const { prefix = 'work:', clock = systemClock, ...rest } = optionsObject('overPlainPorts', given, names)
  const ms = (name: 'retentionMs' | 'putBackMs', fallback: Ms) =>
    numberOption(`overPlainPorts.${name}`, rest[name], { min: 1, default: fallback })
  return Object.freeze({
    prefix,
    clock,
    retentionMs: ms('retentionMs', KEEP_COMPLETED_MS),
    putBackMs: ms('putBackMs', 1000),
    retryPort: functionOption<RetryPort>('overPlainPorts.retryPort', rest.retryPort, (call) => call()),
    onError: functionOption('overPlainPorts.onError', rest.onError, () => undefined),
  })
}

/**
 * Implements the ledger over any three ports by ordered steps that are safe to repeat: what was decided is written first, its
 * consequences next, the ack last. Optional powers of the ports are used where they exist.
 *
 * What is weaker than a native ledger:
 * - a settlement is not atomic, only resumable: others may see the first half of it for a moment;
 * - a queue delivers any type: `rooms` of a claim are not kept, and the engine gives back what it has no room for;
 * - a lost lease is noticed by the queue's heartbeat or by the marks of the next holder, checked before the first write;
 * - a handler runs again when its process dies before its outcome was written, and a dead letter may then be stored twice;
 * - without `incrementOnce`, a crash between a marker and its count leaves the count unmoved, and its group open;
 * - without `increment`, counts are right within one process only;
 * - items born leased live only as long as this process, until their first failure;
 * - a group that stays open for longer than `retentionMs` forgets its count;
 * - the input of what has ended is not kept, and there is neither history nor a list of items.
 *
 * `setMany` must write in order, or everything together. Bulk calls carry at most 500 entries.
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
  const context = new PlainContext(ports, byName, resolvePlainOptions(options))
  const claims = new Claims(context)
  const ledger: Ledger = {
    atomic: false,
    limits: { maxItemBytes: Infinity, maxDelayMs: Infinity },
    claim: (ask) => claims.claim(ask),
    markStarted: (leases) => markStarted(context, leases),
    extend: (held, leaseMs) => extend(context, held, leaseMs),
    commit: (batch) =>
      Promise.all(
        batch.map((settlement) => {
          // The first to lock a group's value wins, also where two of one batch travel over different connections.
          const lock = settlement.effects.find((effect) => effect.do === 'setGroupValue' && effect.final)
          const commit = () => commitOne(context, settlement)
          return lock?.do === 'setGroupValue' ? context.mutex.run(`value ${lock.groupId}`, commit) : commit()
        }),
      ),
    read: (ids) => Promise.all(ids.map((id) => readView(context, id))),
    groups: (ids) => Promise.all(ids.map((id) => readGroup(context, id))),
    schedules: (asked) => Promise.all(asked.map((name) => readSchedule(context, name))),
    watch: (_inbox, { groupIds }) => watchGroups(context, groupIds),
    onReady: (wake) => context.notifier.onReady(wake),
    onInbox: (_inbox, onNotification) => context.notifier.onInbox(onNotification),
    paused: (among) => readPaused(context, among),
  }
  return { ledger, names }
}

/** The default queue, then the others in their order; the same object is the same queue. */
function nameQueues(queue: Queue, perType: readonly Queue[]): ReadonlyMap<Queue, string> {
  const names = new Map<Queue, string>([[queue, 'default']])
  for (const other of perType) if (!names.has(other)) names.set(other, `q${names.size}`)
  return names
}

/** A failure is the result of one settlement: its neighbours in the batch have their own results. */
async function commitOne(context: PlainContext, settlement: Settlement): Promise<CommitResult> {
  try {
    return await apply(context, settlement)
  } catch (error) {
    const isBadName = error instanceof MillraceError && error.code === 'BAD_NAME'
    return isBadName ? { kind: 'refused', code: 'BAD_NAME', message: error.message } : { kind: 'failed', error }
  }
}

async function apply(context: PlainContext, { guard, effects }: Settlement): Promise<CommitResult> {
  switch (guard.by) {
    case 'lease':
      return settleByLease(context, guard.lease, effects)
    case 'absent':
      return enqueue(context, guard.id, sortEffects(effects))
    case 'status':
      return commitItemAction(context, guard, sortEffects(effects))
    case 'schedule':
      return fireSchedule(context, guard, sortEffects(effects))
    case 'none':
      return enqueue(context, undefined, sortEffects(effects))
    default:
      return unreachable(guard)
  }
}
