import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CancelledError, type CancelResult, defineWork, priorityDoer, type WorkContext } from '../../../src/index.js'
import type { ItemView } from '../../../src/ports/inspect.js'
import type { CommitResult, Settlement } from '../../../src/ports/settlement.js'
import { type CancelServices, cancelItem } from '../../../src/work/control/cancel.js'
import { GROUNDS, gate, PLAIN_GROUNDS, world } from '../support.js'
import { deafInbox } from './tapped.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

/** A type whose runs wait for `end`, ignore their signal, and record why it fired. */
function deaf(retry = { attempts: 3, base: 1, jitter: 0 }) {
  const end = gate()
  const begun = gate()
  const reasons: unknown[] = []
  const state = { runs: 0 }
  const type = defineWork(
    'deaf',
    async (_: null, ctx) => {
      state.runs += 1
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      begun.open()
      await end.promise
      return ctx.result('done after all')
    },
    { retry },
  )
  return { type, end, begun, reasons, state }
}

describe.each(GROUNDS)('a cancel on %s ports', (ground) => {
  // W25
  it('of what waits ends it without a run, closes its group and notifies the callers that wait', async () => {
    const slow = defineWork('slow', (_: null, ctx) => ctx.result(1))
    const { w, until, events, clock } = world(ground, { work: [slow] })
    const handle = w.enqueue(slow(null), { delay: 500 })
    const result = expect(handle.result()).rejects.toThrow('cancelled: not needed')
    const group = handle.group()
    await until(handle.accepted())

    expect(await until(w.cancel(handle.id, 'not needed'))).toEqual({ kind: 'cancelled' })
    await until(result)
    expect(await until(group)).toBeUndefined()
    await clock.advance(700)
    expect(events.map(({ kind }) => kind)).toEqual(['queued', 'cancelled', 'group-done'])
    expect(events[1]).toMatchObject({ kind: 'cancelled', id: handle.id, reason: 'not needed', attempt: 1 })
    expect((await until(w.list({ status: 'dead' }))).map(({ error }) => error)).toEqual(['cancelled: not needed'])
    expect(w.metrics.get('work.cancelled', { type: 'slow' })?.value).toBe(1)
    expect(w.metrics.get('work.failed', { type: 'slow' })?.value).toBe(0)
  })

  it('of what this process has just enqueued waits for it to arrive, and ends it', async () => {
    let runs = 0
    const quick = defineWork('quick', (_: number, ctx) => {
      runs += 1
      return ctx.void()
    })
    const slow = defineWork('slow', (_n, ctx) => ctx.void(), { input: z.number().refine(async () => true) })
    const { w, until, clock } = world(ground, { work: [quick, slow] })
    const handles = [w.enqueue(quick(1), { delay: 50 }), w.enqueue(slow(2), { delay: 50 })]
    for (const handle of handles) handle.result().catch(() => undefined)
    const answers = Promise.all(handles.map(({ id }) => w.cancel(id, 'changed my mind')))

    expect(await until(answers)).toEqual([{ kind: 'cancelled' }, { kind: 'cancelled' }])
    await clock.advance(200)
    expect(runs).toBe(0)
    expect(await until(w.cancel('missing'))).toEqual({ kind: 'unknown' })
  })

  it('of what waits reaches the process that enqueued it', async () => {
    const { w, until, another } = world(ground, { autoStart: false, work: [noop] })
    const other = another({ autoStart: false, work: [noop] })
    const handle = w.enqueue(noop(null))
    await until(handle.accepted())
    const result = expect(handle.result()).rejects.toThrow('cancelled: elsewhere')
    const group = handle.group()

    expect(await until(other.cancel(handle.id, 'elsewhere'))).toEqual({ kind: 'cancelled' })
    await until(result)
    await until(group)
  })

  // W25
  it('of what runs in another process fires its signal and ends it, though its handler goes on', async () => {
    const { type, end, begun, reasons, state } = deaf()
    const { w, until, another, events, clock } = world(ground, { autoStart: false, work: [type] })
    const worker = another({ work: [type] })
    const handle = w.enqueue(type(null))
    const result = expect(handle.result()).rejects.toThrow('cancelled: enough')
    const group = handle.group()
    await until(begun.promise)

    expect(await until(handle.cancel('enough'))).toMatchObject({ kind: 'requested' })
    await until(result, 1_000)
    await until(group, 1_000)
    expect(reasons).toHaveLength(1)
    expect(reasons[0]).toBeInstanceOf(CancelledError)
    expect(reasons[0]).toMatchObject({ code: 'CANCELLED', why: 'enough' })
    end.open()
    await clock.advance(1_000)
    expect(state.runs).toBe(1)
    expect(worker.active()).toEqual([])
    expect(events.filter(({ kind }) => kind !== 'queued' && kind !== 'started').map(({ kind }) => kind)).toEqual([
      'cancelled',
      'group-done',
    ])
    await expect(until(handle.result())).rejects.toThrow('cancelled: enough')
  })

  it('of a run that obeys its signal by throwing is a cancel, not a failure', async () => {
    const begun = gate<WorkContext>()
    const obedient = defineWork('obedient', async (_: null, ctx) => {
      begun.open(ctx)
      await new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
      return ctx.void()
    })
    const { w, until, events } = world(ground, { work: [obedient] })
    const handle = w.enqueue(obedient(null))
    const result = expect(handle.result()).rejects.toThrow('cancelled')
    await until(begun.promise)
    await until(handle.cancel())

    await until(result)
    expect(events.map(({ kind }) => kind)).not.toContain('failed')
    expect((await until(w.list())).map(({ status, error }) => [status, error])).toEqual([['dead', 'cancelled']])
  })

  it('of a run that failed before it was notified is not tried again', async () => {
    const fail = gate()
    const begun = gate()
    const state = { runs: 0 }
    const flaky = defineWork(
      'flaky',
      async (_: null, ctx) => {
        state.runs += 1
        begun.open()
        await fail.promise
        if (state.runs === 1) throw new Error('before it was notified')
        return ctx.void()
      },
      { retry: { attempts: 5, base: 50, jitter: 0 } },
    )
    // No notification arrives, and the run fails long before its next heartbeat.
    const options = { work: [flaky], heartbeat: 60_000, visibility: 120_000 } as const
    const { until, another, clock } = world(ground, options, deafInbox)
    const other = another({ autoStart: false, work: [flaky] })
    const handle = other.enqueue(flaky(null))
    const result = expect(handle.result()).rejects.toThrow(/cancelled/)
    await until(begun.promise)
    const cancelled = other.cancel(handle.id, 'too late?')
    fail.open()
    await until(cancelled)
    await until(result)
    await clock.advance(1_000)

    expect(state.runs).toBe(1)
  })

  it('of what is unknown, and of what has ended, says so', async () => {
    const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))
    const { w, until } = world(ground, { work: [add] })
    const handle = w.enqueue(add(1))
    await until(handle.result())

    expect(await until(w.cancel('missing'))).toEqual({ kind: 'unknown' })
    expect(await until(handle.cancel('late'))).toMatchObject({ kind: 'ended', status: 'completed' })
    expect(await until(handle.result())).toBe(2)
    await expect(w.cancel('')).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })

  it('has the same effect when it is repeated', async () => {
    const { w, until, events } = world(ground, { autoStart: false, work: [noop] })
    const handle = w.enqueue(noop(null))
    await until(handle.accepted())

    expect(await until(w.cancel(handle.id))).toEqual({ kind: 'cancelled' })
    expect(await until(w.cancel(handle.id))).toEqual({ kind: 'cancelled' })
    expect(events.filter(({ kind }) => kind === 'cancelled')).toHaveLength(1)
    expect(events.filter(({ kind }) => kind === 'group-done')).toHaveLength(1)
  })

  it('of one child leaves the others, and the group closes when they have ended', async () => {
    const child = defineWork('child', (n: number, ctx) => ctx.result(n))
    const made: string[] = []
    const parent = defineWork('parent', (_: null, ctx) => {
      const children = [child(1), child(2)] as const
      made.push(...children.map(({ id }) => id))
      return ctx.queue(children, { delay: 500 })
    })
    const { w, until, events } = world(ground, { work: [parent, child] })
    const handle = w.enqueue(parent(null))
    await until(handle.result())
    await until(w.cancel(made[0]!))

    expect(await until(handle.group())).toBe(2)
    expect(events.filter(({ kind }) => kind === 'group-done')).toHaveLength(1)
  })

  it.each([
    ['all-success', []],
    ['all-done', ['after']],
  ] as const)('notifies the gates that count it: %s', async (condition, expected) => {
    const ran: string[] = []
    const step = defineWork('step', (name: string, ctx) => {
      ran.push(name)
      return ctx.void()
    })
    const first = step('first')
    const parent = defineWork('parent', (_: null, ctx) =>
      ctx.queue([first], { delay: 60_000 }).next([step('after')], condition),
    )
    const { w, until } = world(ground, { work: [parent, step] })
    const handle = w.enqueue(parent(null))
    await until(handle.result())
    const group = handle.group()
    expect(await until(w.cancel(first.id))).toEqual({ kind: 'cancelled' })
    await until(group, 20_000)

    expect(ran).toEqual(expected)
  })

  it('of what a process holds and has not begun ends it before its turn', async () => {
    const end = gate()
    const begun = gate()
    const ran: number[] = []
    const one = defineWork('one', async (n: number, ctx) => {
      ran.push(n)
      begun.open()
      await end.promise
      return ctx.result(n)
    })
    const { w, until, clock } = world(ground, { work: [one], doer: priorityDoer({ max: 1, buffer: 5 }) })
    const first = w.enqueue(one(1))
    await until(begun.promise)
    const second = w.enqueue(one(2))
    const result = expect(second.result()).rejects.toThrow('cancelled')
    await until(second.accepted())
    await clock.advance(50)
    await until(second.cancel())
    await until(result, 8_000)
    end.open()
    await until(first.result())

    expect(ran).toEqual([1])
  })

  it('of work that skips the queue ends its run too', async () => {
    const { type, begun, end } = deaf()
    const { w, until } = world(ground, { work: [type] })
    const handle = w.enqueue(type(null), { skipQueue: true })
    const result = expect(handle.result()).rejects.toThrow('cancelled')
    await until(begun.promise)
    await until(handle.cancel())

    await until(result)
    end.open()
  })

  it('arrives with the next heartbeat when notifications are lost', async () => {
    const { type, begun, end } = deaf()
    const { w, until, clock } = world(ground, { work: [type] }, deafInbox)
    const handle = w.enqueue(type(null))
    const result = expect(handle.result()).rejects.toThrow('cancelled: by heartbeat')
    await until(begun.promise)
    const startedAt = clock.now()
    await until(handle.cancel('by heartbeat'))
    await until(result, 20_000)

    expect(clock.now() - startedAt).toBeLessThan(10_000)
    end.open()
  })
})

describe.each(PLAIN_GROUNDS)('a cancel on %s ports, which know nothing of it', (ground) => {
  it('leaves its reason under cancel:<id> while its worker has not been notified', async () => {
    const { type, begun, end } = deaf()
    const { w, until, ports } = world(ground, { work: [type] }, deafInbox)
    const handle = w.enqueue(type(null))
    await until(begun.promise)
    await until(handle.cancel('why not'))

    expect(await ports.store.get(`work:cancel:${handle.id}`)).toBe('why not')
    end.open()
  })
})

describe('a cancel that meets an item on the move', () => {
  const view = (status: ItemView['status'], over: Partial<ItemView> = {}): ItemView => ({
    envelope: { id: 'a', type: 't', groupId: 'g', queueAt: 0, startAt: 0, attempt: 1, priority: 0, gates: ['k'] },
    status,
    ...over,
  })
  const services = (views: (ItemView | undefined)[], answers: CommitResult[]) => {
    const committed: Settlement[] = []
    const ended: string[] = []
    const made: CancelServices = {
      who: 'me',
      keep: { completedMs: 1, deadMs: 2 },
      read: async () => views.shift(),
      commit: async (settlement) => {
        committed.push(settlement)
        return answers.shift()!
      },
      ended: (_, error) => ended.push(error),
    }
    return { made, committed, ended }
  }
  const verbs = ({ effects }: Settlement) => effects.map((effect) => effect.do)

  it('reads and decides again, until the item no longer changes', async () => {
    const { made, committed, ended } = services(
      [view('pending'), view('running', { worker: 'w1' }), view('pending')],
      [{ kind: 'stale' }, { kind: 'stale' }, { kind: 'applied', closed: [] }],
    )

    expect(await cancelItem(made, 'a', 'why')).toEqual({ kind: 'cancelled' })
    expect(committed.map(verbs)).toEqual([
      ['deadLetter', 'leaveGroup', 'notifyGate', 'log'],
      ['requestCancel', 'log'],
      ['deadLetter', 'leaveGroup', 'notifyGate', 'log'],
    ])
    expect(ended).toEqual(['cancelled: why'])
  })

  it('names the holder that it has notified', async () => {
    const { made } = services([view('running', { worker: 'w1' })], [{ kind: 'applied', closed: [] }])
    const answer: CancelResult = await cancelItem(made, 'a', '')
    expect(answer).toEqual({ kind: 'requested', holder: 'w1' })
  })

  it('rejects when the item never stops changing, and when the backend fails', async () => {
    const always = services(
      Array.from({ length: 60 }, () => view('pending')),
      Array.from({ length: 60 }, () => ({ kind: 'stale' as const })),
    )
    await expect(cancelItem(always.made, 'a', '')).rejects.toMatchObject({ code: 'CANCEL_CONTENDED' })
    const failing = services([view('pending')], [{ kind: 'failed', error: new Error('down') }])
    await expect(cancelItem(failing.made, 'a', '')).rejects.toThrow('down')
  })
})
