import { describe, expect, it } from 'vitest'
import { defineWork, dependency } from '../../../src/index.js'
import type { ActionReport } from '../../../src/ops/api.js'
import { BY, scene } from './scene.js'

describe('redrive of all that match', () => {
  it('lets dead items run again with their id, group and history, and reports how many', async () => {
    const { actions, bank, charged, statuses, open, clock, context, w } = scene()
    const ids = await charged(7)
    expect(await statuses(ids)).toEqual(ids.map(() => 'dead'))
    bank.failure = undefined
    await w.stop()

    const report = await actions.redrive({ type: 'charge' }, BY)

    expect(report).toMatchObject({ verb: 'redrive', total: 7, done: 7, passed: 0, state: 'done', ...BY })
    expect(await Promise.all(ids.map(open))).toEqual(ids.map(() => 1))
    w.start()
    await clock.advance(1_000)
    expect(await statuses(ids)).toEqual(ids.map(() => 'completed'))
    expect(await Promise.all(ids.map(open))).toEqual(ids.map(() => 0))
    expect((await context.ledger.inspect!.attempts(ids[0]!)).length).toBe(2)
    expect((await context.ledger.read([ids[0]!]))[0]?.envelope.redrives).toBe(1)
  })

  it('goes page by page, reports each, and skips items that die again meanwhile', async () => {
    const { actions, bank, charged, clock, w } = scene()
    await charged(23)
    bank.runs.length = 0
    const told: ActionReport[] = []

    // Redriven items run immediately, between two pages, and die again.
    const report = await actions.redrive(
      { type: 'charge' },
      { ...BY, pageSize: 5, onProgress: (page) => void told.push(page) },
    )

    await clock.advance(1_000)
    expect(report).toMatchObject({ total: 23, done: 23, passed: 0 })
    expect(told.map(({ done }) => done)).toEqual([5, 10, 15, 20, 23])
    expect(bank.runs.length).toBe(23)
    await w.stop()
  })

  it('takes what its query matches, and nothing else', async () => {
    const { actions, charged, statuses, clock } = scene()
    const old = await charged(3)
    await clock.advance(60_000)
    const since = clock.now()
    await clock.advance(1)
    const fresh = await charged(2)

    const report = await actions.redrive({ before: since }, { ...BY, dryRun: true })
    expect(report).toMatchObject({ total: 3, done: 0, state: 'done' })
    expect(await actions.actions()).toEqual([])
    expect(await actions.redrive({ type: 'noop' }, BY)).toMatchObject({ total: 0, done: 0, state: 'done' })
    expect(await statuses([...old, ...fresh])).toEqual(Array(5).fill('dead'))

    expect(await actions.redrive({ after: since }, { ...BY, dryRun: true })).toMatchObject({ total: 2 })
    await expect(actions.redrive({ after: since, before: since }, BY)).rejects.toThrow('earlier than `before`')
    expect(await actions.redrive({ before: since }, BY)).toMatchObject({ total: 3, done: 3, passed: 0 })
  })

  it('takes a window of time: what ended in it, and nothing before or after', async () => {
    const { actions, charged, statuses, clock, bank } = scene()
    const early = await charged(2)
    const after = clock.now()
    const within = await charged(3)
    const before = clock.now()
    const late = await charged(4)
    bank.failure = undefined

    expect(await actions.redrive({ after, before }, BY)).toMatchObject({ total: 3, done: 3, passed: 0 })

    await clock.advance(1_000)
    expect(await statuses(within)).toEqual(Array(3).fill('completed'))
    expect(await statuses([...early, ...late])).toEqual(Array(6).fill('dead'))
  })

  it('is logged once at its beginning and once at its end, with who, why and counts', async () => {
    const { actions, charged } = scene()
    await charged(4)
    const { id } = await actions.redrive({ type: 'charge' }, BY)
    const log = await actions.log()
    expect(log.map(({ who, why, what }) => ({ who, why, what }))).toEqual([
      { ...BY, what: `redrive of type:charge (action ${id}) done: 4 changed, 0 had moved on` },
      { ...BY, what: `redrive of type:charge (action ${id}) began: 4 match` },
    ])
    expect(await actions.actions()).toMatchObject([{ id, verb: 'redrive', done: 4, state: 'done' }])
  })
})

describe('discard', () => {
  it('leaves nothing of dead items, and of others everything', async () => {
    const { actions, charged, statuses, w, noop, clock } = scene()
    const dead = await charged(5)
    const later = await w.enqueue(noop(null), { delay: 60_000 }).accepted()

    expect(await actions.discard({}, BY)).toMatchObject({ total: 5, done: 5, passed: 0, state: 'done' })

    expect(await statuses([...dead, later.id])).toEqual([...Array(5).fill(undefined), 'pending'])
    await clock.advance(61_000)
    expect(await statuses([later.id])).toEqual(['completed'])
  })
})

describe('cancel of all that match', () => {
  it('ends waiting items, notifies running ones, and closes groups and gates exactly', async () => {
    const gone: string[] = []
    const slow = defineWork('slow', (name: string, ctx) => {
      return new Promise<never>((_, reject) => {
        ctx.signal.addEventListener('abort', () => {
          gone.push(name)
          reject(new Error('told to stop'))
        })
      })
    })
    const { actions, w, clock, noop, item, open } = scene({ others: [slow] })
    const running = slow('a')
    const later = slow('b')
    const gate = dependency({ on: [later], queue: noop(null) })
    const other = noop(null)
    await Promise.all([
      w.enqueue(running).accepted(),
      w.enqueue(later, { delay: 60_000 }).accepted(),
      w.enqueue(gate).accepted(),
      w.enqueue(other, { delay: 60_000 }).accepted(),
    ])
    await clock.advance(10)
    expect((await item(running.id))?.status).toBe('running')

    const report = await actions.cancel({ type: 'slow' }, BY)

    expect(report).toMatchObject({ total: 2, done: 2, passed: 0, state: 'done' })
    await clock.advance(1_000)
    expect(gone).toEqual(['a'])
    for (const id of [running.id, later.id]) {
      expect(await item(id)).toMatchObject({ status: 'dead', ending: 'cancelled' })
      expect(await open(id)).toBe(0)
    }
    // The gate was notified that its member will never succeed.
    expect(await item(gate.id)).toMatchObject({ status: 'dead', error: expect.stringContaining('cannot be satisfied') })
    expect((await item(other.id))?.status).toBe('pending')
    await w.stop()
  })
})

describe('runNow of all that match', () => {
  it('lets scheduled and retrying items run, each once, and skips those that a pause holds', async () => {
    const { actions, w, clock, charge, noop, bank, item } = scene({ attempts: 5 })
    const retried = charge('r')
    await w.enqueue(retried).accepted()
    await clock.advance(1_000)
    expect(await item(retried.id)).toMatchObject({ status: 'pending', envelope: { attempt: 2 } })
    const scheduled = noop(null)
    await w.enqueue(scheduled, { delay: 3_600_000 }).accepted()
    bank.runs.length = 0

    const report = await actions.runNow({}, BY)

    expect(report).toMatchObject({ total: 2, done: 2, passed: 0 })
    await clock.advance(100)
    expect(bank.runs).toEqual(['r'])
    expect((await item(scheduled.id))?.status).toBe('completed')
    expect(await item(retried.id)).toMatchObject({ status: 'pending', envelope: { attempt: 3 } })

    await actions.pause({ type: 'noop' }, BY)
    const paused = noop(null)
    await w.enqueue(paused).accepted()
    await clock.advance(2_000)
    expect(await item(paused.id)).toMatchObject({ hold: { by: 'pause' } })
    expect(await actions.runNow({ type: 'noop' }, BY)).toMatchObject({ total: 1, done: 0, passed: 1 })
    await actions.resume({ type: 'noop' }, BY)
    await clock.advance(2_000)
    expect((await item(paused.id))?.status).toBe('completed')
    await w.stop()
  })
})
