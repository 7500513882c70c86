import { describe, expect, it } from 'vitest'
import { memoryPubSub } from '../../src/backends/memory/pubsub.js'
import { memoryQueue } from '../../src/backends/memory/queue/memory-queue.js'
import { memoryStore } from '../../src/backends/memory/store.js'
import type { PubSub, PulledWork, Queue, Store } from '../../src/ports/ports.js'
import type { PubSubClauseName, QueueClauseName, StoreClauseName } from '../../src/testing/conformance/clauses.js'
import { describePubSub, describeQueue, describeStore } from '../../src/testing/conformance/describe-ports.js'
import { collect, failedClauses } from './collect.js'

/** A fault of one line, and a clause that must notice it. */
interface Mutant<Port, Name> {
  readonly fault: string
  readonly caughtBy: Name
  readonly of: (port: Port) => Port
}

/** The port with some of its methods replaced; what a spread would lose is kept. */
const but = <Port extends object>(port: Port, changed: Partial<Port>): Port =>
  Object.defineProperties({} as Port, {
    ...Object.getOwnPropertyDescriptors(port),
    ...Object.getOwnPropertyDescriptors(changed),
  })

const queueMutants: readonly Mutant<Queue, QueueClauseName>[] = [
  {
    fault: 'ack ignores the token',
    caughtBy: 'queue: a stale handle can do nothing',
    of: (queue) => {
      const latest = new Map<string, PulledWork>()
      return but(queue, {
        pop: async (max, visibility) => {
          const pulled = await queue.pop(max, visibility)
          for (const one of pulled) latest.set(one.body, one)
          return pulled
        },
        ack: (pulled) => queue.ack(latest.get(pulled.body) ?? pulled),
      })
    },
  },
  {
    fault: 'pop never frees a lapsed lease',
    caughtBy: 'queue: a lapsed lease is freed by the next pop',
    of: (queue) => but(queue, { pop: (max) => queue.pop(max, 1e12) }),
  },
  {
    fault: 'pop returns one more than asked',
    caughtBy: 'queue: pops at most max bodies',
    of: (queue) => but(queue, { pop: (max, visibility) => queue.pop(max + 1, visibility) }),
  },
  {
    fault: 'the id is counted by the consumer',
    caughtBy: 'queue: a message keeps its id',
    of: (queue) => {
      let count = 0
      return but(queue, {
        pop: async (max, visibility) =>
          (await queue.pop(max, visibility)).map((pulled) => {
            count += 1
            return Object.defineProperties({ ...pulled } as PulledWork, {
              id: { value: String(count) },
              starts: { value: pulled.starts },
              note: { value: pulled.note },
            })
          }),
      })
    },
  },
  {
    fault: 'a lapse counts as a start',
    caughtBy: 'queue: counts the deliveries that began to run',
    of: (queue) =>
      but(queue, {
        pop: async (max, visibility) => {
          const pulled = await queue.pop(max, visibility)
          await queue.start?.(pulled)
          return pulled
        },
      }),
  },
  {
    fault: 'fail forgets the note',
    caughtBy: 'queue: keeps a note with a message',
    of: (queue) => but(queue, { fail: (pulled, delay) => queue.fail(pulled, delay) }),
  },
  {
    fault: 'a redrive leaves the letter where it is',
    caughtBy: 'queue: lists, redrives and discards dead letters',
    of: (queue) =>
      but(queue, {
        deadLetters: {
          ...queue.deadLetters!,
          redrive: async (letters) => {
            for (const { body } of letters) await queue.push(body)
            return letters.length
          },
        },
      }),
  },
  {
    fault: 'the dedupe key is ignored',
    caughtBy: 'queue: a dedupe key in the queue makes another push a no-op',
    of: (queue) => but(queue, { push: (body, { dedupeKey: _, ...rest } = {}) => queue.push(body, rest) }),
  },
  {
    fault: 'the dedupe key is never freed',
    caughtBy: 'queue: a dedupe key is free after the ack',
    of: (queue) => {
      const seen = new Set<string>()
      return but(queue, {
        push: (body, options = {}) => {
          if (options.dedupeKey !== undefined && seen.has(options.dedupeKey)) return undefined
          if (options.dedupeKey !== undefined) seen.add(options.dedupeKey)
          return queue.push(body, options)
        },
      })
    },
  },
  {
    fault: 'the delay of a push is ignored',
    caughtBy: 'queue: hides a delayed body until it is due',
    of: (queue) => but(queue, { push: (body, { delay: _, ...rest } = {}) => queue.push(body, rest) }),
  },
  {
    fault: 'the delay of a fail is ignored',
    caughtBy: 'queue: fail gives the body back after its delay',
    of: (queue) => but(queue, { fail: (pulled) => queue.fail(pulled) }),
  },
  {
    fault: 'priority is ignored',
    caughtBy: 'queue: the highest priority comes first',
    of: (queue) => but(queue, { push: (body, { priority: _, ...rest } = {}) => queue.push(body, rest) }),
  },
  {
    fault: 'a put-back goes to the end',
    caughtBy: 'queue: keeps the order of arrival, and a returned body keeps its place',
    of: (queue) => but(queue, { fail: (pulled, delay) => queue.fail(pulled, delay ?? 1) }),
  },
  {
    fault: 'the heartbeat adds to the lease instead of setting its end',
    caughtBy: 'queue: a heartbeat moves the end of the lease to now + visibility',
    of: (queue) => but(queue, { heartbeat: (pulled, visibility) => queue.heartbeat(pulled, visibility * 1.5) }),
  },
  {
    fault: 'the heartbeat does nothing',
    caughtBy: 'queue: a heartbeat moves the end of the lease to now + visibility',
    of: (queue) => but(queue, { heartbeat: () => undefined }),
  },
  {
    fault: 'attempt is always 1',
    caughtBy: 'queue: counts deliveries of a message',
    of: (queue) =>
      but(queue, {
        pop: async (max, visibility) => (await queue.pop(max, visibility)).map((one) => ({ ...one, attempt: 1 })),
      }),
  },
  {
    fault: 'a dead letter acks the message',
    caughtBy: 'queue: a dead letter is a copy',
    of: (queue) => {
      const leased: PulledWork[] = []
      return but(queue, {
        pop: async (max, visibility) => {
          const pulled = await queue.pop(max, visibility)
          leased.push(...pulled)
          return pulled
        },
        deadLetter: async (body, error) => {
          await queue.deadLetter?.(body, error)
          for (const one of leased) if (one.body === body) await queue.ack(one)
        },
      })
    },
  },
  {
    fault: 'an unknown handle throws',
    caughtBy: 'queue: an unknown handle is ignored silently',
    of: (queue) =>
      but(queue, {
        ack: (pulled) => {
          if (typeof pulled.handle !== 'string') throw new TypeError('no such handle')
          return queue.ack(pulled)
        },
      }),
  },
]

const storeMutants: readonly Mutant<Store, StoreClauseName>[] = [
  {
    fault: 'setIfNotExists always answers true',
    caughtBy: 'store: setIfNotExists is won by exactly one',
    of: (store) => but(store, { setIfNotExists: () => true }),
  },
  {
    fault: 'setIfNotExists is a get and a set',
    caughtBy: 'store: setIfNotExists is won by exactly one',
    of: (store) =>
      but(store, {
        setIfNotExists: async (key, value, ttl) => {
          const found = await store.get(key)
          await Promise.resolve()
          if (found === undefined) await store.set(key, value, ttl)
          return found === undefined
        },
      }),
  },
  {
    fault: 'increment is a get and a set',
    caughtBy: 'store: concurrent increments are all counted',
    of: (store) =>
      but(store, {
        increment: async (key, by, ttl) => {
          const sum = Number((await store.get(key)) ?? 0) + by
          await store.set(key, String(sum), ttl)
          return sum
        },
      }),
  },
  {
    fault: 'the ttl is ignored',
    caughtBy: 'store: an expired key reads undefined',
    of: (store) => but(store, { set: (key, value) => store.set(key, value) }),
  },
  {
    fault: 'a ttl of 0 expires immediately',
    caughtBy: 'store: a ttl of 0 or none means forever',
    of: (store) => but(store, { set: (key, value, ttl) => store.set(key, value, ttl === 0 ? 1 : ttl) }),
  },
  {
    fault: 'a refused setIfNotExists still writes the ttl',
    caughtBy: 'store: setIfNotExists changes nothing when a value exists',
    of: (store) =>
      but(store, {
        setIfNotExists: async (key, value, ttl) => {
          const won = await store.setIfNotExists(key, value, ttl)
          if (!won) await store.set(key, (await store.get(key)) ?? '', ttl)
          return won
        },
      }),
  },
  {
    fault: 'incrementOnce forgets its marker',
    caughtBy: 'store: incrementOnce counts once for each marker',
    of: (store) =>
      but(store, {
        incrementOnce: async (counter, _marker, by, ttl) => ({
          value: (await store.increment?.(counter, by, ttl)) ?? 0,
          applied: true,
        }),
      }),
  },
  {
    fault: 'keys are folded to lower case',
    caughtBy: 'store: keeps any key and any value apart and unchanged',
    of: (store) =>
      but(store, {
        get: (key) => store.get(key.toLowerCase()),
        set: (key, value, ttl) => store.set(key.toLowerCase(), value, ttl),
      }),
  },
  {
    fault: 'an empty value reads undefined',
    caughtBy: 'store: an absent key reads undefined',
    of: (store) => but(store, { get: async (key) => (await store.get(key)) || undefined }),
  },
]

const pubsubMutants: readonly Mutant<PubSub, PubSubClauseName>[] = [
  {
    fault: 'a throwing listener makes publish throw',
    caughtBy: 'pubsub: a listener that throws does not affect the others',
    of: () => {
      const listeners = new Set<(message: string) => void>()
      return {
        publish: (message) => {
          for (const listener of listeners) listener(message)
        },
        subscribe: (listener) => {
          listeners.add(listener)
          return () => void listeners.delete(listener)
        },
      }
    },
  },
  {
    fault: 'unsubscribing twice ends the subscription of another',
    caughtBy: 'pubsub: an unsubscribed listener receives nothing more',
    of: () => {
      const listeners: ((message: string) => void)[] = []
      return {
        publish: (message) => {
          for (const listener of [...listeners])
            try {
              listener(message)
            } catch {}
        },
        subscribe: (listener) => {
          listeners.push(listener)
          return () => void listeners.splice(Math.max(0, listeners.indexOf(listener)), 1)
        },
      }
    },
  },
  {
    fault: 'only the first subscriber is notified',
    caughtBy: 'pubsub: every subscriber receives a message, the publisher too',
    of: (pubsub) => {
      let taken = false
      return but(pubsub, {
        subscribe: (listener) => {
          const leave = taken ? () => undefined : pubsub.subscribe(listener)
          taken = true
          return leave
        },
      })
    },
  },
]

describe('a queue with a fault', () => {
  it.each(queueMutants)('is caught when $fault', async ({ caughtBy, of }) => {
    const report = await collect((test) =>
      describeQueue({ name: 'mutant', test, open: (clock) => of(memoryQueue({ clock })) }),
    )
    expect(failedClauses(report)).toContain(caughtBy)
  })
})

describe('a store with a fault', () => {
  it.each(storeMutants)('is caught when $fault', async ({ caughtBy, of }) => {
    const report = await collect((test) =>
      describeStore({ name: 'mutant', test, open: (clock) => of(memoryStore({ clock })) }),
    )
    expect(failedClauses(report)).toContain(caughtBy)
  })
})

describe('a pub/sub with a fault', () => {
  it.each(pubsubMutants)('is caught when $fault', async ({ caughtBy, of }) => {
    const report = await collect((test) =>
      describePubSub({ name: 'mutant', test, timeoutMs: 30, open: () => of(memoryPubSub()) }),
    )
    expect(failedClauses(report)).toContain(caughtBy)
  })
})

describe('a failing clause', () => {
  it('says which obligation broke, what was found and where to search', async () => {
    const open = () => ({ ...memoryStore(), setIfNotExists: () => true })
    const report = await collect((test) => describeStore({ name: 'mine', test, open, without: ['compareAndSet'] }))
    const failure = report.failed.find(({ clause }) => clause === 'store: setIfNotExists is won by exactly one')
    expect(failure?.error).toMatchObject({
      code: 'CLAUSE_BROKEN',
      clause: 'store: setIfNotExists is won by exactly one',
    })
    expect(failure?.error.message).toContain('mine does not keep the clause')
    expect(failure?.error.message).toMatch(/Obligation: Of any set of concurrent callers exactly one gets true/)
    expect(failure?.error.message).toMatch(/Found: {6}callers that won: expected 1, got 32/)
    expect(failure?.error.message).toMatch(/Hint: {7}whether it is one atomic operation/)
    expect(report.skipped).toContain('store: compareAndSet writes only over what was expected (without compareAndSet)')
  })
})
