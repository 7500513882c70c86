import type { Subscription } from '../inlets/subscription.js'
import type { Message } from '../message/message.js'
import { type LaneOptions, Lanes } from './lanes.js'
import type { PausableSource } from './partition-pauses.js'
import type { ResolvedHopperOptions } from './resolve-hopper-options.js'
import { defaultLaneOf } from './resolve-hopper-options.js'

/** The lanes of a run, cut as the options and the subscription say. */
export function lanesFor(
  o: ResolvedHopperOptions,
  sub: Subscription,
  batch: ResolvedHopperOptions['batch'] | undefined,
): Lanes<Message> {
  // One handler at a time in strict arrival order: round robin between keys would reorder it.
  const isOneLane = o.concurrency === 1 || sub.capability('orderedDelivery') !== undefined
  const pausable = isOneLane ? undefined : sub.capability('pausable')
  return new Lanes<Message>({
    clock: o.loop.clock,
    concurrency: o.concurrency,
    maxInFlight: o.maxInFlight,
    maxLanes: o.maxLanes,
    laneOf: isOneLane ? () => '' : laneOfWith(o),
    ...(batch === undefined ? {} : { batch }),
    ...(pausable === undefined ? {} : { pause: pauseWith(o, pausable, batch?.size ?? 1) }),
  })
}

function laneOfWith(o: ResolvedHopperOptions): (message: Message) => string {
  if (o.laneOf === defaultLaneOf) return defaultLaneOf
  return (message) => {
    try {
      const lane: unknown = o.laneOf(message)
      if (typeof lane === 'string') return lane
      o.logger.error('laneOf did not return a string; the message goes by its partition or key', { lane })
    } catch (error) {
      // Not admitted, it could never be terminated either, and would come back forever.
      o.logger.error('laneOf failed; the message goes by its partition or key', { error })
    }
    return defaultLaneOf(message)
  }
}

function pauseWith(
  o: ResolvedHopperOptions,
  pausable: PausableSource,
  batchSize: number,
): NonNullable<LaneOptions<Message>['pause']> {
  const quietly = (what: 'pause' | 'resume', partition: string) => {
    try {
      pausable[what](partition)
    } catch (error) {
      o.logger.warn(`A partition could not ${what}`, { partition, error })
    }
  }
  return {
    // A lane that is held back before it has a batch together would never have one.
    at: Math.max(o.maxInFlightPerLane, batchSize),
    partitionOf: (message) => message.partitionKey,
    pause: (partition) => quietly('pause', partition),
    resume: (partition) => quietly('resume', partition),
  }
}
