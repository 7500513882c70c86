import { describe, expect, it } from 'vitest'
import { overPlainPorts } from '../../src/backends/plain/over-plain-ports.js'
import { createWork, defineWork, dependency, memoryBackend, PoisonError, priorityDoer } from '../../src/index.js'
import { openOpsContext } from '../../src/ops/context.js'
import { openOps } from '../../src/ops/index.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())
const poison = defineWork('poison', () => {
  throw new PoisonError('never')
})
const flaky = defineWork(
  'flaky',
  () => {
    throw new Error('not yet')
  },
  { retry: { attempts: 3, base: 20_000, jitter: 0 } },
)

/** A backend, a worker that is started on demand, and ops that look at it. */
function scene(work = [noop, poison, flaky] as const) {
  const clock = new FakeClock()
  const backend = memoryBackend({ clock })
  const w = createWork({ backend, clock, work, autoStart: false, random: () => 0 })
  return { clock, w, backend, ops: openOps(backend, { clock }) }
}

const codes = (reasons: readonly { readonly code: string }[]) => reasons.map(({ code }) => code)

describe('explain', () => {
  it('says that it knows no such item', async () => {
    const { ops } = scene()

    expect(await ops.explain('nothing')).toEqual([
      expect.objectContaining({ code: 'unknown', text: 'The backend has no item "nothing".' }),
    ])
    expect(await ops.item('nothing')).toBeUndefined()
  })

  it('says that no worker serves its queue, or that one does but does not handle its type', async () => {
    const { w, clock, backend, ops } = scene()
    const { id } = await w.enqueue(noop(null)).accepted()
    expect(codes(await ops.explain(id))).toEqual(['no-worker'])

    const other = createWork({ backend, clock, work: [poison] })
    await clock.advance(1)
    const [reason] = await ops.explain(id)
    expect(codes(await ops.explain(id))).toEqual(['unknown-type'])
    expect(reason).toMatchObject({
      text: expect.stringMatching(
        /^No live worker of queue "default" handles type "noop": it has waited since .+, 1 ms ago, and stays where it is\. Alive there: .+ \(worker .+, types "poison"\)\.$/,
      ),
      remedy: expect.stringContaining('Start a worker that has "noop" in its `work` list.'),
    })
    // It keeps its place for as long as that takes.
    await clock.advance(60_000)
    expect(codes(await ops.explain(id))).toEqual(['unknown-type'])
    await other.stop()
  })

  it('sees a worker that is idle, and does not take a dead one for alive', async () => {
    const { w, clock, backend, ops } = scene()
    w.start()
    await clock.advance(300_000)
    expect(await ops.workers()).toMatchObject([
      { isAlive: true, seenAt: expect.toSatisfy((at) => clock.now() - at < 20_000) },
    ])
    const stopped = w.stop()
    await clock.advance(6_000)
    await stopped

    // A killed worker: it registered once, and sent no heartbeat since.
    await openOpsContext(overPlainPorts, backend, { clock }).ledger.extend([], 30_000, {
      id: 'killed',
      host: 'host-7',
      version: '1',
      types: ['noop'],
      queues: ['default'],
    })
    const { id } = await w.enqueue(noop(null)).accepted()
    expect(codes(await ops.explain(id))).toEqual(['waiting'])
    await clock.advance(70_000)
    const [reason] = await ops.explain(id)
    expect(reason.text).toBe('No live worker serves queue "default" (the last was seen 1 m 10 s ago).')
    await clock.advance(3_600_000)
    const [later] = await ops.explain(id)
    expect(later.text).toBe('No live worker serves queue "default" (none was seen within the last hour).')
  })

  it('does not count on a worker that has stopped in order', async () => {
    const { w, clock, ops } = scene()
    w.start()
    await clock.advance(1_000)
    expect(await ops.workers()).toHaveLength(1)
    await w.stop()
    expect(await ops.workers()).toEqual([])
    const { id } = await w.enqueue(noop(null)).accepted()
    expect(codes(await ops.explain(id))).toEqual(['no-worker'])

    w.start()
    await clock.advance(1_000)
    expect(await ops.workers()).toHaveLength(1)
    expect(codes(await ops.explain(id))).toEqual(['completed'])
  })

  it('says when it is due', async () => {
    const { w, ops } = scene()
    const { id } = await w.enqueue(noop(null), { delay: 185_000 }).accepted()
    const [reason] = await ops.explain(id)

    expect(reason).toEqual({
      code: 'scheduled',
      text: 'It is scheduled for 2026-01-01 00:03:05Z, in 3 m 5 s.',
      remedy: 'Wait, or run it now.',
    })
  })

  it('says which attempt comes when, and how the last one ended', async () => {
    const { w, clock, ops } = scene()
    w.start()
    const { id } = await w.enqueue(flaky({})).accepted()
    await clock.advance(10)
    const [reason] = await ops.explain(id)

    expect(reason.code).toBe('retrying')
    expect(reason.text).toMatch(
      /^Attempt 2 comes at 2026-01-01 00:00:20Z, in 19 s; the last one failed: Error: not yet\.$/,
    )
    const report = await ops.item(id)
    expect(report?.attempts).toEqual([
      expect.objectContaining({ attempt: 1, class: 'retryable', error: 'Error: not yet' }),
    ])
    await clock.advance(0)
    void w.stop()
    await clock.advance(6_000)
  })

  it('says why it is dead, and what may be done', async () => {
    const { w, clock, ops } = scene()
    w.start()
    const { id } = await w.enqueue(poison({})).accepted()
    await clock.advance(10)
    const [reason] = await ops.explain(id)

    expect(reason.text).toMatch(/^It died \(aborted, poison\) at .* ago, on attempt 1: PoisonError: never$/)
    expect(reason.remedy).toContain('redrive')
    void w.stop()
    await clock.advance(6_000)
  })

  it('names what a gate waits for', async () => {
    const { w, ops } = scene()
    const first = noop(null)
    const gate = dependency({ on: [first, 'not-there'], queue: [noop(null)] })
    await w.enqueue(first, { delay: 60_000 }).accepted()
    const { id } = await w.enqueue(gate).accepted()
    const [reason] = await ops.explain(id)

    expect(reason.code).toBe('gate')
    expect(reason.text).toContain(`${first.id} (scheduled)`)
    expect(reason.text).toContain('not-there (not enqueued yet)')
    expect(reason.text).toContain(': all of them must succeed.')
    expect(reason.remedy).toContain('Enqueue not-there')
  })

  it('says what is paused, before and after a claim has met the item', async () => {
    const { w, clock, ops } = scene()
    await w.pause({ type: 'noop' })
    const { id } = await w.enqueue(noop(null)).accepted()
    expect((await ops.explain(id))[0]).toMatchObject({
      code: 'paused',
      text: expect.stringMatching(/^The type "noop" is paused: .+ paused it at 2026-01-01 00:00:00Z, 0 ms ago\.$/),
      remedy: 'Resume the type "noop": what waits there runs again.',
    })
    w.start()
    await clock.advance(2_000)
    expect((await ops.explain(id))[0]).toMatchObject({
      code: 'paused',
      text: expect.stringContaining('2 s ago'),
      remedy: 'Resume the type "noop": it returns to its old place.',
    })
    await w.resume({ type: 'noop' })
    await clock.advance(2_000)
    expect((await ops.explain(id))[0].code).toBe('completed')
    void w.stop()
    await clock.advance(6_000)
  })

  it('says which worker took it, that it runs once a heartbeat reports it, and when its lease has lapsed', async () => {
    const clock = new FakeClock()
    const backend = memoryBackend({ clock })
    const hang = defineWork('hang', () => new Promise<never>(() => undefined))
    const w = createWork({ backend, clock, work: [hang], stopDrain: 0, doer: priorityDoer({ max: 1 }) })
    const ops = openOps(backend, { clock })
    const { id } = await w.enqueue(hang(null)).accepted()
    await clock.advance(10)
    expect((await ops.explain(id))[0]).toMatchObject({
      code: 'taken',
      text: expect.stringMatching(/^It was taken 10 ms ago by .+, whose last heartbeat did not .+; lease until /),
    })
    await clock.advance(10_000)
    expect((await ops.explain(id))[0]).toMatchObject({
      code: 'running',
      text: expect.stringMatching(/^It has been running on .+ for 10 s, attempt 1, lease until /),
    })
    void w.stop()
    await clock.advance(40_000)
    const [reason] = await ops.explain(id)
    expect(reason).toMatchObject({ code: 'lease-lapsed', text: expect.stringMatching(/^Its run was cut off: /) })
    expect(reason.remedy).toContain('queue "default"')
  })
})

describe('lists and counts', () => {
  it('list the newest first, by state, page by page, without payloads', async () => {
    const { w, ops } = scene()
    const ids: string[] = []
    for (let i = 0; i < 5; i += 1) ids.unshift((await w.enqueue(noop(null)).accepted()).id)
    const page = await ops.list({ state: 'waiting', limit: 3 })
    const rest = await ops.list({ state: 'waiting', limit: 3, cursor: page.next! })

    expect([...page.items, ...rest.items].map(({ id, state }) => [id, state])).toEqual(ids.map((id) => [id, 'waiting']))
    expect(rest.next).toBeUndefined()
    expect(JSON.stringify(page)).not.toContain('"input"')
    expect(await ops.counts()).toEqual([{ queue: 'default', type: 'noop', counts: { waiting: 5 } }])
  })

  it('show an item with its input through redact, its children and its group', async () => {
    const clock = new FakeClock()
    const backend = memoryBackend({ clock })
    const part = defineWork('part', (n: number, ctx) => ctx.result(n))
    const whole = defineWork('whole', (_: { secret: string }, ctx) => ctx.queue([part(1), part(2)]))
    const w = createWork({ backend, clock, work: [whole, part] })
    const ops = openOps(backend, { clock, redact: (input) => input.replace('s3cret', '…') })
    const { id } = await w.enqueue(whole({ secret: 's3cret' }), { delay: 10 }).accepted()
    expect((await ops.item(id))?.input).toBe('{"secret":"…"}')
    await clock.advance(20)
    const report = await ops.item(id)
    expect(report?.children).toHaveLength(2)
    expect(report?.group?.open).toBe(0)
    void w.stop()
    await clock.advance(6_000)
  })

  it('are refused where they would have to be made up', async () => {
    const mem = memoryBackend()
    const ops = openOps({ ...mem, store: { ...mem.store } })

    await expect(ops.list()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
    await expect(ops.counts()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
    expect(codes(await ops.explain('x'))).toEqual(['unknown'])
  })
})
