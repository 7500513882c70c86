import { readFile } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FakeClock } from '../../src/testing/fake-clock.js'

describe('a fake clock that is not moved', () => {
  it('stands still at a fixed start, and at the start it is given', async () => {
    const clock = new FakeClock()
    await turn()
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1))
    expect(clock.monotonic()).toBe(0)
    expect(new FakeClock({ startAt: 5 }).now()).toBe(5)
  })

  it('fires nothing, not even what is due at once', async () => {
    const clock = new FakeClock()
    let fired = 0
    clock.after(0, () => {
      fired += 1
    })
    await clock.settle()
    expect(fired).toBe(0)
    expect(clock.pending).toBe(1)
  })

  it('knows when its next timer is due', () => {
    const clock = new FakeClock({ startAt: 1_000 })
    expect(clock.nextDueAt()).toBeUndefined()
    clock.after(Infinity, () => {})
    expect(clock.nextDueAt()).toBeUndefined()
    clock.after(50, () => {})
    const cancel = clock.after(20, () => {})
    expect(clock.nextDueAt()).toBe(1_020)
    cancel()
    expect(clock.nextDueAt()).toBe(1_050)
    expect(clock.pending).toBe(2)
  })
})

describe('a fake clock that is advanced', { timeout: 60_000 }, () => {
  it('fires in due order, then in the order of setting, each at its own time', async () => {
    const clock = new FakeClock({ startAt: 0 })
    const log: string[] = []
    const note = (name: string) => () => log.push(`${name}@${clock.now()}/${clock.monotonic()}`)
    clock.after(20, note('c'))
    clock.after(10, note('a'))
    clock.after(10, note('b'))
    clock.after(21, note('late'))
    await clock.advance(20)
    expect(log).toEqual(['a@10/10', 'b@10/10', 'c@20/20'])
    expect(clock.now()).toBe(20)
    expect(clock.pending).toBe(1)
  })

  it('lets promise chains and immediates settle before the next timer fires', async () => {
    const clock = new FakeClock()
    const log: string[] = []
    clock.after(10, async () => {
      for (let i = 0; i < 50; i += 1) await Promise.resolve()
      await turn()
      await turn()
      log.push('first settled')
    })
    clock.after(10, () => log.push('second'))
    await clock.advance(10)
    expect(log).toEqual(['first settled', 'second'])
  })

  it('fires what is set on the way, when that falls inside the span', async () => {
    const clock = new FakeClock()
    const at: number[] = []
    const loop = async () => {
      for (;;) {
        await clock.sleep(100)
        at.push(clock.monotonic())
        if (at.length === 10) return
      }
    }
    const done = loop()
    await clock.advance(350)
    expect(at).toEqual([100, 200, 300])
    await clock.advance(650)
    await done
    expect(at).toHaveLength(10)
    expect(clock.pending).toBe(0)
  })

  it('sees timers which code sets only some turns after it was started', async () => {
    const clock = new FakeClock()
    let woke = false
    const start = async () => {
      await turn()
      await turn()
      await clock.sleep(10)
      woke = true
    }
    const started = start()
    await clock.advance(10)
    expect(woke).toBe(true)
    await started
  })

  it('keeps waiting as long as timers come and go', async () => {
    const clock = new FakeClock()
    const log: string[] = []
    clock.after(1, async () => {
      for (let i = 0; i < 30; i += 1) {
        clock.after(1_000, () => {})()
        await turn()
        await turn()
      }
      log.push('settled')
    })
    clock.after(2, () => log.push('second'))
    await clock.advance(2)
    expect(log).toEqual(['settled', 'second'])
  })

  it('takes overlapping calls one after the other', async () => {
    const clock = new FakeClock({ startAt: 0 })
    const log: number[] = []
    for (const ms of [5, 15, 25]) clock.after(ms, () => log.push(clock.now()))
    await Promise.all([clock.advance(10), clock.advance(10), clock.advance(10)])
    expect(clock.now()).toBe(30)
    expect(log).toEqual([5, 15, 25])
  })

  it('passes on the error of a timer, stands at its time, and goes on afterwards', async () => {
    const clock = new FakeClock({ startAt: 0 })
    let later = 0
    clock.after(5, () => {
      throw new Error('boom')
    })
    clock.after(6, () => {
      later += 1
    })
    await expect(clock.advance(10)).rejects.toThrow('boom')
    expect(clock.now()).toBe(5)
    await clock.advance(1)
    expect(later).toBe(1)
  })

  it('refuses to go backwards, nowhere, or forever', async () => {
    const clock = new FakeClock()
    for (const ms of [-1, Number.NaN, Infinity]) await expect(clock.advance(ms)).rejects.toThrow(RangeError)
    expect(() => clock.after(Number.NaN, () => {})).toThrow(/number of ms/)
    expect(() => clock.jump(Number.NaN)).toThrow(RangeError)
    expect(() => new FakeClock({ startAt: Infinity })).toThrow(/startAt/)
    expect(() => new FakeClock({ quietTurns: 0 })).toThrow(/quietTurns/)
    expect(() => new FakeClock({ maxFired: 0 })).toThrow(/maxFired/)
  })

  it('treats a negative delay as none', async () => {
    const clock = new FakeClock()
    let fired = false
    clock.after(-5, () => {
      fired = true
    })
    await clock.advance(0)
    expect(fired).toBe(true)
    expect(clock.monotonic()).toBe(0)
  })

  it('fires exactly what a sorted list says, whatever is set and cancelled', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ ms: fc.integer({ min: 0, max: 20 }), isCancelled: fc.boolean() }), { maxLength: 12 }),
        fc.array(fc.integer({ min: 0, max: 10 }), { maxLength: 4 }),
        async (timers, steps) => {
          const clock = new FakeClock({ quietTurns: 1 })
          const fired: number[] = []
          const cancels = timers.map(({ ms }, i) => clock.after(ms, () => fired.push(i)))
          for (const [i, timer] of timers.entries()) if (timer.isCancelled) cancels[i]!()
          for (const step of steps) await clock.advance(step)
          const until = steps.reduce((sum, step) => sum + step, 0)
          const live = timers.map(({ ms, isCancelled }, i) => ({ ms, isCancelled, i })).filter((t) => !t.isCancelled)
          const due =
            steps.length === 0 ? [] : live.filter((t) => t.ms <= until).sort((x, y) => x.ms - y.ms || x.i - y.i)
          expect(fired).toEqual(due.map((t) => t.i))
          expect(clock.pending).toBe(live.length - due.length)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe('timers of a fake clock', () => {
  it('are cancelled by the function that after returns, as often as one likes', async () => {
    const clock = new FakeClock()
    let fired = 0
    const count = () => {
      fired += 1
    }
    const cancel = clock.after(10, count)
    const late = clock.after(10, count)
    cancel()
    cancel()
    expect(clock.pending).toBe(1)
    await clock.advance(10)
    late()
    expect(fired).toBe(1)
  })

  it('also come in the shape of setTimeout and clearTimeout', async () => {
    const clock = new FakeClock()
    const log: string[] = []
    const gone = clock.setTimeout(() => log.push('gone'), 10)
    clock.setTimeout(() => log.push('stays'), 10)
    clock.clearTimeout(gone)
    clock.clearTimeout(gone)
    clock.clearTimeout(undefined)
    await clock.advance(10)
    expect(log).toEqual(['stays'])
  })

  it('may cancel one another at the instant both are due', async () => {
    const clock = new FakeClock()
    const log: string[] = []
    clock.after(10, () => {
      log.push('a')
      cancelB()
    })
    const cancelB = clock.after(10, () => log.push('b'))
    await clock.advance(10)
    expect(log).toEqual(['a'])
  })
})

describe('sleeping on a fake clock', () => {
  it('ends with the time, or with the reason of the signal and no timer left behind', async () => {
    const clock = new FakeClock()
    const aborter = new AbortController()
    const nap = clock.sleep(10)
    const cut = clock.sleep(10, aborter.signal)
    aborter.abort(new Error('closing'))
    await expect(cut).rejects.toThrow('closing')
    expect(clock.pending).toBe(1)
    await clock.advance(10)
    await nap
    await expect(clock.sleep(10, aborter.signal)).rejects.toThrow('closing')
    expect(clock.pending).toBe(0)
  })
})

describe('running a fake clock until it is idle', { timeout: 60_000 }, () => {
  it('reaches the last timer, also those set on the way, and not those that are never due', async () => {
    const clock = new FakeClock({ startAt: 0 })
    let rounds = 0
    const again = () => {
      rounds += 1
      if (rounds < 3) clock.after(3_600_000, again)
    }
    clock.after(1, again)
    clock.after(Infinity, () => {
      throw new Error('never')
    })
    await clock.runUntilIdle()
    expect(rounds).toBe(3)
    expect(clock.now()).toBe(7_200_001)
    expect(clock.pending).toBe(1)
  })

  it('says so when a repeating timer never lets it become idle', async () => {
    const clock = new FakeClock({ quietTurns: 1, maxFired: 1_000 })
    const poll = () => {
      clock.after(1, poll)
    }
    poll()
    await expect(clock.runUntilIdle()).rejects.toMatchObject({ code: 'CLOCK_NEVER_IDLE' })
  })

  it('says so when timers follow one another without time passing', async () => {
    const clock = new FakeClock({ quietTurns: 1, maxFired: 1_000 })
    const spin = () => {
      clock.after(0, spin)
    }
    spin()
    await expect(clock.advance(1)).rejects.toMatchObject({ code: 'CLOCK_NEVER_IDLE' })
  })
})

describe('setting the wall clock', () => {
  it('moves now forward and back, but neither monotonic time nor timers', async () => {
    const clock = new FakeClock({ startAt: 1_000_000 })
    let firedAt: number | undefined
    clock.after(100, () => {
      firedAt = clock.monotonic()
    })
    clock.jump(-3_600_000)
    expect(clock.now()).toBe(1_000_000 - 3_600_000)
    expect(clock.monotonic()).toBe(0)
    expect(clock.nextDueAt()).toBe(clock.now() + 100)
    clock.jump(7_200_000)
    await clock.advance(99)
    expect(firedAt).toBeUndefined()
    await clock.advance(1)
    expect(firedAt).toBe(100)
    expect(clock.now()).toBe(1_000_000 + 3_600_000 + 100)
  })
})

describe('the four methods of the clock', () => {
  it('work when taken off the object', async () => {
    const clock = new FakeClock({ startAt: 7 })
    const { now, monotonic, after, sleep } = clock
    let fired = false
    after(1, () => {
      fired = true
    })
    const nap = sleep(1)
    await clock.advance(1)
    await nap
    expect([now(), monotonic(), fired]).toEqual([8, 1, true])
  })
})

describe('a fake clock beside real I/O', () => {
  it('stands still until the calls that are under way are answered', async () => {
    let underWay = 0
    const clock = new FakeClock({ startAt: 0, resting: () => underWay === 0 })
    const order: string[] = []
    clock.after(1, async () => {
      underWay += 1
      // A real read, since it is real I/O that the clock cannot see.
      await readFile(new URL(import.meta.url))
      underWay -= 1
      order.push(`read at ${clock.now()}`)
    })
    clock.after(2, () => order.push(`timer at ${clock.now()}`))
    await clock.advance(2)

    expect(order).toEqual(['read at 1', 'timer at 2'])
  })
})
