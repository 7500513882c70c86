import type { Result } from '../../core/stream/result.js'
import { unreachable } from '../../core/unreachable.js'
import type { LoopSummary } from '../loop/loop-observer.js'

/** What a run did, message by message. `returned`: fetched and released unstarted. `abandoned`: left running at the end. */
export interface RunSummary {
  readonly received: number
  readonly acked: number
  readonly dropped: number
  readonly nak: number
  readonly term: number
  readonly settleFailures: number
  readonly returned: number
  readonly abandoned: number
}

/** Of a run that was closed before it began. */
export const NOTHING_RUN: RunSummary = Object.freeze({
  received: 0,
  acked: 0,
  dropped: 0,
  nak: 0,
  term: 0,
  settleFailures: 0,
  returned: 0,
  abandoned: 0,
})

/** What a settled message counts as. */
export type MessageOutcome = 'acked' | 'dropped' | 'nak' | 'term' | 'inProgress' | 'manual'

export type Counts = Record<MessageOutcome, number>

/** Counts of nothing, to be counted up. */
export function noCounts(): Counts {
  return { acked: 0, dropped: 0, nak: 0, term: 0, inProgress: 0, manual: 0 }
}

export function messageOutcomeOf(result: Result): MessageOutcome {
  switch (result.action) {
    case 'ack':
      return result.class === 'drop' ? 'dropped' : 'acked'
    case 'nak':
    case 'term':
    case 'manual':
    case 'inProgress':
      return result.action
    default:
      return unreachable(result)
  }
}

export function summaryOf(loop: LoopSummary, counts: Readonly<Counts>): RunSummary {
  return {
    received: loop.received,
    acked: counts.acked,
    dropped: counts.dropped,
    nak: counts.nak,
    term: counts.term,
    settleFailures: loop.settleFailures,
    returned: loop.returned,
    abandoned: loop.abandoned,
  }
}
