import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { EngineContext } from '../engine-context.js'

/** How long the `backpressure` option wants the worker to pause before its next claim. */
export function pauseBeforeClaim({ o, recorder, failed }: EngineContext): MaybePromise<Ms> {
  const { backpressure } = o.given
  if (backpressure === undefined) return 0
  const pauseAfter = (error: unknown) => {
    failed(error, 'queue')
    return o.pollInterval
  }
  try {
    const asked = backpressure({ metrics: o.metrics, active: recorder.active.size })
    return asked instanceof Promise ? asked.then((ms) => ms ?? 0, pauseAfter) : (asked ?? 0)
  } catch (error) {
    return pauseAfter(error)
  }
}
