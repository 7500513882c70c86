import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { Subscription } from '../inlets/subscription.js'

/** Asks for the lag now and then, beside the fetch path and never in it. Returns how to stop. */
export function sampleLag(
  sub: Subscription,
  everyMs: Ms,
  clock: Clock,
  record: (messages: number) => void,
): () => void {
  const reporter = sub.capability('lagReporter')
  if (reporter === undefined || everyMs === 0) return () => undefined
  let isStopped = false
  let cancel: () => void = () => undefined
  const sample = async () => {
    try {
      record(await reporter.lag())
    } catch {
      // A lag that cannot be had is not worth a word: the next sample may have it.
    }
    if (!isStopped) cancel = clock.after(everyMs, () => void sample())
  }
  void sample()
  return () => {
    isStopped = true
    cancel()
  }
}
