import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { clockFrom, MAX_TIMER_MS, neverBackwards, sleepOn, systemClock } from '../../src/core/time/clock.js'

describe('the system clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000, toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('reads wall time from the machine and measures with a time that only grows', () => {
    const started = systemClock.monotonic()
    expect(systemClock.now()).toBe(1_000_000)
    vi.advanceTimersByTime(250)
    vi.setSystemTime(5)
    expect(systemClock.now()).toBe(5)
    expect(systemClock.monotonic() - started).toBe(250)
  })

  it('calls once after the time, and not when cancelled', () => {
    const run = vi.fn()
    const never = vi.fn()
    systemClock.after(100, run)
    const cancel = systemClock.after(100, never)
    cancel()
    cancel()
    vi.advanceTimersByTime(99)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(10_000)
    expect(run).toHaveBeenCalledTimes(1)
    expect(never).not.toHaveBeenCalled()
  })

  it.each([MAX_TIMER_MS, MAX_TIMER_MS + 1, 2 * MAX_TIMER_MS + 5, 1e11])(
    'does not fire a wait of %d ms early, though a timer cannot hold it',
    (ms) => {
      const run = vi.fn()
      systemClock.after(ms, run)
      vi.advanceTimersByTime(ms - 1)
      expect(run).not.toHaveBeenCalled()
      vi.advanceTimersByTime(1)
      expect(run).toHaveBeenCalledTimes(1)
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  it('cancels a long wait also after its first step', () => {
    const run = vi.fn()
    const cancel = systemClock.after(3 * MAX_TIMER_MS, run)
    vi.advanceTimersByTime(MAX_TIMER_MS + 1)
    cancel()
    expect(vi.getTimerCount()).toBe(0)
    vi.advanceTimersByTime(3 * MAX_TIMER_MS)
    expect(run).not.toHaveBeenCalled()
  })

  it('waits forever when asked to, and not at all for a time in the past', () => {
    const never = vi.fn()
    const soon = vi.fn()
    const cancel = systemClock.after(Infinity, never)
    systemClock.after(-5, soon)
    vi.advanceTimersByTime(5 * MAX_TIMER_MS)
    expect(never).not.toHaveBeenCalled()
    expect(soon).toHaveBeenCalledTimes(1)
    cancel()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('sleeps', async () => {
    const nap = systemClock.sleep(5)
    vi.advanceTimersByTime(5)
    await nap
  })
})

describe('real timers of the system clock', () => {
  it('do not keep the process alive', () => {
    const setTimeoutSpy = vi.spyOn(globalThis, 'setTimeout')
    const cancel = systemClock.after(1_000_000, () => {})
    const timer = setTimeoutSpy.mock.results[0]!.value as NodeJS.Timeout
    setTimeoutSpy.mockRestore()
    expect(timer.hasRef()).toBe(false)
    cancel()
  })
})

describe('sleeping with a signal', () => {
  const manualAfter = () => {
    const timers: { run: () => void; isCancelled: boolean }[] = []
    const after = (_ms: number, run: () => void) => {
      const timer = { run, isCancelled: false }
      timers.push(timer)
      return () => {
        timer.isCancelled = true
      }
    }
    return { timers, after }
  }

  it('rejects with the reason as soon as it aborts, and cancels the timer', async () => {
    const { timers, after } = manualAfter()
    const aborter = new AbortController()
    const reason = new Error('closing')
    const nap = sleepOn(after, 10, aborter.signal)
    aborter.abort(reason)
    await expect(nap).rejects.toBe(reason)
    expect(timers[0]!.isCancelled).toBe(true)
  })

  it('sets no timer when the signal is already aborted', async () => {
    const { timers, after } = manualAfter()
    await expect(sleepOn(after, 10, AbortSignal.abort('gone'))).rejects.toBe('gone')
    expect(timers).toHaveLength(0)
  })

  it('leaves no listener behind once it has slept, so that one signal serves a million naps', async () => {
    const { timers, after } = manualAfter()
    const { signal } = new AbortController()
    const nap = sleepOn(after, 10, signal)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    timers[0]!.run()
    await nap
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })
})

describe('time that never goes backwards', () => {
  it('follows forward, absorbs a backward jump and then goes on at the new pace', () => {
    const readings = [10, 15, 5, 6, 9, 20]
    const steady = neverBackwards(() => readings.shift()!)
    expect([steady(), steady(), steady(), steady(), steady(), steady()]).toEqual([10, 15, 15, 16, 19, 30])
  })

  it('never decreases and never runs ahead of the forward steps, whatever it reads', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1_000_000, max: 1_000_000 }), { minLength: 1 }), (readings) => {
        let i = 0
        const steady = neverBackwards(() => readings[i]!)
        let last = steady()
        expect(last).toBe(readings[0])
        for (i = 1; i < readings.length; i += 1) {
          const next = steady()
          expect(next - last).toBe(Math.max(0, readings[i]! - readings[i - 1]!))
          last = next
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('a clock from what the caller gave', () => {
  it('is the clock itself when it is one, and the system clock for Date.now', () => {
    expect(clockFrom(systemClock)).toBe(systemClock)
    expect(clockFrom(Date.now)).toBe(systemClock)
  })

  it('is refused by name when it is neither a clock nor a function', () => {
    for (const bad of [null, undefined, 5, {}, { now: () => 1 }]) {
      expect(() => clockFrom(bad as never)).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
    }
    expect(() => clockFrom(null as never)).toThrow(/clockFrom\(now\) must be a function .* or a Clock, got null/)
  })

  it('reads a plain function for the time, guards it against jumps, and waits in real time', async () => {
    let time = 500
    const clock = clockFrom(() => time)
    expect(clock.now()).toBe(500)
    const started = clock.monotonic()
    time = 100
    expect(clock.now()).toBe(100)
    expect(clock.monotonic()).toBe(started)
    time = 150
    expect(clock.monotonic()).toBe(started + 50)

    vi.useFakeTimers()
    try {
      const run = vi.fn()
      clock.after(20, run)
      const nap = clock.sleep(20)
      vi.advanceTimersByTime(20)
      await nap
      expect(run).toHaveBeenCalledTimes(1)
    } finally {
      vi.useRealTimers()
    }
  })
})
