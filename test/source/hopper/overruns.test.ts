import { describe, expect, it } from 'vitest'
import { ack } from '../../../src/core/stream/result.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { textOf } from './support.js'

/** A hopper whose first handler ignores its signal and ends when the test says so. */
function overrunning(options: { readonly ordering: 'strict' | 'relaxed'; readonly maxOverrunMs?: number }) {
  const clock = new FakeClock()
  const inlet = new MemInlet({
    clock,
    messages: ['first', 'second'].map((value) => ({ key: 'customer-7', value })),
    drainRedeliveries: true,
  })
  const events: string[] = []
  const said: string[] = []
  let running = 0
  let together = 0
  let endFirst = (): void => undefined
  const hopper = new Hopper({
    ...{ clock, lagIntervalMs: 0, concurrency: 4, handlerTimeoutMs: 1_000, ...options },
    logger: { warn: (text) => void said.push(text), error: (text) => void said.push(text) },
  })
  const run = hopper.receive(inlet, { topics: [] }, async (_, message) => {
    events.push(textOf(message))
    running += 1
    together = Math.max(together, running)
    if (events.length === 1)
      await new Promise<void>((resolve) => {
        endFirst = resolve
      })
    running -= 1
    return ack()
  })
  return { clock, inlet, hopper, run, events, said, endFirst: () => endFirst(), together: () => together }
}

describe.each(['strict', 'relaxed'] as const)('a handler that outlives its time, with %s order', (ordering) => {
  it('keeps its lane until it has ended, and says so', async () => {
    const world = overrunning({ ordering })
    await world.clock.advance(30_000)
    expect(world.events).toEqual(['first'])
    expect(world.said).toContain('A handler has outlived its time; its lane stays taken until it ends')
    world.endFirst()
    await world.clock.advance(10)
    expect(world.events.toSorted()).toEqual(['first', 'first', 'second'])
    expect(world.together()).toBe(1)
    // Its lane was never free: with strict order it comes first again.
    if (ordering === 'strict') expect(world.events).toEqual(['first', 'first', 'second'])
    await world.hopper.close()
    await world.run
  })

  it('loses its lane when it does not end at all, and that is reported', async () => {
    const world = overrunning({ ordering, maxOverrunMs: 5_000 })
    await world.clock.advance(5_999)
    expect(world.events).toEqual(['first'])
    await world.clock.advance(10)
    expect(world.events.length).toBeGreaterThan(1)
    expect(world.said.at(-1)).toBe(
      'A handler that has outlived its time did not end; its lane goes on beside it, out of order',
    )
    await world.hopper.close({ deadlineMs: 0 })
    await world.run
  })
})

describe('a handler that obeys its signal', () => {
  it('is no overrun', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: [{ value: 'a' }], drainRedeliveries: true })
    const said: string[] = []
    let runs = 0
    const hopper = new Hopper({
      ...{ clock, lagIntervalMs: 0, handlerTimeoutMs: 1_000 },
      logger: { warn: (text) => void said.push(text), error: (text) => void said.push(text) },
    })
    const run = hopper.receive(inlet, { topics: [] }, async (ctx) => {
      runs += 1
      if (runs === 1) await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      return ack()
    })
    await clock.advance(2_000)
    expect([runs, said]).toEqual([2, []])
    await hopper.close()
    await run
  })
})
