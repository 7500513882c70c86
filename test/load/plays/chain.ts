import { setTimeout as sleep } from 'node:timers/promises'
import { type AnyWorkBuilder, defineWork, type WorkResult } from 'millrace'
import { RunCount } from '../run-count.js'
import type { Outcome, Stage } from '../stage.js'

const PAUSE_MS = 50
const EVERY_MS = 1_000

/** Work without an end, in which each item queues the next, beside a short one each second, until SIGTERM comes. */
export async function chain(stage: Stage): Promise<Outcome> {
  const { load, runs } = stage
  const pauses = new RunCount()
  let beganAt = 0
  let latestMs = 0
  // Its type cannot be inferred, since it queues itself.
  const link: AnyWorkBuilder = defineWork('link', ({ n }: { readonly n: number }, ctx): WorkResult => {
    runs.start(n)
    runs.end(n)
    return ctx.queue(link({ n: n + 1 }))
  })
  const pause = defineWork('pause', async ({ n }: { readonly n: number }, ctx) => {
    pauses.start(n)
    latestMs = Math.max(latestMs, performance.now() - beganAt - n * EVERY_MS)
    await sleep(PAUSE_MS)
    pauses.end(n)
    return ctx.void()
  })
  const w = stage.system([link, pause])
  const terminated = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => {
      process.send?.({ is: 'terminating' })
      resolve()
    })
  })
  beganAt = performance.now()
  for (let n = 0; n < load.seconds; n += 1)
    await stage.put(pause({ n }), { delay: Math.max(0, n * EVERY_MS - (performance.now() - beganAt)) })
  await stage.put(link({ n: 0 }))
  await stage.begin()
  w.start()
  await terminated
  const stopMs = await stage.stop(w)
  const missed = Array.from({ length: load.seconds }, (_, n) => n).filter((n) => !pauses.hasEnded(n))
  return {
    // How far it comes is its own affair; what it began is recorded.
    expected: runs.ended + pauses.ended,
    facts: { stopMs, links: runs.ended, pauses: pauses.ended, latestPauseMs: Math.round(latestMs) },
    broken: [
      ...(pauses.secondRuns > 0 ? [`${pauses.secondRuns} second runs of the items of ${PAUSE_MS} ms`] : []),
      ...(missed.length > 0 ? [`${missed.length} of ${load.seconds} items of ${PAUSE_MS} ms did not run`] : []),
    ],
  }
}
