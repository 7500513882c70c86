import { NAMES, short } from '../compare/judge.js'
import { OURS } from '../compare/plan.js'
import type { Point } from './axes.js'
import type { Measured, Stored } from './stored.js'

/** Processor time of an item with the most items waiting, beside that with the fewest: a drain rate of 0.8 where nothing else limits it. */
const MOST_OF_PENDING = 1.25
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
  const [first, last] = [one.points[0]!, one.points.at(-1)!]
  const times = processorUs(last.figures) / processorUs(first.figures)
  if (times <= MOST_OF_PENDING) return []
  return [
    `${name}: with ${short(last.size)} items waiting one takes ${short(times)} times the processor time that it takes with ` +
      `${short(first.size)}, and must take at most ${MOST_OF_PENDING} times as much.`,
  ]
}

/** The processor time of an item, in microseconds: client and server. */
export function processorUs({ clientUs = 0, serverUs = 0 }: Point['figures']): number {
  return clientUs + serverUs
}
