import { NAMES, short } from '../compare/judge.js'
import { OURS } from '../compare/plan.js'
import type { Measured, Stored } from './stored.js'

/** Drain rate with the most items waiting, as a share of that with the fewest. */
const LEAST_OF_PENDING = 0.8
/** Percent of a core. */
const MOST_IDLE = 1

/** What is worse than it may be, a sentence each. The smallest scale is too short to tell. */
export function missedLimits({ scale, measured }: Stored): string[] {
  return scale === 'small' ? [] : measured.flatMap(missedBy)
}

function missedBy(one: Measured): string[] {
  const name = NAMES[one.kind]
  if (one.what === 'rest') {
    const ours = one.contenders.find((contender) => contender.name === OURS)
    if (ours === undefined || ours.idleClient <= MOST_IDLE) return []
    return [
      `${name}: an idle worker takes ${short(ours.idleClient)} % of a core, and must take at most ${MOST_IDLE} %.`,
    ]
  }
  if (one.what !== 'pending') return []
  const [first, last] = [one.points[0], one.points.at(-1)]
  const share = (last?.figures['drain'] ?? 0) / (first?.figures['drain'] ?? 1)
  if (share >= LEAST_OF_PENDING) return []
  return [
    `${name}: with ${short(last!.size)} items waiting it drains at ${short(share)} of its rate with ${short(first!.size)}, ` +
      `and must drain at ${LEAST_OF_PENDING} of it at least.`,
  ]
}
