import { unreachable } from '../../core/unreachable.js'
import type { FindingCode, Ops } from '../../ops/api.js'
import type { WritReasonCode } from '../../ops/guild/writ-facts.js'
import type { ReasonCode } from '../../ops/items/explain.js'

/** A command, word by word. */
export type Words = readonly string[]

/** The commands that apply the remedy of a reason, if there are any. */
export async function stepsOf(code: ReasonCode, id: string, ops: Ops): Promise<readonly Words[]> {
  switch (code) {
    case 'dead':
      return [
        ['redrive', id],
        ['discard', id],
      ]
    case 'scheduled':
    case 'retrying':
      return [
        ['run-now', id],
        ['cancel', id],
      ]
    case 'running':
    case 'taken':
      return [['cancel', id]]
    case 'gate': {
      const [first] = (await ops.item(id))?.waitsFor ?? []
      return [...(first === undefined ? [] : [['explain', first]]), ['cancel', id]]
    }
    case 'paused': {
      const [item, { paused }] = await Promise.all([ops.item(id), ops.overview()])
      const queue = item?.queue ?? 'default'
      return [
        ...(paused.queues.includes(queue) ? [['resume', 'queue', queue]] : []),
        ...(item !== undefined && paused.types.includes(item.type) ? [['resume', 'type', item.type]] : []),
      ]
    }
    case 'waiting':
    case 'lease-lapsed':
    case 'no-worker':
      return [['workers']]
    case 'unknown-type':
      return [['workers'], ['cancel', id]]
    case 'cancelled':
      return [['redrive', id]]
    case 'unknown':
      // The beginning of every id of a writ.
      return id.startsWith('w-') ? [['writ', id]] : []
    case 'completed':
    case 'stopping':
    case 'limit':
    case 'deadline':
      return []
    default:
      return unreachable(code)
  }
}

/** The same for a writ. */
export function stepsOfWrit(code: WritReasonCode, id: string): readonly Words[] {
  const [retry, cancel] = [
    ['writ', 'retry', id],
    ['writ', 'cancel', id],
  ]
  switch (code) {
    case 'draft':
      return [['writ', 'open', id], cancel]
    case 'delayed':
    case 'stuck-retried':
    case 'stuck-at-cap':
    case 'stuck-for-good':
    case 'stuck-by-hand':
    case 'stuck-refused':
    case 'stuck-retry-failed':
      return [retry, cancel]
    case 'stuck-by-blocker':
    case 'stuck-by-cycle':
    case 'engine-running':
    case 'engine-lapsed':
    case 'engine-session':
    case 'engine-blocked':
    case 'engine-held':
    case 'rig-ending':
    case 'held':
      return [cancel]
    case 'phase':
    case 'queued':
    case 'not-dispatched':
    case 'engine-ready':
    case 'graft':
    case 'children':
      return []
    default:
      return unreachable(code)
  }
}

/** The same for a finding that `audit` cannot repair itself. */
export function repairsOf(code: FindingCode, id: string): readonly Words[] {
  const workers = code === 'no-worker' || code === 'unknown-type' ? [['workers']] : []
  const cancel = ['gate-unknown', 'gate-cycle', 'unknown-type'].includes(code) ? [['cancel', id]] : []
  return [...workers, ...cancel]
}
