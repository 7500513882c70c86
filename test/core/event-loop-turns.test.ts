import { describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../src/core/time/clock.js'
import { EventLoopTurns } from '../../src/core/time/event-loop-turns.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

/** Computes for so long. */
function busy(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until) {
    // Only time passes.
  }
}

describe('work that never waits for anything outside the process', () => {
  it('lets the event loop in every few milliseconds', async () => {
    const turns = new EventLoopTurns(systemClock)
    let served = 0
    let isOver = false
    const serve = () => {
      served += 1
      if (!isOver) setImmediate(serve)
    }
    setImmediate(serve)
    for (let i = 0; i < 100; i += 1) {
      busy(1)
      await turns.due()
      await Promise.resolve()
    }
    isOver = true
    expect(served).toBeGreaterThanOrEqual(10)
  })

  it('is not held up while it is short', () => {
    let ms = 0
    const clock: Clock = { ...systemClock, monotonic: () => ms, turn: () => Promise.resolve() }
    const turns = new EventLoopTurns(clock)
    expect(turns.due()).toBeUndefined()
    ms = 3
    expect(turns.due()).toBeUndefined()
    ms = 5
    expect(turns.due()).toBeInstanceOf(Promise)
  })

  it('knows no turns under a clock that is not real', () => {
    const turns = new EventLoopTurns(new FakeClock())
    void turns.due()
    busy(6)
    expect(turns.due()).toBeUndefined()
  })
})
