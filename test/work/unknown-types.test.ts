import { describe, expect, it } from 'vitest'
import { defineWork, dependency, type WorkSystem } from '../../src/index.js'
import { ownedBy } from '../../src/ports/find-ledger.js'
import type { Ports } from '../../src/ports/ports.js'
import { isNativeGround } from './controls/tapped.js'
import { GROUNDS, gate, PLAIN_GROUNDS, world } from './support.js'

const NATIVE = GROUNDS.filter(isNativeGround)

/** A work type whose runs are noted with the service that has it. */
function served(type: string, by: string, ran: string[]) {
  return defineWork(type, (n: number, ctx) => {
    ran.push(`${by} ${type} ${n}`)
    return ctx.result(n)
  })
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

function inspectOf(ports: Ports) {
  const found = ownedBy(ports, [])
  if (!('open' in found)) throw new Error(`no ledger: the ${found.foreign} is foreign`)
  return found.open({ prefix: 'work:' }).inspect!
}

const stateOf = async (w: Pick<WorkSystem, 'states'>, id: string) => (await w.states([id]))[0]

describe.each(NATIVE)('two services on one backend, on %s ports', (ground) => {
  it.each([
    ['default retries', {}],
    ['single attempts', { retry: { attempts: 1 } }],
  ])('each complete their own types, with a process that has none beside them, with %s', async (_, options) => {
    const ran: string[] = []
    const [mail, pdf] = [served('mail', 'a', ran), served('pdf', 'b', ran)]
    const { w: a, another, until, dead } = world(ground, { work: [mail] })
    const b = another({ work: [pdf] })
    another({})
    const handles = numbers(40).flatMap((n) => [a.enqueue(mail(n), options), b.enqueue(pdf(n), options)])

    await until(Promise.all(handles.map((handle) => handle.result())))
    expect(ran.filter((run) => run.startsWith('a mail'))).toHaveLength(40)
    expect(ran.filter((run) => run.startsWith('b pdf'))).toHaveLength(40)
    expect(ran).toHaveLength(80)
    expect(await dead()).toBe(0)
  })

  it('have their gates run by any started process, and what a gate queues by the one that knows it', async () => {
    const ran: string[] = []
    const [mail, pdf] = [served('mail', 'a', ran), served('pdf', 'b', ran)]
    const { w: a, another, until, clock, events } = world(ground, { work: [mail, pdf], autoStart: false })
    const first = mail(1)
    const gated = a.enqueue(dependency({ on: first, queue: pdf(2), poll: 10 }))
    await until(gated.accepted())
    const inTurn = async (work: readonly (typeof mail | typeof pdf)[]) => {
      const only = another({ work })
      await clock.advance(2_000)
      const stopped = only.stop()
      await clock.advance(6_000)
      await stopped
    }
    await until(a.enqueue(first).accepted())
    await inTurn([mail])
    // Any process that is alive when its members have ended runs the gate, even one without types.
    await inTurn([])
    expect(ran).toEqual(['a mail 1'])
    expect(events.filter((event) => event.kind === 'queued').map((event) => event.type)).toContain('pdf')
    await inTurn([pdf])
    expect(ran).toEqual(['a mail 1', 'b pdf 2'])
  })
})

describe.each(NATIVE)('an item whose type no live worker knows, on %s ports', (ground) => {
  it('ends as expired when its deadline passes, and notifies every caller that waits', async () => {
    const ghost = defineWork('ghost', (_: null, ctx) => ctx.void(), { retry: { attempts: 1 } })
    const next = served('next', 'here', [])
    const producer = world(ground, { work: [ghost, next], autoStart: false })
    const { w, another, until, clock, events } = producer
    const late = ghost(null)
    const gated = w.enqueue(dependency({ on: late, queue: next(1), config: 'all-done', poll: 10 }))
    const result = w.enqueue(late, { timeout: 5_000 }).result()
    const stays = w.enqueue(ghost(null))
    const far = w.enqueue(ghost(null), { timeout: 3_600_000 })
    // Due when its deadline has long passed: it waits for its time, as one of a known type does.
    const later = w.enqueue(ghost(null), { delay: 20_000, timeout: 5_000 })
    await until(Promise.all([gated, stays, far, later].map((handle) => handle.accepted())))
    const outcome = result.catch((error: Error) => error.message)
    const other = another({ work: [next] })
    await clock.advance(4_500)
    expect((await stateOf(other, late.id))?.status).toBe('pending')

    await clock.advance(3_000)
    expect(await until(outcome)).toContain('deadline exceeded')
    expect(await stateOf(other, late.id)).toMatchObject({ status: 'dead', ending: 'expired', attempt: 1 })
    expect(await until(gated)).toBe(1)
    expect(events.filter(({ kind }) => kind === 'expired')).toHaveLength(1)
    expect(other.metrics.get('work.expired', { type: 'ghost' })?.value).toBe(1)
    const statuses = async () => (await other.states([stays, far, later].map(({ id }) => id))).map((one) => one?.status)
    expect(await statuses()).toEqual(['pending', 'pending', 'pending'])
    await clock.advance(15_000)
    expect(await statuses()).toEqual(['pending', 'pending', 'dead'])
  })

  it.each([
    ['its deadline', { timeout: 1_000 }, {}],
    ['unknownTypeTimeout', {}, { unknownTypeTimeout: 1_000 }],
  ])('is ended by %s in bounded steps, however many there are', async (_, ofItem, ofSystem) => {
    const ghost = defineWork('ghost', (_: number, ctx) => ctx.void())
    const { w, another, until, clock, dead } = world(ground, { work: [ghost], autoStart: false })
    const works = numbers(700).map((n) => ghost(n))
    await until(w.enqueueMany(works, ofItem))
    await clock.advance(2_000)
    another(ofSystem)
    await clock.advance(3_000)
    expect(await dead()).toBe(700)
  })

  it('is dead-lettered as unroutable once it has been ready for unknownTypeTimeout', async () => {
    const ghost = defineWork('ghost', (_: null, ctx) => ctx.void())
    const { w, another, until, clock, events, ports } = world(ground, { work: [ghost], autoStart: false })
    const waits = w.enqueue(ghost(null))
    const later = w.enqueue(ghost(null), { delay: 60_000 })
    await until(Promise.all([waits, later].map((handle) => handle.accepted())))
    const outcome = waits.result().catch((error: Error) => error.message)
    const group = waits.group()
    const other = another({ unknownTypeTimeout: 30_000 })
    await clock.advance(29_000)
    expect((await stateOf(other, waits.id))?.status).toBe('pending')

    // It checks every 15 s.
    await clock.advance(20_000)
    const error = await until(outcome)
    expect(error).toContain('no live worker handled "ghost" for 30000 ms')
    await until(group)
    expect(await stateOf(other, waits.id)).toMatchObject({ status: 'dead', ending: 'unroutable' })
    expect((await inspectOf(ports).list({ state: 'dead', limit: 9 })).items).toMatchObject([{ class: 'poison' }])
    expect(events.filter((event) => event.kind === 'failed')).toMatchObject([
      { id: waits.id, type: 'ghost', class: 'poison', rule: 'unknown-type', willRetry: false },
    ])
    expect(other.metrics.get('work.failed', { type: 'ghost' })?.value).toBe(1)
    // It counts from when an item is ready, not from when it was enqueued.
    await clock.advance(30_000)
    expect((await stateOf(other, later.id))?.status).toBe('pending')
    await clock.advance(30_000)
    expect((await stateOf(other, later.id))?.ending).toBe('unroutable')
  })

  it('is left alone by unknownTypeTimeout while a live worker knows its type, or a pause holds it', async () => {
    const end = gate()
    const slow = defineWork('slow', async (_: number, ctx) => {
      await end.promise
      return ctx.void()
    })
    const learnt = defineWork('learnt', async (_: number, ctx) => {
      await end.promise
      return ctx.void()
    })
    const ghost = defineWork('ghost', (_: number, ctx) => ctx.void())
    const { w, another, until, clock, dead } = world(ground, { work: [ghost], autoStart: false })
    const worker = another({ work: [slow], concurrency: 1 })
    another({ unknownTypeTimeout: 2_000 })
    await until(w.pause({ type: 'ghost' }))
    const handles = numbers(3).flatMap((n) => [worker.enqueue(slow(n)), worker.enqueue(learnt(n))])
    const paused = w.enqueue(ghost(1))
    await until(paused.accepted())
    await clock.advance(40_000)
    expect(await dead()).toBe(0)

    end.open()
    await until(Promise.all(handles.map((handle) => handle.result())))
    await until(w.resume({ type: 'ghost' }))
    await clock.advance(40_000)
    expect(await dead()).toBe(1)
  })

  it('is left alone by unknownTypeTimeout when its worker restarts, however old it is', async () => {
    const pdf = defineWork('pdf', () => new Promise<never>(() => undefined))
    const { w, another, until, clock, dead } = world(ground, { work: [pdf], autoStart: false })
    await until(w.enqueueMany(numbers(20).map(() => pdf(null))))
    another({ unknownTypeTimeout: 60_000 })
    const worker = another({ work: [pdf], concurrency: 1, stopDrain: 0 })
    await clock.advance(150_000)
    await until(worker.stop())
    await clock.advance(45_000)
    expect(await dead()).toBe(0)

    const restarted = another({ work: [pdf], concurrency: 1, stopDrain: 0 })
    await clock.advance(20_000)
    await until(restarted.stop())
    // The time counts from the start again.
    await clock.advance(45_000)
    expect(await dead()).toBe(0)
    await clock.advance(60_000)
    expect(await dead()).toBeGreaterThan(15)
  })

  it('is left alone by unknownTypeTimeout when its worker starts a little later than another', async () => {
    const pdf = defineWork('pdf', (_: null, ctx) => ctx.void())
    const { w, another, until, clock, dead } = world(ground, { work: [pdf], autoStart: false })
    const handles = await until(w.enqueueMany(numbers(20).map(() => pdf(null))))
    await clock.advance(120_000)
    another({ unknownTypeTimeout: 60_000 })
    await clock.advance(3_000)
    another({ work: [pdf] })
    await until(Promise.all(handles.map((handle) => handle.result())))
    expect(await dead()).toBe(0)
  })

  it('is ended by unknownTypeTimeout beside a small buffer for enqueues', async () => {
    const ghost = defineWork('ghost', (_: number, ctx) => ctx.void())
    const { w, another, until, clock, dead, errors } = world(ground, { work: [ghost], autoStart: false })
    await until(w.enqueueMany(numbers(400).map((n) => ghost(n))))
    another({ unknownTypeTimeout: 1_000, maxUnsent: 50 })
    await clock.advance(4_000)
    expect([await dead(), errors]).toEqual([400, []])
  })

  it('is no longer unknown once a worker has learnt its type by enqueueing it', async () => {
    const learnt = defineWork('learnt', (_: null, ctx) => ctx.void())
    const { w, until, clock, ports } = world(ground, {})
    await clock.advance(1_000)
    await until(w.enqueue(learnt(null)).result())
    await clock.advance(500)
    const [me] = await until(inspectOf(ports).workers())
    expect(me?.types).toContain('learnt')
    expect(Object.keys(me?.settings?.types ?? {})).toContain('learnt')
  })
})

describe('the option unknownTypeTimeout', () => {
  it.each(NATIVE)('is refused where it is no time, on %s ports', (ground) => {
    for (const unknownTypeTimeout of [0, -1, Number.NaN, '5 s'])
      expect(() => world(ground, { unknownTypeTimeout } as never)).toThrow('createWork.unknownTypeTimeout')
  })

  it.each(PLAIN_GROUNDS)('is refused on %s ports, which do not know their workers', (ground) => {
    expect(() => world(ground, { unknownTypeTimeout: 1_000 })).toThrow('unknownTypeTimeout')
  })
})
