import { NonRetryableError } from 'millrace'
import { guild, type PluginSource } from 'millrace/guild'
import type { WritDoc } from 'millrace/guild/clerk'
import type { ClockworksRetryApi } from 'millrace/guild/clockworks-retry'
import type { EngineDesign } from 'millrace/guild/fabricator'
import type { SessionDoc } from 'millrace/guild/spider'
import type { StacksApi } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Ground, onMemory } from '../grounds.js'
import { type SpiderGuild, type SpiderGuildOptions, spiderGuild, thrower } from './spider-guild.js'

const done: EngineDesign['run'] = async () => ({ status: 'completed', yields: { ok: true } })
/** An expression, spelt so that it is not read as a template string. */
const ref = (path: string): string => `$\{${path}}`

async function open(options: SpiderGuildOptions = {}, ground?: Ground): Promise<SpiderGuild> {
  const made = await spiderGuild(ground ?? (await onMemory.open()), options)
  onTestFinished(() => made.g.shutdown())
  return made
}

describe('what a run is given', () => {
  // W9
  it('text of the writ is never read as an expression, whatever it contains', async () => {
    let seen: unknown
    const { clerk, drain } = await open({
      spider: { variables: { place: { name: 'bakery' } } },
      designs: {
        first: async () => ({ status: 'completed', yields: { n: 7, list: [1] } }),
        second: async (givens) => {
          seen = givens
          return { status: 'completed', yields: 1 }
        },
      },
      engines: [
        { id: 'a', designId: 'first' },
        {
          id: 'b',
          designId: 'second',
          upstream: ['a'],
          givens: {
            title: ref('writ.title'),
            text: `${ref('writ.title')} in ${ref('vars.place.name')}: ${ref('yields.a.n')} ${ref('yields.a.list')}${ref('writ.codex')}`,
            n: ref('yields.a.n'),
            none: ref('yields.a.none'),
            literal: `\\${ref('yields.a.n')}`,
            deep: { not: ref('yields.a.n') },
          },
        },
      ],
    })
    const trick = ref('yields.a.n')
    await clerk.post({ title: trick, body: '' })
    await drain()
    expect(seen).toEqual({
      title: trick,
      text: `${trick} in bakery: 7 [1]`,
      n: 7,
      literal: trick,
      deep: { not: trick },
    })
  })

  it.each([
    ['an engine that is not upstream', { givens: { x: ref('yields.b.y') } }, 'not upstream'],
    ['an unknown root', { givens: { x: ref('env.HOME') } }, 'must begin with'],
    ['an unknown design', { designId: 'nothing' }, 'unknown design'],
    ['an upstream that is not there', { upstream: ['ghost'] }, 'unknown upstream'],
    ['a cycle', { upstream: ['a'] }, 'upstream of itself'],
    ['a condition on the writ', { when: ref('writ.title') }, 'must read yields'],
  ])('a template with %s fails startup', async (_, fields, text) => {
    const engines = [
      { id: 'a', designId: 'done', ...fields },
      { id: 'b', designId: 'done' },
    ]
    await expect(spiderGuild(await onMemory.open(), { designs: { done }, engines })).rejects.toThrow(text)
  })
})

describe('failures', () => {
  it.each([
    ['a plain error', thrower, 'boom', true],
    [
      'an error that is classified as final',
      async () => {
        throw new NonRetryableError('never')
      },
      'never',
      false,
    ],
    ['a failed result', async () => ({ status: 'failed', error: 'no flour', retryable: true }), 'no flour', true],
    ['a final result', async () => ({ status: 'failed', error: 'no oven', retryable: false }), 'no oven', false],
    [
      'yields that JSON loses',
      async () => ({ status: 'completed', yields: { at: new Date(0) } }),
      'Engine yields are not JSON-serializable',
      false,
    ],
    [
      'yields that no store takes',
      async () => ({ status: 'completed', yields: '\u0000' }),
      'Engine yields cannot be stored',
      false,
    ],
    [
      'an unknown block',
      async () => ({ status: 'blocked', blockType: 'x', condition: 1 }),
      'Unknown block type: "x"',
      false,
    ],
    [
      'a bad condition',
      async () => ({ status: 'blocked', blockType: 'writ-phase', condition: {} }),
      'Block type "writ-phase" rejected condition',
      false,
    ],
    ['nothing at all', async () => undefined as never, 'no result that Spider knows', false],
  ] as [string, EngineDesign['run'], string, boolean][])(
    '%s: retryable as the table says',
    async (_, run, text, retryable) => {
      const { post, drain, statusOf, rigsOf, clerk } = await open({
        designs: { run, done },
        engines: [
          { id: 'a', designId: 'run' },
          { id: 'b', designId: 'done', upstream: ['a'] },
        ],
      })
      const writ = await post()
      expect((await drain()).at(-1)).toMatchObject({ action: 'rig-completed', outcome: 'stuck' })
      const [rig] = await rigsOf(writ)
      expect(rig?.engines[0]?.error).toContain(text)
      expect(rig?.engines[1]).toMatchObject({ status: 'cancelled' })
      expect(rig?.engines[1]).not.toHaveProperty('error')
      expect((await clerk.show(writ.id)).resolution).toContain(text)
      expect(await statusOf(writ)).toMatchObject({ stuckCause: 'engine-failure', retryable, rigId: rig?.id })
    },
  )

  it('in-rig retry comes first, waits longer each time, and hands over when it is used up', async () => {
    const clock = new FakeClock()
    const keys: (string | undefined)[] = []
    const { post, spider, rigsOf, drain, clerk } = await open({
      clock,
      hasRetry: true,
      designs: {
        flaky: {
          retry: { maxAttempts: 2, backoff: { initialMs: 1_000, maxMs: 1_500 } },
          run: async (_, { idempotencyKey }) => {
            keys.push(idempotencyKey)
            throw new Error('boom')
          },
        },
      },
    })
    const writ = await post()
    await spider.crawl()
    expect(await spider.crawl()).toMatchObject({ action: 'engine-retrying', attemptCount: 1 })
    expect(await spider.crawl()).toBeNull()
    await clock.advance(1_000)
    expect(await spider.crawl()).toMatchObject({ action: 'engine-retrying', attemptCount: 2 })
    await clock.advance(1_499)
    expect(await spider.crawl()).toBeNull()
    await clock.advance(1)
    expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'stuck' })
    const [rig] = await rigsOf(writ)
    expect(rig?.engines[0]?.attempts).toHaveLength(2)
    expect(keys).toEqual([1, 2, 3].map((n) => `${rig?.id}/only/${n}`))
    // Handed over to Clockworks-Retry; resuming need not wait for the hold.
    expect((await clerk.show(writ.id)).phase).toBe('open')
    await drain()
    const second = (await rigsOf(writ))[1]
    await spider.resume(second?.id ?? '', 'only')
    expect(await spider.crawl()).toMatchObject({ action: 'engine-retrying', attemptCount: 2 })
  })
})

describe('what plugins get wrong', () => {
  it('a block check that answers nonsense holds up no other engine', async () => {
    const { post, drain, phaseOf, warnings } = await open({
      plugins: [
        {
          package: 'odd-kit',
          plugin: {
            kit: {
              blockTypes: {
                odd: {
                  id: 'odd',
                  conditionSchema: { parse: (x: unknown) => x },
                  check: async () => undefined,
                  pollIntervalMs: 60_000,
                },
              },
            },
          },
        },
      ],
      designs: {
        one: async ({ title }) =>
          title === 'waits'
            ? { status: 'blocked', blockType: 'odd', condition: {} }
            : { status: 'completed', yields: 1 },
      },
      engines: [{ id: 'only', designId: 'one', givens: { title: ref('writ.title') } }],
    })
    const [waiting, other] = [await post('waits'), await post('other')]
    await drain()
    expect(await phaseOf(other)).toBe('completed')
    expect(await phaseOf(waiting)).toBe('open')
    expect(warnings.map(({ code }) => code)).toEqual(['BLOCK_CHECK_FAILED'])
  })

  it.each([
    ['a book that cannot be', { ownerId: 'o', book: 'a b' }],
    ['an empty document id', { ownerId: 'o', book: 'a', documentId: '' }],
  ])('waiting for %s to change is a condition that is rejected', async (_, condition) => {
    const { post, drain, statusOf } = await open({
      designs: { waits: async () => ({ status: 'blocked', blockType: 'book-updated', condition }) },
    })
    const writ = await post()
    await drain()
    expect(await statusOf(writ)).toMatchObject({
      retryable: false,
      detail: expect.stringContaining('Block type "book-updated" rejected condition'),
    })
  })

  it('a graft that JSON cannot carry is an invalid graft, for good', async () => {
    const circle: { id: string; designId: string; givens: Record<string, unknown> } = {
      id: 'x',
      designId: 'one',
      givens: {},
    }
    circle.givens['self'] = circle
    const { post, drain, statusOf } = await open({
      designs: { one: async () => ({ status: 'completed', yields: 1, graft: [circle] }) },
    })
    const writ = await post()
    await drain()
    expect(await statusOf(writ)).toMatchObject({
      retryable: false,
      detail: expect.stringContaining('Graft validation failed'),
    })
  })

  it('a session that is deleted has failed, and its engine waits no longer', async () => {
    const { post, drain, statusOf, spider, stacks } = await open({
      designs: { quick: async (_, { rigId }) => ({ status: 'launched', sessionId: `s-${rigId}` }) },
      plugins: [{ package: 'animator-kit', plugin: { kit: { books: { sessions: {} } } } }],
    })
    const writ = await post()
    await drain()
    const rig = await spider.forWrit(writ.id)
    const sessions = stacks.book<SessionDoc>('animator', 'sessions')
    await sessions.put({ id: `s-${rig?.id}`, status: 'running' })
    expect(await drain()).toEqual([])
    await sessions.delete(`s-${rig?.id}`)
    await drain()
    expect(await statusOf(writ)).toMatchObject({ retryable: true, detail: expect.stringContaining('is missing') })
  })
})

describe('limits', () => {
  it('an engine whose pause is over waits while its rig has no room', async () => {
    const clock = new FakeClock()
    let runs = 0
    const { post, spider, drain, stacks } = await open({
      clock,
      designs: {
        flaky: {
          retry: { maxAttempts: 1, backoff: { initialMs: 1_000, maxMs: 1_000 } },
          run: async () => {
            runs += 1
            if (runs === 1) throw new Error('boom')
            return { status: 'completed', yields: 1 }
          },
        },
        quick: async () => ({ status: 'launched', sessionId: 's' }),
      },
      engines: [
        { id: 'a', designId: 'flaky' },
        { id: 'b', designId: 'quick' },
      ],
      plugins: [{ package: 'animator-kit', plugin: { kit: { books: { sessions: {} } } } }],
    })
    const writ = await post()
    const actions = (await drain()).map(({ action }) => action)
    expect(actions).toEqual(['rig-spawned', 'engine-retrying', 'engine-started'])
    await clock.advance(1_000)
    expect(await spider.crawl()).toBeNull()
    expect(runs).toBe(1)
    await stacks.book<SessionDoc>('animator', 'sessions').put({ id: 's', status: 'completed' })
    expect((await drain()).map(({ action }) => action)).toEqual(['engine-completed', 'rig-completed'])
    expect(runs).toBe(2)
    expect((await spider.forWrit(writ.id))?.status).toBe('completed')
  })
})

describe('what the original lost', () => {
  // W4, W15
  it('concurrent crawls, in two guilds on one store, give a writ one rig and an engine one run', async () => {
    const ground = await onMemory.open()
    let running = 0
    let most = 0
    const run: EngineDesign['run'] = async () => {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      return { status: 'completed', yields: 1 }
    }
    const options = { designs: { run }, spider: { maxConcurrentEngines: 2 } }
    const [one, two] = [await open(options, ground), await open(options, ground)]
    const writs = [await one.post(), await two.post(), await one.post(), await one.post()]
    for (let i = 0; i < 12; i += 1) await Promise.all([one, two, one, two].map(({ spider }) => spider.crawl()))
    for (const writ of writs) {
      expect(await one.rigsOf(writ)).toHaveLength(1)
      expect(await one.phaseOf(writ)).toBe('completed')
    }
    expect(most).toBeLessThanOrEqual(2)
    expect(await one.stacks.book('spider', 'queue').count()).toBe(0)
  })

  // W5
  it('what comes back after a cancel is discarded, and its signal was aborted', async () => {
    let finish = () => {}
    let signal: AbortSignal | undefined
    const { post, spider, clerk, phaseOf, warnings } = await open({
      designs: {
        slow: (_, ctx) => {
          signal = ctx.signal
          return new Promise((resolve) => {
            finish = () => resolve({ status: 'completed', yields: 'too late' })
          })
        },
      },
    })
    const writ = await post()
    await spider.crawl()
    const crawling = spider.crawl()
    await until(() => signal !== undefined)
    await clerk.transition(writ.id, 'cancelled')
    expect(signal?.aborted).toBe(true)
    finish()
    expect(await crawling).toBeNull()
    expect((await spider.forWrit(writ.id))?.status).toBe('cancelled')
    expect((await spider.forWrit(writ.id))?.engines[0]).not.toHaveProperty('yields')
    expect(await phaseOf(writ)).toBe('cancelled')
    expect(warnings.map(({ code }) => code)).toEqual(['RESULT_DISCARDED'])
  })

  // W6
  it('a gate that makes a writ stuck says why in the same change', async () => {
    const seen: unknown[] = []
    const spy: PluginSource = {
      package: 'spy-apparatus',
      plugin: {
        apparatus: {
          requires: ['stacks', 'clerk'],
          start: () =>
            guild()
              .apparatus<StacksApi>('stacks')
              .watch<WritDoc>(
                'clerk',
                'writs',
                (event) => {
                  if (event.type === 'update' && event.entry.phase === 'stuck')
                    seen.push(event.entry.status?.['spider'])
                },
                { failOnError: false },
              ),
        },
      },
    }
    const { post, follows, clerk, drain, phaseOf } = await open({ plugins: [spy] })
    const [blocker, writ] = [await post(), await post()]
    await follows(writ, blocker)
    await clerk.transition(blocker.id, 'failed')
    await drain()
    expect(seen).toEqual([expect.objectContaining({ stuckCause: 'failed-blocker', blockerIds: [blocker.id] })])
    // W9: in the original nothing could free it. It has been checked once more since, and waits.
    expect(await drain()).toEqual([])
    await clerk.unlink(writ.id, blocker.id, 'follows')
    expect((await drain()).map(({ action }) => action)).toEqual(['writ-unstuck', 'rig-spawned', 'rig-completed'])
    expect(await phaseOf(writ)).toBe('completed')
  })

  // W7
  it('grafts of two engines and the block of a third survive a restart', async () => {
    const ground = await onMemory.open()
    let grafting = 0
    const options: SpiderGuildOptions = {
      designs: {
        graft: async (_, { engineId }) => {
          grafting += 1
          await until(() => grafting === 2)
          return { status: 'completed', yields: 1, graft: [{ id: `more-${engineId}`, designId: 'done' }] }
        },
        done,
        waits: async (_, { priorBlock }) =>
          priorBlock === undefined
            ? { status: 'blocked', blockType: 'scheduled-time', condition: { resumeAt: '2100-01-01T00:00:00Z' } }
            : { status: 'completed', yields: priorBlock.type },
      },
      engines: [
        { id: 'w', designId: 'waits' },
        { id: 'x', designId: 'graft' },
        { id: 'y', designId: 'graft' },
      ],
      template: { resolutionEngine: 'w' },
      spider: { maxConcurrentEnginesPerRig: 3 },
    }
    const first = await spiderGuild(ground, options)
    const writ = await first.post()
    await first.spider.crawl()
    await Promise.all([first.spider.crawl(), first.spider.crawl(), first.spider.crawl()])
    const rig = await first.spider.forWrit(writ.id)
    expect(rig?.pendingGrafts).toHaveLength(2)
    await first.spider.resume(rig?.id ?? '', 'w')
    await first.g.shutdown()
    const second = await open(options, ground)
    await second.drain()
    const ended = await second.spider.forWrit(writ.id)
    expect(ended?.engines.map(({ id }) => id).sort()).toEqual(['more-x', 'more-y', 'w', 'x', 'y'])
    expect((await second.clerk.show(writ.id)).resolution).toBe('"scheduled-time"')
  })

  // W8
  it('a process that dies in a run costs no rig: same engine, same key; the third time it is a failure', async () => {
    const ground = await onMemory.open()
    const keys: (string | undefined)[] = []
    const designs = {
      hangs: (_: unknown, ctx: { readonly idempotencyKey?: string }) => {
        keys.push(ctx.idempotencyKey)
        return new Promise<never>(() => undefined)
      },
    }
    // Each guild has its own time: one that is not moved on is like a process that is gone.
    const startAt = 1_800_000_000_000
    const guilds = [0, 1, 2, 3].map((n) => ({ clock: new FakeClock({ startAt: startAt + n * 31_000 }), n }))
    const made: SpiderGuild[] = []
    for (const { clock } of guilds) made.push(await open({ designs, clock }, ground))
    const writ = await made[0]!.post()
    await made[0]!.spider.crawl()
    for (const [n, one] of made.entries()) {
      if (n === 3) break
      void one.spider.crawl()
      await until(() => keys.length === n + 1)
    }
    expect(await made[3]!.spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'stuck' })
    const [rig, ...others] = await made[3]!.rigsOf(writ)
    expect(others).toEqual([])
    expect(keys).toEqual([1, 1, 1].map((n) => `${rig?.id}/only/${n}`))
    expect(await made[3]!.statusOf(writ)).toMatchObject({
      retryable: true,
      detail: expect.stringContaining('Engine lease expired'),
    })
  })

  // W8
  it('a run whose lease is over is aborted, which is no failure, and the engine runs again', async () => {
    const memory = await onMemory.open()
    let isReachable = true
    const ground = {
      ...memory,
      backend: () => {
        const backend = memory.backend()
        const begin = backend.begin.bind(backend)
        backend.begin = async (options) => {
          if (!isReachable) throw new Error('unreachable')
          return begin(options)
        }
        return backend
      },
    }
    const clock = new FakeClock()
    let runs = 0
    const designs = {
      listens: (_: unknown, { signal }: { readonly signal?: AbortSignal }) => {
        runs += 1
        if (runs > 1) return Promise.resolve({ status: 'completed' as const, yields: {} })
        return new Promise<never>((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
      },
    }
    const { post, spider, drain, phaseOf, warnings, rigsOf } = await open({ designs, clock }, ground)
    const writ = await post()
    await spider.crawl()
    // The crawl itself goes on to its next step, which needs the store.
    const crawl = expect(spider.crawl()).rejects.toThrow('unreachable')
    await until(() => runs === 1)
    await clock.advance(29_000)
    isReachable = false
    await clock.advance(31_000)
    isReachable = true
    await crawl
    await drain()
    expect({ runs, phase: await phaseOf(writ) }).toEqual({ runs: 2, phase: 'completed' })
    expect(warnings.map(({ code }) => code)).toEqual(['RESULT_DISCARDED'])
    expect((await rigsOf(writ)).map(({ engines }) => engines[0]?.attempts)).toEqual([undefined])
  })

  // W9
  it('cancelling an old rig does not cancel the writ whose retry is running', async () => {
    let runs = 0
    const { post, spider, drain, rigsOf, phaseOf } = await open({
      hasRetry: true,
      designs: {
        second: async () => {
          runs += 1
          if (runs === 1) throw new Error('boom')
          return { status: 'launched', sessionId: 's' }
        },
      },
    })
    const writ = await post()
    await drain()
    const [old] = await rigsOf(writ)
    expect((await spider.cancel(old?.id ?? '')).status).toBe('cancelled')
    expect(await phaseOf(writ)).toBe('open')
  })

  // W9
  it('without a provider of sessions, they are launched, cancelled with their writ, and collected from any book', async () => {
    const { post, spider, clerk, stacks, phaseOf, warnings, g } = await open({
      designs: { quick: async (_, { rigId }) => ({ status: 'launched', sessionId: `s-${rigId}` }) },
      spider: { sessions: { ownerId: 'desk', book: 'talks' } },
      // A kit has a book of sessions, and no way to cancel one.
      plugins: [{ package: 'desk-kit', plugin: { kit: { books: { talks: {} } } } }],
    })
    expect(g.tryApparatus('desk')).toBeNull()
    const [cancelled, collected] = [await post(), await post()]
    for (let crawls = 0; crawls < 4; crawls += 1) await spider.crawl()
    await clerk.transition(cancelled.id, 'cancelled')
    expect((await spider.forWrit(cancelled.id))?.status).toBe('cancelled')
    const rig = await spider.forWrit(collected.id)
    await stacks.book<SessionDoc>('desk', 'talks').put({ id: `s-${rig?.id}`, status: 'completed', output: 'said' })
    expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', rigId: rig?.id, outcome: 'completed' })
    expect(await phaseOf(collected)).toBe('completed')
    expect(warnings).toEqual([])
  })

  // W9
  it('a writ that a person sticks after the requeue stays stuck, before and after a restart', async () => {
    const ground = await onMemory.open()
    let runs = 0
    const options: SpiderGuildOptions = {
      hasRetry: true,
      designs: {
        second: async () => {
          runs += 1
          if (runs === 1) throw new Error('boom')
          return { status: 'launched', sessionId: 's' }
        },
      },
    }
    const first = await spiderGuild(ground, options)
    const writ = await first.post()
    await first.drain()
    expect(await first.statusOf(writ)).not.toHaveProperty('retryable')
    expect(await first.statusOf(writ)).toMatchObject({ stuckCause: 'engine-failure' })
    await first.clerk.transition(writ.id, 'stuck', { resolution: 'by hand' })
    expect(await first.phaseOf(writ)).toBe('stuck')
    await first.g.shutdown()
    const second = await open(options, ground)
    expect(await second.phaseOf(writ)).toBe('stuck')
  })

  // W9
  it('a writ that a person sticks while engines of its first rig run on stays stuck, before and after a restart', async () => {
    const ground = await onMemory.open()
    const options: SpiderGuildOptions = {
      hasRetry: true,
      spider: { maxConcurrentEnginesPerRig: 2 },
      designs: { quick: async () => ({ status: 'launched', sessionId: 's' }), thrower },
      engines: [
        { id: 'long', designId: 'quick' },
        { id: 'fails', designId: 'thrower' },
      ],
    }
    const first = await spiderGuild(ground, options)
    const writ = await first.post()
    await first.drain()
    // Opened again by the retry, it waits for the session.
    expect([await first.phaseOf(writ), (await first.rigsOf(writ)).length]).toEqual(['open', 1])
    expect(await first.statusOf(writ)).toMatchObject({ stuckCause: 'engine-failure' })
    await first.clerk.transition(writ.id, 'stuck', { resolution: 'by hand' })
    await first.drain()
    expect(await first.phaseOf(writ)).toBe('stuck')
    await first.g.shutdown()
    const second = await open(options, ground)
    expect(await second.phaseOf(writ)).toBe('stuck')
  })

  // W12
  it('a dozen old writs that wait do not stop a younger one', async () => {
    const { post, clerk, spider, follows } = await open({
      designs: { quick: async () => ({ status: 'blocked', blockType: 'patron-input', condition: { requestId: 'r' } }) },
    })
    const draft = await clerk.post({ title: 'draft', body: '', draft: true })
    for (let n = 0; n < 12; n += 1) await follows(await post(), draft)
    const young = await post()
    expect(await spider.crawl()).toMatchObject({ action: 'rig-spawned', writId: young.id })
  })

  // W18
  it('it says what it decided about a writ, and why', async () => {
    const { post, g, drain, clerk, spider } = await open({ designs: { thrower }, hasRetry: true })
    const retry = g.apparatus<ClockworksRetryApi>('clockworks-retry')
    const writ = await post()
    expect(await retry.describe(writ.id)).toMatchObject({
      attempts: 0,
      cap: 2,
      decision: 'leave',
      reason: expect.stringContaining('open'),
    })
    // Spawned, failed, opened again: what happened is described after the requeue, too.
    await spider.crawl()
    await spider.crawl()
    expect(await retry.describe(writ.id)).toMatchObject({
      attempts: 1,
      reason: 'The writ is open, not stuck. It was stuck before: Engine "only" failed: boom (retryable, by default)',
    })
    await drain()
    expect(await retry.describe(writ.id)).toEqual({
      writId: writ.id,
      attempts: 2,
      cap: 2,
      decision: 'leave',
      reason: 'It has had 2 of 2 attempts; now a person has to look at it.',
    })
    await clerk.setWritStatus(writ.id, 'spider', { stuckCause: 'cycle' })
    expect((await retry.describe(writ.id)).reason).toContain('stuck by cycle')
    await expect(retry.describe('w-none')).rejects.toMatchObject({ code: 'WRIT_NOT_FOUND' })
  })
})

describe('writs that were there before', () => {
  it('are queued when their type gets a template', async () => {
    const ground = await onMemory.open()
    const before = await spiderGuild(ground, { spider: { rigTemplateMappings: {} } })
    const writs = [await before.post(), await before.post()]
    expect(await before.drain()).toEqual([])
    await before.g.shutdown()
    const after = await open({}, ground)
    await after.drain()
    for (const writ of writs) expect(await after.phaseOf(writ)).toBe('completed')
  })
})

async function until(isSo: () => boolean): Promise<void> {
  for (let turns = 0; turns < 1_000 && !isSo(); turns += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(isSo()).toBe(true)
}
