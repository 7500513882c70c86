import { createWork, memoryBackend, NonRetryableError, RetryAfterError, WorkDelayError } from 'millrace'
import type { PluginSource } from 'millrace/guild'
import type { EngineDesign, EngineRunContext } from 'millrace/guild/fabricator'
import type { SessionDoc } from 'millrace/guild/spider'
import { openOps } from 'millrace/ops'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { onMemory } from '../grounds.js'
import { errands, type SpiderGuildOptions, spiderGuild } from './spider-guild.js'

const open = async (options: SpiderGuildOptions) => {
  const made = await spiderGuild(await onMemory.open(), { hasRetry: true, ...options })
  onTestFinished(() => made.g.shutdown())
  return made
}
const busy = () => Object.assign(new Error('too many requests'), { status: 429, headers: { 'retry-after': '60' } })

describe('a failure that asks for a wait', () => {
  it('gets its next rig no earlier', async () => {
    const clock = new FakeClock()
    const at: number[] = []
    const { post, drain, phaseOf, rigsOf, statusOf, stacks } = await open({
      clock,
      designs: {
        caller: async () => {
          at.push(clock.now())
          throw busy()
        },
      },
    })
    const begun = clock.now()
    const writ = await post()
    await drain()
    expect(await phaseOf(writ)).toBe('open')
    expect(await rigsOf(writ)).toHaveLength(1)
    expect(await statusOf(writ)).toMatchObject({ retryAt: new Date(begun + 60_000).toISOString() })
    const ops = await openOps(memoryBackend(), { stacks, clock })
    expect((await ops.writ(writ.id))?.reasons[0]).toMatchObject({
      code: 'delayed',
      text: expect.stringMatching(/in 1 m\. What failed asked/),
    })
    await clock.advance(59_999)
    expect(await drain()).toEqual([])
    await clock.advance(1)
    await drain()
    expect(at).toEqual([begun, begun + 60_000])
    // Both attempts are used up, with a minute between them.
    expect([await phaseOf(writ), (await rigsOf(writ)).length]).toEqual(['stuck', 2])
  })

  it.each([
    ['its own time', 90_000],
    ['the wait that was asked for', 30_000],
  ])('and a time of the writ: the next rig comes at the later of the two, %s', async (_which, ownMs) => {
    const clock = new FakeClock()
    const { post, clerk, spider, drain, rigsOf } = await open({
      clock,
      designs: {
        caller: async () => {
          throw busy()
        },
      },
    })
    const writ = await post()
    await spider.crawl()
    await clerk.edit({ id: writ.id, runAt: clock.now() + ownMs })
    await drain()
    await clock.advance(Math.max(60_000, ownMs) - 1)
    expect([await drain(), (await rigsOf(writ)).length]).toEqual([[], 1])
    await clock.advance(1)
    await drain()
    expect(await rigsOf(writ)).toHaveLength(2)
  })

  it('is over when a person retries the writ, which then gets its rig immediately', async () => {
    const clock = new FakeClock()
    const { post, clerk, drain, rigsOf, phaseOf, stacks } = await open({
      clock,
      designs: {
        caller: async () => {
          throw busy()
        },
      },
    })
    const ops = openOps(memoryBackend(), { stacks, clock })
    const writ = await post()
    await drain()
    expect(await drain()).toEqual([])
    await clerk.edit({ id: writ.id, runAt: clock.now() + 3_600_000 })
    expect(await ops.retryWrit(writ.id, { who: 'ada' })).toMatchObject({ phase: 'open' })
    await drain()
    expect([await phaseOf(writ), (await rigsOf(writ)).length]).toEqual(['stuck', 2])
    // At its cap, and what failed asked for another wait: that is over, too.
    await ops.retryWrit(writ.id, { who: 'ada' })
    await drain()
    expect(await rigsOf(writ)).toHaveLength(3)
  })

  it('is waited for under a work system, which is woken when the wait is over', async () => {
    const at: number[] = []
    const made = await open({
      designs: {
        caller: async () => {
          at.push(Date.now())
          throw new RetryAfterError(300)
        },
      },
      spider: { pollIntervalMs: 60_000 },
    })
    const w = createWork({ work: [made.spider.engineWork], pollInterval: 60_000 })
    const running = made.spider.start({ work: w })
    onTestFinished(async () => {
      await running.stop()
      await w.stop()
    })
    const writ = await made.post()
    await expect.poll(() => made.phaseOf(writ), { timeout: 20_000 }).toBe('stuck')
    await expect.poll(() => at.length, { timeout: 20_000 }).toBe(2)
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(300)
  })

  it('is the floor of a retry in the rig, too, and of one that a result asks for', async () => {
    const clock = new FakeClock()
    const at: number[] = []
    const { post, drain } = await open({
      clock,
      designs: {
        caller: {
          retry: { maxAttempts: 2, backoff: { initialMs: 1_000 } },
          run: async (_, { attempt }) => {
            at.push(clock.now())
            if (attempt === 1) throw busy()
            if (attempt === 2) return { status: 'failed', error: 'later', retryable: true, retryAfterMs: 30_000 }
            return { status: 'completed', yields: {} }
          },
        },
      },
    })
    const begun = clock.now()
    await post()
    for (const ms of [0, 59_999, 1, 29_999, 1]) {
      await clock.advance(ms)
      await drain()
    }
    expect(at.map((ms) => ms - begun)).toEqual([0, 60_000, 90_000])
  })

  it('put off by the engine itself, spends no attempt and keeps its key', async () => {
    const clock = new FakeClock()
    const keys: unknown[] = []
    const { post, drain, rigsOf } = await open({
      clock,
      designs: {
        patient: async (_, { idempotencyKey, attempt }) => {
          keys.push([idempotencyKey, attempt])
          if (keys.length < 4) throw new WorkDelayError({ delay: 5_000 })
          return { status: 'completed', yields: {} }
        },
      },
    })
    const writ = await post()
    await drain()
    for (let n = 0; n < 3; n += 1) {
      await clock.advance(5_000)
      await drain()
    }
    const [rig, ...others] = await rigsOf(writ)
    expect([rig?.status, others]).toEqual(['completed', []])
    expect(keys).toEqual(Array.from({ length: 4 }, () => [`${rig?.id}/only/1`, 1]))
  })
})

describe('a second rig', () => {
  const charge =
    (charges: Map<string, number>): EngineDesign['run'] =>
    async (_, { writKey }) => {
      const key = writKey('charge')
      charges.set(key, (charges.get(key) ?? 0) + 1)
      return { status: 'completed', yields: { key } }
    }

  it('has the same key of the writ, another one of the rig, and starts afresh by default', async () => {
    const seen: Pick<EngineRunContext, 'idempotencyKey'>[] = []
    const charges = new Map<string, number>()
    const { post, drain, rigsOf } = await open({
      designs: {
        charge: async (givens, ctx) => {
          seen.push({ idempotencyKey: ctx.idempotencyKey ?? '' })
          expect(ctx.writKey()).toBe(`${writ.id}/charge`)
          expect(() => ctx.writKey('')).toThrow('writKey(step)')
          return charge(charges)(givens, ctx)
        },
        ship: async () => {
          throw new Error('no van')
        },
      },
      engines: [
        { id: 'charge', designId: 'charge' },
        { id: 'ship', designId: 'ship', upstream: ['charge'] },
      ],
    })
    const writ = await post()
    await drain()
    const rigs = await rigsOf(writ)
    expect(seen).toEqual(rigs.map(({ id }) => ({ idempotencyKey: `${id}/charge/1` })))
    // Twice with one key, which the payment service takes for one.
    expect([...charges]).toEqual([[`${writ.id}/charge`, 2]])
  })

  it('goes on from the engine that failed where designs carry over what they yielded', async () => {
    const runs: string[] = []
    let fails = true
    const note =
      (name: string): EngineDesign['run'] =>
      async (givens) => {
        runs.push(`${name} ${JSON.stringify(givens)}`)
        return { status: 'completed', yields: { by: name, no: false } }
      }
    const { post, drain, rigsOf, phaseOf } = await open({
      designs: {
        charge: { carryOver: true, run: note('charge') },
        pack: { carryOver: true, run: note('pack') },
        label: { run: note('label') },
        ship: async (givens) => {
          runs.push(`ship ${JSON.stringify(givens)}`)
          if (!fails) return { status: 'completed', yields: {} }
          fails = false
          throw new Error('no van')
        },
      },
      engines: [
        { id: 'charge', designId: 'charge', givens: { what: `$\{writ.title}` } },
        { id: 'gift', designId: 'pack', upstream: ['charge'], when: `$\{yields.charge.no}` },
        { id: 'label', designId: 'label', upstream: ['charge'] },
        { id: 'pack', designId: 'pack', upstream: ['label'] },
        {
          id: 'ship',
          designId: 'ship',
          upstream: ['charge', 'gift', 'pack'],
          givens: { paid: `$\{yields.charge.by}` },
        },
      ],
    })
    const writ = await post('rye')
    await drain()
    const [first, second] = await rigsOf(writ)
    expect(await phaseOf(writ)).toBe('completed')
    expect(runs).toEqual([
      'charge {"what":"rye"}',
      'label {}',
      'pack {}',
      'ship {"paid":"charge"}',
      // Not the charge, nor the gift that was skipped; the label runs again, and hence what comes after it.
      'label {}',
      'pack {}',
      'ship {"paid":"charge"}',
    ])
    expect(second?.engines.map(({ id, status, carriedFrom }) => [id, status, carriedFrom])).toEqual([
      ['charge', 'completed', first?.id],
      ['gift', 'skipped', first?.id],
      ['label', 'completed', undefined],
      ['pack', 'completed', undefined],
      ['ship', 'completed', undefined],
    ])
  })

  it('runs an engine again whose givens have changed, or that grafted others', async () => {
    const runs: string[] = []
    const { clerk, post, drain } = await open({
      hasRetry: false,
      designs: {
        charge: {
          carryOver: true,
          run: async ({ what }) => {
            runs.push(`charge ${what}`)
            return { status: 'completed', yields: {} }
          },
        },
        plan: {
          carryOver: true,
          run: async () => {
            runs.push('plan')
            return { status: 'completed', yields: {}, graft: [{ id: 'extra', designId: 'fails' }] }
          },
        },
        fails: async () => {
          throw new Error('no')
        },
      },
      engines: [
        { id: 'charge', designId: 'charge', givens: { what: `$\{writ.title}` } },
        { id: 'plan', designId: 'plan' },
      ],
    })
    const writ = await post('rye')
    await drain()
    await clerk.transition(writ.id, 'open')
    await drain()
    await clerk.edit({ id: writ.id, title: 'wheat' })
    await clerk.transition(writ.id, 'open')
    await drain()
    expect(runs).toEqual(['charge rye', 'plan', 'plan', 'charge wheat', 'plan'])
  })
})

describe('an engine that takes too long', () => {
  it('is asked to stop and has failed, with a code, and three of them do not stop the guild', async () => {
    const clock = new FakeClock()
    const reasons: unknown[] = []
    const { post, spider, drain, phaseOf, rigsOf, stacks } = await open({
      clock,
      hasRetry: false,
      designs: {
        hangs: {
          timeoutMs: 5_000,
          // It notices, and goes on all the same.
          run: (_, { signal }) =>
            new Promise(() =>
              signal?.addEventListener('abort', () => reasons.push((signal.reason as { code?: unknown }).code)),
            ),
        },
        done: async () => ({ status: 'completed', yields: {} }),
      },
      engines: [{ id: 'only', designId: 'hangs' }],
      spider: {
        rigTemplates: {
          hangs: { engines: [{ id: 'only', designId: 'hangs' }] },
          done: { engines: [{ id: 'only', designId: 'done' }] },
        },
        rigTemplateMappings: { mandate: 'hangs' },
      },
    })
    const hanging = [await post(), await post(), await post()]
    const crawls = []
    for (let n = 0; n < 3; n += 1) {
      expect((await spider.crawl())?.action).toBe('rig-spawned')
      crawls.push(spider.crawl())
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await stacks.book('spider', 'slots').count()).toBe(3)
    await clock.advance(5_000)
    expect((await Promise.all(crawls)).map((one) => one?.action)).toEqual([
      'rig-completed',
      'rig-completed',
      'rig-completed',
    ])
    expect(reasons).toEqual(['RUN_TIMEOUT', 'RUN_TIMEOUT', 'RUN_TIMEOUT'])
    expect(await stacks.book('spider', 'slots').count()).toBe(0)
    for (const writ of hanging) expect(await phaseOf(writ)).toBe('stuck')
    const [rig] = await rigsOf(hanging[0]!)
    expect(rig?.engines[0]?.error).toContain('timeoutMs of its design "hangs" (5000 ms)')
    await drain()
  })

  it('is tried again, and gets another rig, as after any failure that may pass', async () => {
    const clock = new FakeClock()
    const { post, spider, statusOf, phaseOf, rigsOf } = await open({
      clock,
      designs: { hangs: { timeoutMs: 1_000, run: () => new Promise(() => undefined) } },
    })
    const writ = await post()
    await spider.crawl()
    const run = spider.crawl()
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(1_000)
    await run
    expect([await phaseOf(writ), (await rigsOf(writ))[0]?.status]).toEqual(['open', 'stuck'])
    expect(await statusOf(writ)).toMatchObject({ stuckCause: 'engine-failure', retryable: true })
  })
})

describe('places of launched sessions', () => {
  const animator: PluginSource = { package: 'animator-kit', plugin: { kit: { books: { sessions: {} } } } }

  it('are limited, and the others stay free for other engines', async () => {
    const launch: EngineDesign = {
      id: 'launch',
      launchesSessions: true,
      run: async (_, { writKey }) => ({ status: 'launched', sessionId: `s-${writKey()}` }),
    }
    const { clerk, stacks, spider, drain } = await open({
      designs: { launch, quick: async () => ({ status: 'completed', yields: {} }) },
      plugins: [animator, errands],
      spider: {
        maxConcurrentEngines: 3,
        maxConcurrentSessions: 2,
        rigTemplates: {
          session: { engines: [{ id: 'only', designId: 'launch' }] },
          quick: {
            engines: [
              { id: 'before', designId: 'quick' },
              { id: 'after', designId: 'quick', upstream: ['before'] },
            ],
          },
        },
        rigTemplateMappings: { mandate: 'session', errand: 'quick' },
      },
    })
    const sessions = []
    for (let n = 0; n < 4; n += 1) sessions.push(await clerk.post({ title: `session ${n}`, body: '' }))
    await drain()
    expect(await stacks.book('spider', 'slots').count()).toBe(2)
    const errand = await clerk.post({ title: 'quick', body: '', type: 'errand' })
    await drain()
    expect((await clerk.show(errand.id)).phase).toBe('completed')
    // One that ends makes room for the next.
    await stacks.book<SessionDoc>('animator', 'sessions').put({ id: `s-${sessions[0]?.id}/only`, status: 'completed' })
    await drain()
    expect((await spider.forWrit(sessions[0]?.id ?? ''))?.status).toBe('completed')
    const launched = (await Promise.all(sessions.map(({ id }) => spider.forWrit(id)))).map(
      (rig) => rig?.engines[0]?.status,
    )
    expect(launched).toEqual(['completed', 'running', 'running', 'pending'])
  })
})

it('a final error stays final, whatever wait it names', async () => {
  const { post, drain, statusOf } = await open({
    designs: {
      never: async () => {
        throw new NonRetryableError('never', { cause: busy() })
      },
    },
  })
  const writ = await post()
  await drain()
  expect(await statusOf(writ)).toMatchObject({ retryable: false })
  expect(await statusOf(writ)).not.toHaveProperty('retryAt')
})

describe('a mapping in the configuration', () => {
  it.each([
    [{ rigTemplateMappings: { mandat: 'standard' } }, /"mandat" is not registered \(did you mean "mandate"\?\)/],
    [
      { rigTemplateMappings: { mandate: 'standart' } },
      /"standart", which is no rig template \(did you mean "standard"\?\)/,
    ],
    [
      { rigTemplates: { standard: { engines: [{ id: 'a', designId: 'doen' }] } } },
      /unknown design "doen" \(did you mean "done"\?\)/,
    ],
    [
      { rigTemplates: { standard: { engines: [{ id: 'a', designID: 'done' } as never] } } },
      /"a": designId must name an engine design, got undefined/,
    ],
    [
      { rigTemplates: { standard: { engines: [{ id: 'a', designId: 'done', upstreem: [] } as never] } } },
      /"a" has the unknown field "upstreem" \(did you mean "upstream"\?\)/,
    ],
    [
      { rigTemplates: { standard: { engines: [{ id: 'a', designId: 'done' }], resolutionEngin: 'a' } as never } },
      /the unknown field "resolutionEngin" \(did you mean "resolutionEngine"\?\)/,
    ],
  ])('that names what is not there fails the start: %j', async (spider, message) => {
    const designs = { done: async () => ({ status: 'completed', yields: {} }) as const }
    await expect(open({ designs, spider })).rejects.toMatchObject({
      code: 'BAD_SPIDER_CONFIG',
      message: expect.stringMatching(message),
    })
  })
})
