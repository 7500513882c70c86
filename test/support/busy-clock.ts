import type { Clock } from '../../src/core/time/clock.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

/** A clock for work that never waits: it has worked for `workedMs` beside the fake time, and its turns are those of the real event loop. */
export class BusyClock implements Clock {
  readonly fake = new FakeClock()
  workedMs = 0
  readonly #turned: () => void

  constructor(turned: () => void) {
    this.#turned = turned
  }

  now = () => this.fake.now()
  monotonic = () => this.fake.monotonic() + this.workedMs
  after: Clock['after'] = (ms, call) => this.fake.after(ms, call)
  sleep: Clock['sleep'] = (ms, signal) => this.fake.sleep(ms, signal)
  turn = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    this.#turned()
  }
}
