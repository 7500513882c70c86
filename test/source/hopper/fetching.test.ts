import { describe, expect, it } from 'vitest'
import { ack } from '../../../src/core/stream/result.js'
import { DrainedError } from '../../../src/core/stream/stream-errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { held, listed, messageOf, numbered, scripted } from './support.js'

const transient = (text: string) => Object.assign(new Error(text), { transient: true })

describe('a fetch that fails', () => {
  // S42
  it('ends the run with its error, once what was fetched is settled', async () => {
    const clock = new FakeClock()
    const broke = new Error('subscription broke')
    const give = listed([messageOf()])
    const sub = scripted({
      next: () =>
        give().catch(() => {
          throw broke
        }),
    })
    const running = new Hopper({ clock }).run(sub, async () => {
      await clock.sleep(100)
      return ack()
    })
    const outcome = expect(running).rejects.toBe(broke)
    await clock.advance(100)
    await outcome
    expect(sub.settled.map(({ result }) => result.action)).toEqual(['ack'])
    expect(clock.pending).toBe(0)
  })

  // W33
  it('is tried again with full jitter when its adapter says that it may pass', async () => {
    const clock = new FakeClock()
    const at: number[] = []
    let fetches = 0
    const sub = scripted({
      next: async () => {
        fetches += 1
        at.push(clock.monotonic())
        if (fetches <= 4) throw transient('away')
        throw new DrainedError()
      },
    })
    const running = new Hopper({ clock, random: () => 0.5 }).run(sub, () => ack())
    await clock.advance(10_000)
    await running
    expect(at).toEqual([0, 50, 150, 350, 750])
  })

  // W33
  it('ends the run after fetchRetry.attempts in a row, and a success starts the count anew', async () => {
    const clock = new FakeClock()
    let fetches = 0
    const sub = scripted({
      next: async () => {
        fetches += 1
        if (fetches === 3) return messageOf()
        throw transient(`away ${fetches}`)
      },
    })
    const options = { clock, random: () => 0.999, fetchRetry: { attempts: 3, baseMs: 10, maxMs: 15 } }
    const running = new Hopper(options).run(sub, () => ack())
    const outcome = expect(running).rejects.toThrow('away 6')
    await clock.advance(10_000)
    await outcome
    expect(sub.settled).toHaveLength(1)
  })

  it('with an abort that is not ours is a failure, not a clean end', async () => {
    const abort = new DOMException('The operation was aborted', 'AbortError')
    const running = new Hopper({ clock: new FakeClock() }).run(scripted({ next: () => Promise.reject(abort) }), () =>
      ack(),
    )
    await expect(running).rejects.toBe(abort)
  })

  it('is not waited for when the run is stopped meanwhile', async () => {
    const clock = new FakeClock()
    const hopper = new Hopper({ clock, random: () => 0.999 })
    const running = hopper.run(scripted({ next: () => Promise.reject(transient('away')) }), () => ack())
    await clock.settle()
    await hopper.close()
    expect(await running).toMatchObject({ received: 0 })
    expect(clock.pending).toBe(0)
  })
})

describe('back-pressure', () => {
  it('reserves the place before the fetch: never more is fetched than maxInFlight', async () => {
    const clock = new FakeClock()
    let fetched = 0
    const sub = scripted({
      next: async () => {
        fetched += 1
        return messageOf({ partitionKey: String(fetched) })
      },
    })
    const gate = held()
    const hopper = new Hopper({ clock, concurrency: 8, maxInFlight: 3 })
    const running = hopper.run(sub, async () => {
      await gate.promise
      return ack()
    })
    await clock.advance(60_000)
    expect(fetched).toBe(3)
    void hopper.close()
    gate.release()
    await running
  })

  it('asks a source that knows batches for as many as there is room', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, batched: true, messages: numbered(100) })
    const sub = await inlet.subscribe()
    await sub.close()
    const batched = sub.capability('batched')!
    const asked: number[] = []
    const watched = scripted({
      settle: (m, r) => sub.settle(m, r, { signal: new AbortController().signal }),
      can: {
        batched: {
          ...batched,
          nextBatch: (limit, o) => {
            asked.push(limit)
            return batched.nextBatch(limit, o)
          },
        },
      },
    })
    const running = new Hopper({ clock, maxInFlight: 40 }).run(watched, async () => {
      await clock.sleep(1)
      return ack()
    })
    await clock.advance(100)
    expect(await running).toMatchObject({ acked: 100 })
    // Refilled by a quarter of what may wait, not message by message.
    expect(asked[0]).toBe(40)
    expect(asked.length).toBeLessThan(12)
  })
})

// W29
describe('the lag', () => {
  it('is sampled by the clock and never in the fetch path; its errors are ignored', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: numbered(500) })
    const sub = await inlet.subscribe()
    let asked = 0
    const watched = scripted({
      next: (signal) => sub.next({ signal }),
      settle: (m, r) => sub.settle(m, r, { signal: new AbortController().signal }),
      can: {
        lagReporter: {
          lag: async () => {
            asked += 1
            if (asked === 2) throw new Error('no lag today')
            return 7
          },
        },
      },
    })
    const hopper = new Hopper({ clock, lagIntervalMs: 1_000 })
    const running = hopper.run(watched, () => ack())
    await clock.settle()
    expect(asked).toBe(1)
    await clock.advance(3_000)
    expect(asked).toBe(4)
    await hopper.close()
    expect(await running).toMatchObject({ acked: 500 })
    await clock.advance(10_000)
    expect(asked).toBe(4)
    expect(clock.pending).toBe(0)
  })

  it('does not hold up a run, although it never answers', async () => {
    const clock = new FakeClock()
    const sub = scripted({
      next: listed([messageOf()]),
      can: { lagReporter: { lag: () => new Promise(() => undefined) } },
    })
    expect(await new Hopper({ clock }).run(sub, () => ack())).toMatchObject({ acked: 1 })
  })
})
