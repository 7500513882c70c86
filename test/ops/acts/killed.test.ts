import { describe, expect, it } from 'vitest'
import { openActs } from '../../../src/ops/acts/index.js'
import type { Verb } from '../../../src/ops/api.js'
import type { Desk } from '../../../src/ops/desk.js'
import { seededRandom } from '../../../src/testing/seeded-random.js'
import { BY, scene } from './scene.js'

/**
 * The desk of somebody who dies at their n-th write, of whatever kind: before it happens, or after it has and before they hear of
 * it. Nothing that they ask for afterwards is answered.
 */
function mortal(desk: Desk, diesAt: number, isAfter: boolean): Desk & { readonly death: Promise<void> } {
  let writes = 0
  let die = (): void => undefined
  const death = new Promise<void>((resolve) => {
    die = resolve
  })
  const never = new Promise<never>(() => undefined)
  const writing = async <T>(call: () => T | Promise<T>): Promise<T> => {
    writes += 1
    if (writes > diesAt) return never
    if (writes < diesAt) return call()
    if (isAfter) await call()
    die()
    return never
  }
  const { ledger } = desk
  const { store } = desk.ports
  return {
    ...desk,
    death,
    ledger: { ...ledger, inspect: ledger.inspect!, commit: (batch) => writing(() => ledger.commit(batch)) },
    ports: {
      ...desk.ports,
      store: {
        get: (key) => store.get(key),
        set: (key, value, ttl) => writing(() => store.set(key, value, ttl)),
        setIfNotExists: (key, value, ttl) => writing(() => store.setIfNotExists(key, value, ttl)),
      },
    },
  }
}

const COUNT = 23

describe.each(['redrive', 'discard', 'cancel', 'runNow'] as const)('a bulk %s whose process dies', (verb: Verb) => {
  it.each(Array.from({ length: 15 }, (_, seed) => [seed]))(
    'is gone on with by another, exactly (seed %i)',
    async (seed) => {
      const random = seededRandom(`${verb} ${seed}`)
      const isDead = verb === 'redrive' || verb === 'discard'
      const s = scene({ attempts: verb === 'runNow' ? 5 : 1 })
      const { desk, clock, bank, w, charge } = s
      const ids = isDead
        ? await s.charged(COUNT)
        : await Promise.all(
            Array.from(
              { length: COUNT },
              async () => (await w.enqueue(charge('later'), { delay: 3_600_000 }).accepted()).id,
            ),
          )
      bank.runs.length = 0
      const diesAt = 3 + Math.floor(random() * 9)
      const one = mortal(desk, diesAt, random() < 0.5)
      const action = openActs(one)[verb]({ type: 'charge' }, { ...BY, pageSize: 5 })
      const isDone = await Promise.race([action.then(() => true), one.death.then(() => false)])
      // What was redriven, or let run, runs meanwhile, and fails again.
      if (random() < 0.7) await clock.advance(1_000)

      const acts = openActs(desk)
      const [begun] = await acts.actions()
      expect(begun, 'the action is on record').toBeDefined()
      const report = isDone ? begun! : await acts.proceed(begun!.id)

      expect(report).toMatchObject({ total: COUNT, done: COUNT, passed: 0, state: 'done' })
      await clock.advance(1_000)
      // Each once: none was redriven or let run twice.
      if (verb === 'redrive' || verb === 'runNow') expect(bank.runs.length).toBe(COUNT)
      const views = await desk.ledger.read(ids)
      if (verb === 'redrive') expect(views.map((view) => view?.envelope.redrives)).toEqual(ids.map(() => 1))
      if (verb === 'discard') expect(views).toEqual(ids.map(() => undefined))
      if (verb === 'cancel') {
        expect(views.map((view) => view?.ending)).toEqual(ids.map(() => 'cancelled'))
        expect(await Promise.all(ids.map(s.open))).toEqual(ids.map(() => 0))
      }
      // Nothing is left of the counting, and to go on with what is done changes nothing.
      expect((await desk.ledger.groups([`@ops/${report.id}`]))[0]?.open ?? 0).toBe(0)
      expect(await acts.proceed(report.id)).toEqual(report)
      await w.stop()
    },
  )
})

describe('a bulk action whose answers get lost', () => {
  it('asks again, and counts each once', async () => {
    const { desk, charged, clock } = scene()
    await charged(20)
    let n = 0
    const forgetful: Desk = {
      ...desk,
      ledger: {
        ...desk.ledger,
        commit: async (batch) => {
          const results = await desk.ledger.commit(batch)
          n += 1
          if (n % 2 === 0) throw new Error('the connection was lost')
          return results
        },
      },
    }
    const action = openActs(forgetful).redrive({}, { ...BY, pageSize: 5 })
    let isOver = false
    void action.finally(() => {
      isOver = true
    })
    while (!isOver) await clock.advance(100)
    expect(await action).toMatchObject({ total: 20, done: 20, passed: 0, state: 'done' })
  })
})

describe('a bulk action that cannot write down at once what had moved on', () => {
  it('tries that again, and not the page, whose changes it would not count', async () => {
    const { desk, charged, clock, acts, w } = scene()
    const ids = await charged(10)
    await w.stop()
    let isFirst = true
    let hasFailed = false
    const clumsy: Desk = {
      ...desk,
      ledger: {
        ...desk.ledger,
        commit: async (batch) => {
          // One of the first page moves on between the look at it and its commit.
          if (batch.length > 1 && isFirst) {
            isFirst = false
            await acts.redrive(ids.at(-1)!, BY)
          }
          return desk.ledger.commit(batch)
        },
      },
      ports: {
        ...desk.ports,
        store: {
          get: (key) => desk.ports.store.get(key),
          setIfNotExists: (...given) => desk.ports.store.setIfNotExists(...given),
          set: async (key, value, ttl) => {
            if (key.includes(':page:') && !hasFailed) {
              hasFailed = true
              throw new Error('the connection was lost')
            }
            return desk.ports.store.set(key, value, ttl)
          },
        },
      },
    }
    const told: number[] = []
    const action = openActs(clumsy).redrive({}, { ...BY, pageSize: 5, onProgress: ({ done }) => void told.push(done) })
    let isOver = false
    void action.finally(() => {
      isOver = true
    })
    while (!isOver) await clock.advance(100)
    expect(hasFailed).toBe(true)
    expect(told).toEqual([4, 9])
    expect(await action).toMatchObject({ total: 10, done: 9, passed: 1, state: 'done' })
  })
})

describe('a bulk action that is told to stop', () => {
  it('stops after the page under way, and is gone on with', async () => {
    const { acts, charged } = scene()
    await charged(20)
    const stop = new AbortController()
    const report = await acts.redrive({}, { ...BY, pageSize: 5, signal: stop.signal, onProgress: () => stop.abort() })
    expect(report).toMatchObject({ total: 20, done: 5, state: 'stopped' })
    expect(await acts.proceed(report.id)).toMatchObject({ total: 20, done: 20, passed: 0, state: 'done' })
  })

  it('counts what has moved on by itself', async () => {
    const { acts, charged, desk } = scene()
    const ids = await charged(20)
    const stop = new AbortController()
    const { id } = await acts.redrive({}, { ...BY, pageSize: 5, signal: stop.signal, onProgress: () => stop.abort() })
    // The page order is newest first: these have not been reached.
    await openActs(desk).discard(ids[0]!, BY)
    await openActs(desk).redrive(ids[1]!, BY)
    expect(await acts.proceed(id)).toMatchObject({ total: 20, done: 18, passed: 2, state: 'done' })
  })
})
