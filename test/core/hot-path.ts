// Measures what every item of work pays for metrics and for a doer, and prints it as JSON. Run with --expose-gc, and with a
// young generation that is large enough for no collection to fall into a measurement.
import { unlimitedDoer } from '../../src/core/doer/unlimited.js'
import { createMetrics } from '../../src/core/metrics/metrics.js'

const COUNT = 1_000_000
const metrics = createMetrics({ quantiles: [0.5, 0.99] })
const types = ['a', 'b', 'c', 'd']
const counters = types.map((type) => metrics.counter('c', { type }))
const gauges = types.map((type) => metrics.gauge('g', { type }))
const summaries = types.map((type) => metrics.summary('s', { type }))

/** Bytes allocated per call, once the code is warm. */
function bytesPerCall(call: (n: number) => void): number {
  for (let n = 0; n < 200_000; n += 1) call(n)
  globalThis.gc!()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < COUNT; n += 1) call(n)
  return (process.memoryUsage().heapUsed - before) / COUNT
}

/** Nanoseconds per task, the best of several rounds: what disturbs a measurement only ever makes it longer. */
async function nsPerTask(give: (task: () => Promise<void>) => void, done: () => Promise<void>): Promise<number> {
  const task = async () => {}
  let best = Infinity
  for (let round = 0; round < 30; round += 1) {
    const from = performance.now()
    for (let batch = 0; batch < 40; batch += 1) {
      for (let n = 0; n < 256; n += 1) give(task)
      await done()
    }
    best = Math.min(best, ((performance.now() - from) / (40 * 256)) * 1e6)
  }
  return best
}

let running = 0
let resolve = () => {}
const ended = () => {
  running -= 1
  if (running === 0) resolve()
}
const doer = unlimitedDoer()

console.log(
  JSON.stringify({
    incBytes: bytesPerCall((n) => counters[n & 3]!.inc(0.5)),
    setBytes: bytesPerCall((n) => gauges[n & 3]!.set(n * 1.5)),
    observeBytes: bytesPerCall((n) => summaries[n & 3]!.observe((n % 300) + 0.25)),
    bareNs: await nsPerTask(
      (task) => {
        running += 1
        void task().then(ended, ended)
      },
      () => new Promise((done) => (resolve = done)),
    ),
    doerNs: await nsPerTask(doer.do, doer.done),
  }),
)
