import type { FailureClass } from '../../core/failure/failure.js'
import type { RunReport } from '../../ops/api.js'
import type { ItemState } from '../../ports/words.js'
import type { Tone } from '../terminal/paint.js'
import type { Cell } from '../terminal/table.js'

const TONES: Readonly<Record<ItemState, Tone>> = {
  waiting: 'plain',
  scheduled: 'dim',
  retrying: 'warn',
  blocked: 'warn',
  active: 'busy',
  completed: 'good',
  dead: 'bad',
  cancelled: 'dim',
}

export function stateCell(state: ItemState): Cell {
  return { text: state, tone: TONES[state] }
}

export function classCell(of: FailureClass | undefined): Cell {
  if (of === undefined) return ''
  return { text: of, tone: of === 'poison' || of === 'invalidForState' ? 'bad' : 'plain' }
}

const OUTCOMES: Readonly<Record<RunReport['outcome'], Tone>> = {
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'dim',
  expired: 'warn',
  deferred: 'dim',
}

export function outcomeCell(outcome: RunReport['outcome']): Cell {
  return { text: outcome, tone: OUTCOMES[outcome] }
}
