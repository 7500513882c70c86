import type { Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import { KEEP_COMPLETED_MS } from '../../ports/limits.js'
import type { Effect, EffectOf } from '../../ports/settlement.js'

/** What becomes of an item. A run decides about one item; a person's settlement may decide about several. */
export type OutcomeEffect = EffectOf<'complete' | 'deadLetter' | 'retry' | 'release' | 'redrive' | 'delete'>
/** What concerns no item that the settlement itself changes. */
export type ControlEffect = EffectOf<'schedule' | 'pause' | 'resume' | 'log'>

/** How one settlement changes the open count of a group. */
export interface GroupChange {
  readonly groupId: string
  joined: number
  left: number
}

/** The effects of one settlement by what they change. A settlement is atomic, so only the order within a list matters. */
export interface SortedEffects {
  readonly enqueues: readonly EffectOf<'enqueue'>[]
  readonly attempts: readonly EffectOf<'recordAttempt'>[]
  readonly outcomes: readonly OutcomeEffect[]
  readonly cancels: readonly EffectOf<'requestCancel'>[]
  readonly groupChanges: ReadonlyMap<string, GroupChange>
  readonly groupValues: readonly EffectOf<'setGroupValue'>[]
  readonly gates: readonly EffectOf<'openGate'>[]
  readonly gateNotices: readonly EffectOf<'notifyGate'>[]
  readonly notices: readonly EffectOf<'notify'>[]
  readonly controls: readonly ControlEffect[]
  /** How long a group that this settlement closes is kept. */
  readonly keepMs: Ms
}

const NONE: never[] = []

export function sortEffects(effects: readonly Effect[]): SortedEffects {
  let enqueues: EffectOf<'enqueue'>[] = NONE
  let attempts: EffectOf<'recordAttempt'>[] = NONE
  let outcomes: OutcomeEffect[] = NONE
  let cancels: EffectOf<'requestCancel'>[] = NONE
  let groupValues: EffectOf<'setGroupValue'>[] = NONE
  let gates: EffectOf<'openGate'>[] = NONE
  let gateNotices: EffectOf<'notifyGate'>[] = NONE
  let notices: EffectOf<'notify'>[] = NONE
  let controls: ControlEffect[] = NONE
  const groupChanges = new Map<string, GroupChange>()
  for (const effect of effects) {
    switch (effect.do) {
      case 'enqueue':
        enqueues = added(enqueues, effect)
        break
      case 'recordAttempt':
        attempts = added(attempts, effect)
        break
      case 'complete':
      case 'deadLetter':
      case 'retry':
      case 'release':
      case 'redrive':
      case 'delete':
        outcomes = added(outcomes, effect)
        break
      case 'requestCancel':
        cancels = added(cancels, effect)
        break
      case 'joinGroup':
        changeOf(groupChanges, effect.groupId).joined += effect.count
        break
      case 'leaveGroup':
        changeOf(groupChanges, effect.groupId).left += effect.count
        break
      case 'setGroupValue':
        groupValues = added(groupValues, effect)
        break
      case 'openGate':
        gates = added(gates, effect)
        break
      case 'notifyGate':
        gateNotices = added(gateNotices, effect)
        break
      case 'notify':
        notices = added(notices, effect)
        break
      case 'schedule':
      case 'pause':
      case 'resume':
      case 'log':
        controls = added(controls, effect)
        break
      default:
        return unreachable(effect)
    }
  }
  const keepMs = keepMsOf(outcomes)
  return {
    enqueues,
    attempts,
    outcomes,
    cancels,
    groupChanges,
    groupValues,
    gates,
    gateNotices,
    notices,
    controls,
    keepMs,
  }
}

/** A group is kept as long as the item that closes it. */
export function keepMsOf(effects: readonly Effect[]): Ms {
  for (const effect of effects) if (effect.do === 'complete' || effect.do === 'deadLetter') return effect.keepMs
  return KEEP_COMPLETED_MS
}

/** Most settlements have one or two effects of a kind, and none of most kinds: those share one empty list. */
function added<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one]
  list.push(one)
  return list
}

function changeOf(changes: Map<string, GroupChange>, groupId: string): GroupChange {
  let change = changes.get(groupId)
  if (change === undefined) {
    change = { groupId, joined: 0, left: 0 }
    changes.set(groupId, change)
  }
  return change
}
