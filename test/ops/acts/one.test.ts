import { describe, expect, it } from 'vitest'
import { createWork, defineWork, dependency, memoryBackend } from '../../../src/index.js'
import { openActs } from '../../../src/ops/acts/index.js'
import { openDesk } from '../../../src/ops/desk.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { BY, scene } from './scene.js'

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'no error',
    (error: { readonly code?: string }) => error.code,
  )

describe('an act on one item', () => {
  it('is done at once, and logged with it', async () => {
    const { acts, bank, charged, clock, item } = scene()
    const [id] = await charged(1)
    bank.failure = undefined
    expect(await acts.redrive(id!, BY)).toMatchObject({ target: id, total: 1, done: 1, passed: 0, state: 'done' })
    await clock.advance(100)
    expect((await item(id!))?.status).toBe('success')
    expect(await acts.log()).toMatchObject([{ ...BY, what: `redrive ${id}` }])
    expect(await acts.actions()).toEqual([])
  })

  it('ends what was cancelled in a run that failed before it heard of it, instead of leaving it for its retry', async () => {
    const { acts, desk, w, charge, item } = scene({ attempts: 5 })
    await w.stop()
    const { id } = await w.enqueue(charge('o-1')).accepted()
    const ask = { from: [{ queue: 'default', max: 1 }], leaseMs: 30_000, worker: 'w' }
    const [claimed] = (await desk.ledger.claim(ask)).items
    await acts.cancel(id, BY)
    expect(await acts.cancel(id, BY), 'asked for already').toMatchObject({ done: 0 })
    await desk.ledger.commit([
      {
        guard: { by: 'lease', lease: claimed!.lease },
        effects: [{ do: 'retryAt', id, attempt: 2, delayMs: 3_600_000, why: 'retry' }],
      },
    ])
    expect(await item(id)).toMatchObject({ status: 'pending', cancelled: BY.why })
    expect(await acts.cancel(id, BY)).toMatchObject({ done: 1 })
    expect(await item(id)).toMatchObject({ status: 'dead', ending: 'cancelled' })
  })

  it('rejects with NO_ITEM for an id that nobody knows', async () => {
    const { acts } = scene()
    for (const verb of ['redrive', 'discard', 'cancel', 'runNow'] as const) {
      expect(await codeOf(acts[verb]('nobody', BY))).toBe('NO_ITEM')
    }
    expect(await acts.log()).toEqual([])
  })

  it('rejects with WRONG_STATE, and says what to do instead', async () => {
    const { acts, w, noop, clock, charged, statuses } = scene()
    const done = noop(null)
    const later = noop(null)
    await w.enqueue(done).accepted()
    await w.enqueue(later, { delay: 60_000 }).accepted()
    const [dead] = await charged(1)
    await clock.advance(10)
    expect(await codeOf(acts.redrive(done.id, BY))).toBe('WRONG_STATE')
    expect(await codeOf(acts.discard(later.id, BY))).toBe('WRONG_STATE')
    expect(await codeOf(acts.cancel(done.id, BY))).toBe('WRONG_STATE')
    await expect(acts.runNow(dead!, BY)).rejects.toThrow('Redrive it to let it run again.')
    await expect(acts.redrive({ state: 'waiting' }, BY)).rejects.toMatchObject({ code: 'WRONG_STATE' })
    expect(await statuses([done.id, later.id, dead!])).toEqual(['success', 'pending', 'dead'])
    expect(await acts.log()).toEqual([])
  })

  it('cancels what somebody has cancelled already without a second line in the log', async () => {
    const { acts, w, noop } = scene()
    const later = noop(null)
    await w.enqueue(later, { delay: 60_000 }).accepted()
    expect(await acts.cancel(later.id, BY)).toMatchObject({ done: 1, passed: 0 })
    expect(await acts.cancel(later.id, BY)).toMatchObject({ done: 0, passed: 1 })
    expect((await acts.log()).length).toBe(1)
    // What a person has ended, a person can put back.
    expect(await acts.redrive(later.id, BY)).toMatchObject({ done: 1 })
  })

  it('lets what a gate holds look for itself', async () => {
    const { acts, w, noop, clock, item } = scene()
    const never = dependency({ on: ['nobody enqueues this'], queue: noop(null) })
    await w.enqueue(never).accepted()
    expect(await acts.runNow(never.id, BY)).toMatchObject({ done: 1 })
    await clock.advance(100)
    // It has looked, found nothing, and looks again later.
    const view = await item(never.id)
    expect([view?.status, view?.hold]).toEqual(['pending', undefined])
  })

  it('only counts when it is asked to', async () => {
    const { acts, charged, item } = scene()
    const [id] = await charged(1)
    expect(await acts.redrive(id!, { ...BY, dryRun: true })).toMatchObject({ total: 1, done: 0, passed: 0 })
    expect((await item(id!))?.status).toBe('dead')
  })

  it('refuses nonsense before anything happens', async () => {
    const { acts } = scene()
    await expect(acts.redrive({}, {} as never)).rejects.toThrow('redrive.who')
    await expect(acts.redrive({ typ: 'x' } as never, BY)).rejects.toThrow('Did you mean "type"?')
    await expect(acts.cancel({}, { ...BY, canary: true } as never)).rejects.toThrow('canary')
    await expect(acts.redrive({ state: 'ded' as never }, BY)).rejects.toThrow('state')
    await expect(acts.redrive({}, { ...BY, pageSize: 0 })).rejects.toThrow('pageSize')
    await expect(acts.pause({} as never, BY)).rejects.toThrow('either { queue } or { type }')
    await expect(acts.proceed('nothing')).rejects.toMatchObject({ code: 'NO_ACTION' })
    expect(await acts.log()).toEqual([])
  })
})

describe('on plain ports', () => {
  it('acts on one item where it can, and says what is missing where it cannot', async () => {
    const clock = new FakeClock()
    const { queue, store, pubsub } = memoryBackend({ clock })
    const desk = openDesk({ queue, store: { ...store }, pubsub }, { clock })
    const acts = openActs(desk)
    expect(desk.ledger.atomic).toBe(false)
    await expect(acts.redrive({}, BY)).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      facts: { capability: 'inspect' },
    })
    expect(await codeOf(acts.log())).toBe('NOT_SUPPORTED')
    expect(await codeOf(acts.cancel('nobody', BY))).toBe('NO_ITEM')
    const noop = defineWork('noop', (_: null, ctx) => ctx.void())
    const w = createWork({ ...desk.ports, clock, work: [noop] })
    const later = noop(null)
    await w.enqueue(later, { delay: 60_000 }).accepted()
    expect(await acts.cancel(later.id, BY)).toMatchObject({ done: 1 })
    expect((await desk.ledger.read([later.id]))[0]).toMatchObject({ status: 'dead', ending: 'cancelled' })
    expect(await codeOf(acts.redrive(later.id, BY))).toBe('NOT_SUPPORTED')
    const stopped = w.stop()
    await clock.advance(10_000)
    await stopped
    await acts.pause({ queue: 'default' }, BY)
    expect((await desk.ledger.paused?.({ queues: ['default'], types: [] }))?.queues).toEqual(['default'])
    await acts.resume({ queue: 'default' }, BY)
  })
})
