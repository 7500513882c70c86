import fc from 'fast-check'
import { describe, it } from 'vitest'
import { memoryBackend } from '../../src/backends/memory/index.js'
import { overPlainPorts } from '../../src/backends/plain/over-plain-ports.js'
import type { Clock } from '../../src/core/time/clock.js'
import { ownedBy } from '../../src/ports/find-ledger.js'
import { type Played, play } from './ledger-player.js'
import { step } from './ledger-steps.js'
import { stories } from './stories.js'

const playedOften = (maxLength: number, played: Played) =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength, size: 'max' }), (steps) => play(played, steps)),
    { numRuns: stories(400) },
  )

/** The player's time, for code that wants a whole clock. Nothing played here ever waits. */
const clockOf = (now: () => number): Clock => ({
  now,
  monotonic: now,
  after: () => () => undefined,
  sleep: () => new Promise(() => undefined),
})

// A thousand long stories take their time on a busy machine, and a failing one is shrunk for as long as it takes.
const options = { timeout: 600_000 }

describe('a ledger played against its model', options, () => {
  it('gives the same answers and holds the same records, step by step, on the memory ledger', () =>
    playedOften(40, {
      open: (now) => {
        const owned = ownedBy(memoryBackend({ now }), [])
        if (!('open' in owned)) throw new Error('the memory backend has a native ledger')
        return owned.open({ prefix: 'work:' })
      },
    }))

  it('gives the same answers on plain ports, as far as those promise them', () =>
    playedOften(25, {
      isPlain: true,
      open: (now) => {
        const clock = clockOf(now)
        const { queue, pubsub, store, named } = memoryBackend({ clock })
        const whole = <Port extends object>(port: Port) =>
          Object.fromEntries(Object.getOwnPropertyNames(port).map((name) => [name, port[name as keyof Port]])) as Port
        const ports = { queue: whole(queue), pubsub: whole(pubsub), store: whole(store) }
        const { ledger } = overPlainPorts(ports, [whole(named('bulk'))], { clock })
        // The second queue is called q1 there, and bulk here.
        const nameOf = (queue: string) => (queue === 'bulk' ? 'q1' : queue)
        return {
          ...ledger,
          claim: (ask) =>
            ledger.claim({ ...ask, queues: ask.queues.map(({ queue, max }) => ({ queue: nameOf(queue), max })) }),
          commit: (batch) =>
            ledger.commit(
              batch.map(({ guard, effects }) => ({
                guard,
                effects: effects.map((e) => (e.do === 'enqueue' ? { ...e, queue: nameOf(e.queue) } : e)),
              })),
            ),
        }
      },
    }))
})
