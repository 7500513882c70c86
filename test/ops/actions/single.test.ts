import { describe, expect, it } from 'vitest'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { createWork, defineWork, dependency, memoryBackend } from '../../../src/index.js'
import { openActions } from '../../../src/ops/actions/open-actions.js'
import { openOpsContext } from '../../../src/ops/context.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { BY, scene } from './scene.js'

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'no error',
    (error: { readonly code?: string }) => error.code,
  )

describe('an action on one item', () => {
  it('is one commit, with its log line', async () => {
    const { actions, bank, charged, clock, item } = scene()
    const [id] = await charged(1)
    bank.failure = undefined
    expect(await actions.redrive(id!, BY)).toMatchObject({ target: id, total: 1, done: 1, passed: 0, state: 'done' })
    await clock.advance(100)
    expect((await item(id!))?.status).toBe('completed')
    expect(await actions.log()).toMatchObject([{ ...BY, what: `redrive ${id}` }])
    expect(await actions.actions()).toEqual([])
  })

  it('ends what was cancelled in a run that failed before it heard of it, instead of leaving it for its retry', async () => {
    const { actions, context, w, charge, item } = scene({ attempts: 5 })
    await w.stop()
    const { id } = await w.enqueue(charge('o-1')).accepted()
    const ask = { queues: [{ queue: 'default', max: 1 }], leaseMs: 30_000, worker: 'w' }
    const [claimed] = (await context.ledger.claim(ask)).items
    await actions.cancel(id, BY)
    expect(await actions.cancel(id, BY), 'asked for already').toMatchObject({ done: 0 })
    await context.ledger.commit([
      {
        guard: { by: 'lease', lease: claimed!.lease },
        effects: [{ do: 'retry', id, attempt: 2, delayMs: 3_600_000, reason: 'retry' }],
      },
    ])
    expect(await item(id)).toMatchObject({ status: 'pending', cancelReason: BY.why })
    expect(await actions.cancel(id, BY)).toMatchObject({ done: 1 })
    expect(await item(id)).toMatchObject({ status: 'dead', ending: 'cancelled' })
  })

  it('rejects with NO_ITEM for an unknown id', async () => {
    const { actions } = scene()
    for (const verb of ['redrive', 'discard', 'cancel', 'runNow'] as const) {
      expect(await codeOf(actions[verb]('nobody', BY))).toBe('NO_ITEM')
    }
    expect(await actions.log()).toEqual([])
  })

  it('rejects with WRONG_STATE, and says what to do instead', async () => {
    const { actions, w, noop, clock, charged, statuses } = scene()
    const done = noop(null)
    const later = noop(null)
    await w.enqueue(done).accepted()
    await w.enqueue(later, { delay: 60_000 }).accepted()
    const [dead] = await charged(1)
    await clock.advance(10)
    expect(await codeOf(actions.redrive(done.id, BY))).toBe('WRONG_STATE')
    expect(await codeOf(actions.discard(later.id, BY))).toBe('WRONG_STATE')
    expect(await codeOf(actions.cancel(done.id, BY))).toBe('WRONG_STATE')
    await expect(actions.runNow(dead!, BY)).rejects.toThrow('Redrive it to let it run again.')
    await expect(actions.redrive({ state: 'waiting' }, BY)).rejects.toMatchObject({ code: 'WRONG_STATE' })
    expect(await statuses([done.id, later.id, dead!])).toEqual(['completed', 'pending', 'dead'])
    expect(await actions.log()).toEqual([])
  })

  it('cancels a cancelled item without a second line in the log', async () => {
    const { actions, w, noop } = scene()
    const later = noop(null)
    await w.enqueue(later, { delay: 60_000 }).accepted()
    expect(await actions.cancel(later.id, BY)).toMatchObject({ done: 1, passed: 0 })
    expect(await actions.cancel(later.id, BY)).toMatchObject({ done: 0, passed: 1 })
    expect((await actions.log()).length).toBe(1)
    // What a person has ended, a person can put back.
    expect(await actions.redrive(later.id, BY)).toMatchObject({ done: 1 })
  })

  it('lets an item that a gate holds check its members itself', async () => {
    const { actions, w, noop, clock, item } = scene()
    const never = dependency({ on: ['nobody enqueues this'], queue: noop(null) })
    await w.enqueue(never).accepted()
    expect(await actions.runNow(never.id, BY)).toMatchObject({ done: 1 })
    await clock.advance(100)
    // It has looked, found nothing, and looks again later.
    const view = await item(never.id)
    expect([view?.status, view?.hold]).toEqual(['pending', undefined])
  })

  it('only counts when it is asked to', async () => {
    const { actions, charged, item } = scene()
    const [id] = await charged(1)
    expect(await actions.redrive(id!, { ...BY, dryRun: true })).toMatchObject({ total: 1, done: 0, passed: 0 })
    expect((await item(id!))?.status).toBe('dead')
  })

  it('refuses nonsense before anything happens', async () => {
    const { actions } = scene()
    await expect(actions.redrive({}, {} as never)).rejects.toThrow('redrive.who')
    await expect(actions.redrive({ typ: 'x' } as never, BY)).rejects.toThrow('Did you mean "type"?')
    await expect(actions.cancel({}, { ...BY, canary: true } as never)).rejects.toThrow('canary')
    await expect(actions.redrive({ state: 'ded' as never }, BY)).rejects.toThrow('state')
    await expect(actions.redrive({}, { ...BY, pageSize: 0 })).rejects.toThrow('pageSize')
    await expect(actions.pause({} as never, BY)).rejects.toThrow('either { queue } or { type }')
    await expect(actions.continue('nothing')).rejects.toMatchObject({ code: 'NO_ACTION' })
    expect(await actions.log()).toEqual([])
  })
})

describe('on plain ports', () => {
  it('actions on one item if it can, and says what is missing if it cannot', async () => {
    const clock = new FakeClock()
    const { queue, store, pubsub } = memoryBackend({ clock })
    const context = openOpsContext(overPlainPorts, { queue, store: { ...store }, pubsub }, { clock })
    const actions = openActions(context)
    expect(context.ledger.atomic).toBe(false)
    await expect(actions.redrive({}, BY)).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      facts: { capability: 'inspect' },
    })
    expect(await codeOf(actions.log())).toBe('NOT_SUPPORTED')
    expect(await codeOf(actions.cancel('nobody', BY))).toBe('NO_ITEM')
    const noop = defineWork('noop', (_: null, ctx) => ctx.void())
    const w = createWork({ ...context.ports, clock, work: [noop] })
    const later = noop(null)
    await w.enqueue(later, { delay: 60_000 }).accepted()
    expect(await actions.cancel(later.id, BY)).toMatchObject({ done: 1 })
    expect((await context.ledger.read([later.id]))[0]).toMatchObject({ status: 'dead', ending: 'cancelled' })
    expect(await codeOf(actions.redrive(later.id, BY))).toBe('NOT_SUPPORTED')
    const stopped = w.stop()
    await clock.advance(10_000)
    await stopped
    await actions.pause({ queue: 'default' }, BY)
    expect((await context.ledger.paused?.({ queues: ['default'], types: [] }))?.queues).toEqual(['default'])
    await actions.resume({ queue: 'default' }, BY)
  })
})

describe('pausing and resuming', () => {
  it('answers whether that changed anything, and writes nothing where it did not', async () => {
    const { actions, charged } = scene()
    await charged(1)
    const type = { what: 'type', name: 'charge' }
    expect(await actions.resume({ type: 'charge' }, BY)).toEqual({ ...type, isChanged: false, isKnown: true })
    expect(await actions.pause({ type: 'charge' }, BY)).toEqual({ ...type, isChanged: true, isKnown: true })
    expect(await actions.pause({ type: 'charge' }, BY)).toEqual({ ...type, isChanged: false, isKnown: true })
    expect(await actions.resume({ type: 'charge' }, BY)).toEqual({ ...type, isChanged: true, isKnown: true })
    expect((await actions.log()).map(({ what }) => what)).toEqual(['resume type charge', 'pause type charge'])
    expect(await actions.pause({ queue: 'default' }, BY)).toMatchObject({ isChanged: true, isKnown: true })
  })

  it('pauses a name that is not in use, unless it must be known', async () => {
    const { actions, context } = scene()
    const nobody = { type: 'nobody' }
    expect(await actions.pause(nobody, { ...BY, mustBeKnown: true })).toEqual({
      what: 'type',
      name: 'nobody',
      isChanged: false,
      isKnown: false,
    })
    const paused = async () => (await context.ledger.paused?.({ queues: [], types: ['nobody'] }))?.types
    expect(await paused()).toEqual([])
    expect(await actions.pause(nobody, BY)).toMatchObject({ isChanged: true, isKnown: false })
    expect(await paused()).toEqual(['nobody'])
    expect(await actions.resume(nobody, BY)).toMatchObject({ isChanged: true })
    await expect(actions.resume(nobody, { ...BY, mustBeKnown: true } as never)).rejects.toThrow('mustBeKnown')
  })
})
