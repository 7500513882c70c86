import { describe, expect, it } from 'vitest'
import { openActions } from '../../../src/ops/actions/open-actions.js'
import type { BulkVerb } from '../../../src/ops/api.js'
import type { OpsContext } from '../../../src/ops/context.js'
import { seededRandom } from '../../../src/testing/seeded-random.js'
import { BY, scene } from './scene.js'

/**
 * The context of a process that dies at its n-th write, of whatever kind: before it happens, or after it has and before the answer of
 * it. Nothing that they ask for afterwards is answered.
 */
function mortal(context: OpsContext, diesAt: number, isAfter: boolean): OpsContext & { readonly death: Promise<void> } {
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
  const { ledger } = context
  const { store } = context.ports
  return {
    ...context,
    death,
    ledger: { ...ledger, inspect: ledger.inspect!, commit: (batch) => writing(() => ledger.commit(batch)) },
    ports: {
      ...context.ports,
      store: {
        get: (key) => store.get(key),
        set: (key, value, ttl) => writing(() => store.set(key, value, ttl)),
        setIfNotExists: (key, value, ttl) => writing(() => store.setIfNotExists(key, value, ttl)),
      },
    },
  }
}

const COUNT = 23

describe.each(['redrive', 'discard', 'cancel', 'runNow'] as const)('a bulk %s whose process dies', (verb: BulkVerb) => {
  it.each(Array.from({ length: 15 }, (_, seed) => [seed]))(
    'is continued by another, exactly (seed %i)',
    async (seed) => {
      const random = seededRandom(`${verb} ${seed}`)
      const isDead = verb === 'redrive' || verb === 'discard'
      const s = scene({ attempts: verb === 'runNow' ? 5 : 1 })
      const { context, clock, bank, w, charge } = s
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
      const one = mortal(context, diesAt, random() < 0.5)
      const action = openActions(one)[verb]({ type: 'charge' }, { ...BY, pageSize: 5 })
      const isDone = await Promise.race([action.then(() => true), one.death.then(() => false)])
      // What was redriven, or let run, runs meanwhile, and fails again.
      if (random() < 0.7) await clock.advance(1_000)

      const actions = openActions(context)
      const [begun] = await actions.actions()
      expect(begun, 'the action is on record').toBeDefined()
      const report = isDone ? begun! : await actions.continue(begun!.id)

      expect(report).toMatchObject({ total: COUNT, done: COUNT, passed: 0, state: 'done' })
      await clock.advance(1_000)
      // Each once: none was redriven or let run twice.
      if (verb === 'redrive' || verb === 'runNow') expect(bank.runs.length).toBe(COUNT)
      const views = await context.ledger.read(ids)
      if (verb === 'redrive') expect(views.map((view) => view?.envelope.redrives)).toEqual(ids.map(() => 1))
      if (verb === 'discard') expect(views).toEqual(ids.map(() => undefined))
      if (verb === 'cancel') {
        expect(views.map((view) => view?.ending)).toEqual(ids.map(() => 'cancelled'))
        expect(await Promise.all(ids.map(s.open))).toEqual(ids.map(() => 0))
      }
      // Nothing is left of the counting, and to go on with what is done changes nothing.
      expect((await context.ledger.groups([`@ops/${report.id}`]))[0]?.open ?? 0).toBe(0)
      expect(await actions.continue(report.id)).toEqual(report)
      await w.stop()
    },
  )
})

describe('a bulk action whose answers get lost', () => {
  it('asks again, and counts each once', async () => {
    const { context, charged, clock } = scene()
    await charged(20)
    let n = 0
    const forgetful: OpsContext = {
      ...context,
      ledger: {
        ...context.ledger,
        commit: async (batch) => {
          const results = await context.ledger.commit(batch)
          n += 1
          if (n % 2 === 0) throw new Error('the connection was lost')
          return results
        },
      },
    }
    const action = openActions(forgetful).redrive({}, { ...BY, pageSize: 5 })
    let isOver = false
    void action.finally(() => {
      isOver = true
    })
    while (!isOver) await clock.advance(100)
    expect(await action).toMatchObject({ total: 20, done: 20, passed: 0, state: 'done' })
  })
})

describe('a bulk action that cannot immediately store which items had moved on', () => {
  it('tries that again, and not the page, whose changes it would not count', async () => {
    const { context, charged, clock, actions, w } = scene()
    const ids = await charged(10)
    await w.stop()
    let isFirst = true
    let hasFailed = false
    const clumsy: OpsContext = {
      ...context,
      ledger: {
        ...context.ledger,
        commit: async (batch) => {
          // One of the first page moves on between the look at it and its commit.
          if (batch.length > 1 && isFirst) {
            isFirst = false
            await actions.redrive(ids.at(-1)!, BY)
          }
          return context.ledger.commit(batch)
        },
      },
      ports: {
        ...context.ports,
        store: {
          get: (key) => context.ports.store.get(key),
          setIfNotExists: (...given) => context.ports.store.setIfNotExists(...given),
          set: async (key, value, ttl) => {
            if (key.includes(':page:') && !hasFailed) {
              hasFailed = true
              throw new Error('the connection was lost')
            }
            return context.ports.store.set(key, value, ttl)
          },
        },
      },
    }
    const told: number[] = []
    const action = openActions(clumsy).redrive(
      {},
      { ...BY, pageSize: 5, onProgress: ({ done }) => void told.push(done) },
    )
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

describe('a bulk action that is aborted', () => {
  it('stops after the current page, and can be continued', async () => {
    const { actions, charged } = scene()
    await charged(20)
    const stop = new AbortController()
    const report = await actions.redrive(
      {},
      { ...BY, pageSize: 5, signal: stop.signal, onProgress: () => stop.abort() },
    )
    expect(report).toMatchObject({ total: 20, done: 5, state: 'stopped' })
    expect(await actions.continue(report.id)).toMatchObject({ total: 20, done: 20, passed: 0, state: 'done' })
  })

  it('counts what has moved on by itself', async () => {
    const { actions, charged, context } = scene()
    const ids = await charged(20)
    const stop = new AbortController()
    const { id } = await actions.redrive(
      {},
      { ...BY, pageSize: 5, signal: stop.signal, onProgress: () => stop.abort() },
    )
    // The page order is newest first: these have not been reached.
    await openActions(context).discard(ids[0]!, BY)
    await openActions(context).redrive(ids[1]!, BY)
    expect(await actions.continue(id)).toMatchObject({ total: 20, done: 18, passed: 2, state: 'done' })
  })
})
