import { unreachable } from '../../core/unreachable.js'
import type { FindingCode, Ops } from '../../ops/api.js'
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
    case 'unknown':
    case 'completed':
    case 'cancelled':
    case 'stopping':
    case 'limit':
    case 'deadline':
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
