import { unreachable } from '../../core/unreachable.js'
import type { FindingCode, Ops } from '../../ops/api.js'
import type { ReasonCode } from '../../ops/explain.js'

/** A command, word by word. */
export type Words = readonly string[]

/** The commands that do what the remedy of a reason says; none where nothing is to be done, or not from here. */
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
    case 'lapsed':
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

/** The same for a finding of `audit` that it does not mend itself. */
export function repairsOf(code: FindingCode, id: string): readonly Words[] {
  switch (code) {
    case 'gate-unknown':
    case 'gate-cycle':
      return [['cancel', id]]
    case 'no-worker':
      return [['workers']]
    case 'unknown-type':
      return [['workers'], ['cancel', id]]
    case 'stray':
    case 'gate-missing':
    case 'gate-missed':
    case 'pause-over':
    case 'lapsed':
    case 'group-count':
      return []
    default:
      return unreachable(code)
  }
}
