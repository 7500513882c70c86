import { guild, type PluginSource } from 'millrace/guild'
import type { WritDoc } from 'millrace/guild/clerk'
import { shortWritId } from 'millrace/guild/clerk'
import type { EngineDesign, EngineRunContext } from 'millrace/guild/fabricator'
import type { SessionDoc } from 'millrace/guild/spider'
import type { StacksApi } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Ground, GroundKind } from '../grounds.js'
import { type SpiderGuild, type SpiderGuildOptions, spiderGuild, thrower } from './spider-guild.js'

const yielding =
  (yields: unknown): EngineDesign['run'] =>
  async () => ({ status: 'completed', yields })

/** An expression, spelt so that it is not read as a template string. */
const ref = (path: string): string => `$\{${path}}`

/** The scenarios of Spider and Clockworks-Retry, on one kind of ground. */
export function describeSpider(kind: GroundKind): void {
  describe(`Spider on ${kind.name}`, () => {
    let ground: Ground
    beforeEach(async () => {
      ground = await kind.open()
    })
    afterEach(() => ground.close())

    const open = async (options: SpiderGuildOptions = {}): Promise<SpiderGuild> => {
      const made = await spiderGuild(ground, options)
      onTestFinished(() => made.g.shutdown())
      return made
    }

    // 28
    it('spawns for the older writ, then runs it before it spawns again', async () => {
      const { post, spider, phaseOf } = await open()
      const older = await post()
      await post()
      const spawned = await spider.crawl()
      expect(spawned).toMatchObject({ action: 'rig-spawned', writId: older.id })
      const rig = await spider.forWrit(older.id)
      expect(rig?.engines.map(({ status }) => status)).toEqual(['pending'])
      expect(await phaseOf(older)).toBe('open')
      expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', writId: older.id, outcome: 'completed' })
      expect(await spider.list()).toHaveLength(1)
    })

    // 29
    it('a false condition skips on to a fixed point, and unconditional engines run', async () => {
      const { post, spider, phaseOf } = await open({
        designs: { a: yielding({ x: false }), other: yielding({ y: 1, z: 1 }) },
        engines: [
          { id: 'A', designId: 'a' },
          { id: 'B', designId: 'other', upstream: ['A'], when: ref('yields.A.x') },
          { id: 'C', designId: 'other', upstream: ['B'], when: ref('yields.B.y') },
          { id: 'D', designId: 'other', upstream: ['C'], when: ref('yields.C.z') },
          { id: 'E', designId: 'other', upstream: ['D'] },
        ],
      })
      const writ = await post()
      await spider.crawl()
      expect(await spider.crawl()).toMatchObject({ action: 'engine-completed', engineId: 'A' })
      expect(await spider.crawl()).toMatchObject({
        action: 'engine-skipped',
        engineId: 'B',
        cascadeSkipped: ['C', 'D'],
      })
      expect((await spider.forWrit(writ.id))?.engines.find(({ id }) => id === 'E')?.status).toBe('pending')
      expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'completed' })
      expect(await phaseOf(writ)).toBe('completed')
    })

    // 30
    it('a graft is applied by the crawl after the one that completed its engine', async () => {
      const { post, spider, clerk } = await open({
        designs: {
          decision: async () => ({ status: 'completed', yields: 1, graft: [{ id: 'extra', designId: 'extra' }] }),
          extra: yielding({ found: 'it' }),
        },
        engines: [{ id: 'decision', designId: 'decision' }],
      })
      const writ = await post()
      await spider.crawl()
      expect(await spider.crawl()).toMatchObject({ action: 'engine-completed', engineId: 'decision' })
      expect(await spider.crawl()).toMatchObject({ action: 'engine-grafted', graftedEngineIds: ['extra'] })
      expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'completed' })
      expect((await clerk.show(writ.id)).resolution).toBe(JSON.stringify({ found: 'it' }))
    })

    // 31
    it('a graft that repeats an id fails its engine for good', async () => {
      const { post, drain, rigsOf, statusOf, phaseOf } = await open({
        hasRetry: true,
        designs: { d: async () => ({ status: 'completed', yields: 1, graft: [{ id: 'd', designId: 'd' }] }) },
        engines: [{ id: 'd', designId: 'd' }],
      })
      const writ = await post()
      expect((await drain()).at(-1)).toMatchObject({ action: 'rig-completed', outcome: 'stuck' })
      const [rig, ...others] = await rigsOf(writ)
      expect(rig?.engines[0]?.error).toContain('Duplicate engine id')
      expect(await statusOf(writ)).toMatchObject({ stuckCause: 'engine-failure', retryable: false })
      expect(await drain()).toEqual([])
      expect(others).toEqual([])
      expect(await phaseOf(writ)).toBe('stuck')
    })

    // 32
    it('default limits: three sessions run, and no fourth rig is spawned', async () => {
      const { post, spider } = await open({
        designs: { quick: async (_, { rigId }) => ({ status: 'launched', sessionId: `s-${rigId}` }) },
      })
      for (let i = 0; i < 5; i += 1) await post()
      for (let i = 0; i < 30; i += 1) await spider.crawl()
      const rigs = await spider.list({ limit: 100 })
      expect(rigs).toHaveLength(3)
      expect(rigs.flatMap(({ engines }) => engines).filter(({ status }) => status === 'running')).toHaveLength(3)
    })

    // 33
    it('a block is checked, then left alone for its interval; the next run knows it', async () => {
      const clock = new FakeClock()
      let isCleared = false
      let checks = 0
      const priors: (EngineRunContext['priorBlock'] | undefined)[] = []
      const gate = {
        id: 'gate',
        pollIntervalMs: 60_000,
        conditionSchema: { parse: (condition: unknown) => condition },
        check: async () => {
          checks += 1
          return { status: isCleared ? ('cleared' as const) : ('pending' as const) }
        },
      }
      const { post, spider, phaseOf } = await open({
        clock,
        designs: {
          waits: async (_, { priorBlock }) => {
            priors.push(priorBlock)
            return priorBlock === undefined
              ? { status: 'blocked', blockType: 'gate', condition: { door: 1 } }
              : { status: 'completed', yields: 1 }
          },
        },
        plugins: [{ package: 'gate-kit', plugin: { kit: { blockTypes: { gate } } } }],
      })
      const writ = await post()
      await spider.crawl()
      expect(await spider.crawl()).toMatchObject({ action: 'rig-blocked', writId: writ.id })
      await spider.crawl()
      expect(checks).toBe(1)
      await spider.crawl()
      expect(checks).toBe(1)
      isCleared = true
      await clock.advance(61_000)
      expect(await spider.crawl()).toMatchObject({ action: 'engine-unblocked' })
      expect(checks).toBe(2)
      expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'completed' })
      expect(priors).toEqual([undefined, expect.objectContaining({ type: 'gate', condition: { door: 1 } })])
      expect(await phaseOf(writ)).toBe('completed')
    })

    // 34
    it('cancelling a writ cancels its rig and session once; other ends leave the rig running', async () => {
      const cancelled: string[] = []
      const { post, spider, clerk, stacks } = await open({
        designs: { quick: async (_, { rigId }) => ({ status: 'launched', sessionId: `s-${rigId}` }) },
        plugins: [animator(cancelled)],
      })
      const [a, b, c] = [await post(), await post(), await post()]
      for (let i = 0; i < 6; i += 1) await spider.crawl()
      const steps: string[] = []
      const before = await clerk.show(a.id)
      await clerk.transition(a.id, 'cancelled')
      steps.push(before.phase, (await clerk.show(a.id)).phase)
      const rig = await spider.forWrit(a.id)
      expect(rig?.status).toBe('cancelled')
      expect(cancelled).toEqual([`s-${rig?.id}: Writ ${a.id} cancelled`])
      expect(steps).toEqual(['open', 'cancelled'])
      await clerk.transition(b.id, 'failed')
      await clerk.transition(c.id, 'completed')
      expect((await spider.forWrit(b.id))?.status).toBe('running')
      expect((await spider.forWrit(c.id))?.status).toBe('running')
      // Their sessions end after all; the writs have ended and stay as they are.
      const rigB = await spider.forWrit(b.id)
      await stacks
        .book<SessionDoc>('animator', 'sessions')
        .put({ id: `s-${rigB?.id}`, status: 'completed', output: 'late' })
      expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'completed' })
      expect((await clerk.show(b.id)).phase).toBe('failed')
    })

    // 35
    it('a failed dependency makes its follower stuck, and a follower of that one waits', async () => {
      const { post, follows, drain, clerk, statusOf, phaseOf, rigsOf } = await open({ hasRetry: true })
      const [b1, b2, d, e] = [await post(), await post(), await post(), await post()]
      await follows(d, b1)
      await follows(d, b2)
      await follows(e, d)
      await clerk.transition(b1.id, 'failed')
      await clerk.transition(b2.id, 'failed')
      await drain()
      const stuck = await clerk.show(d.id)
      expect(stuck.phase).toBe('stuck')
      expect(stuck.resolution).toBe(`Blocked by failed dependencies: ${shortWritId(b1.id)}, ${shortWritId(b2.id)}`)
      const status = await statusOf(d)
      expect(status).toMatchObject({ stuckCause: 'failed-blocker', blockerIds: [b1.id, b2.id] })
      expect(status).not.toHaveProperty('retryable')
      expect(await phaseOf(e)).toBe('open')
      expect(await rigsOf(e)).toEqual([])
    })

    // 36
    it('a cycle is stuck as a whole; a diamond is not one', async () => {
      const { post, follows, drain, clerk, statusOf } = await open()
      const ring = [await post(), await post(), await post()] as const
      await follows(ring[0], ring[1])
      await follows(ring[1], ring[2])
      await follows(ring[2], ring[0])
      const [top, left, right, bottom] = [await post(), await post(), await post(), await post()]
      await follows(left, top)
      await follows(right, top)
      await follows(bottom, left)
      await follows(bottom, right)
      await drain()
      for (const writ of ring) {
        expect((await clerk.show(writ.id)).resolution).toBe('Cycle detected in spider.follows graph')
        const status = await statusOf(writ)
        expect(status?.stuckCause).toBe('cycle')
        expect([...(status?.blockerIds ?? [])].sort()).toEqual(ring.map(({ id }) => id).sort())
        expect(status).not.toHaveProperty('retryable')
      }
      for (const writ of [top, left, right, bottom]) expect((await clerk.show(writ.id)).phase).toBe('completed')
      // A link of the cycle is removed: all three are freed, and run in their order.
      await clerk.unlink(ring[2].id, ring[0].id, 'follows')
      const actions = (await drain()).map(({ action }) => action)
      expect(actions.filter((action) => action === 'writ-unstuck')).toHaveLength(3)
      for (const writ of ring) expect((await clerk.show(writ.id)).phase).toBe('completed')
    })

    // 37
    it('a gated older writ does not hold up a younger one', async () => {
      const { post, follows, spider, clerk } = await open()
      const draft = await clerk.post({ title: 'later', body: '', draft: true })
      const gated = await post()
      await follows(gated, draft)
      const free = await post()
      expect(await spider.crawl()).toMatchObject({ action: 'rig-spawned', writId: free.id })
    })

    // 38
    it('a thrower gets two rigs and stays stuck', async () => {
      const { post, drain, rigsOf, statusOf, phaseOf } = await open({ designs: { thrower }, hasRetry: true })
      const writ = await post()
      const results = await drain()
      expect(results.map((result) => ('outcome' in result ? result.outcome : result.action))).toEqual([
        'rig-spawned',
        'stuck',
        'rig-spawned',
        'stuck',
      ])
      const check = async () => {
        expect((await rigsOf(writ)).map(({ status, attempt }) => [status, attempt])).toEqual([
          ['stuck', 1],
          ['stuck', 2],
        ])
        expect(await phaseOf(writ)).toBe('stuck')
        expect(await statusOf(writ)).toMatchObject({ stuckCause: 'engine-failure', retryable: true })
      }
      await check()
      expect(await drain()).toEqual([])
      await check()
    })

    // 39
    it('one event says stuck with its reason, the next says open', async () => {
      const seen: string[] = []
      const spy: PluginSource = {
        package: 'spy-apparatus',
        plugin: {
          apparatus: {
            requires: ['stacks', 'clerk'],
            start: () => {
              guild()
                .apparatus<StacksApi>('stacks')
                .watch<WritDoc>(
                  'clerk',
                  'writs',
                  (event) => {
                    if (event.type !== 'update') return
                    const status = event.entry.status?.['spider'] as { retryable?: boolean } | undefined
                    seen.push(`${event.prev.phase}→${event.entry.phase} ${status?.retryable}`)
                  },
                  { failOnError: false },
                )
            },
          },
        },
      }
      const { post, spider } = await open({ designs: { thrower }, hasRetry: true, plugins: [spy] })
      await post()
      await spider.crawl()
      await spider.crawl()
      expect(seen).toEqual(['open→stuck true', 'stuck→open true'])
    })

    // 40
    it('without the flag, and with anything that only resembles it, a writ stays stuck', async () => {
      const { post, stacks, clerk, phaseOf } = await open({
        designs: { thrower },
        hasRetry: true,
        spider: { rigTemplateMappings: {} },
      })
      const rigs = stacks.book('spider', 'rigs')
      const slots = [
        { stuckCause: 'engine-failure' },
        { retryable: false },
        { retryable: 'true' },
        { retryable: 1 },
        undefined,
        'x',
      ]
      for (const slot of slots) {
        const writ = await post()
        await rigs.put({ id: `rig-of-${writ.id}`, writId: writ.id, status: 'stuck', attempt: 1 } as never)
        await stacks.transaction(async () => {
          if (slot !== undefined) await clerk.setWritStatus(writ.id, 'spider', slot)
          await clerk.transition(writ.id, 'stuck')
        })
        expect(await phaseOf(writ)).toBe('stuck')
      }
    })

    // 41
    it('only the rigs of the writ itself count', async () => {
      const { post, stacks, clerk, phaseOf } = await open({ hasRetry: true, spider: { rigTemplateMappings: {} } })
      const [a, b] = [await post(), await post()]
      const rigs = stacks.book('spider', 'rigs')
      const rig = (id: string, writ: WritDoc) => rigs.put({ id, writId: writ.id, status: 'stuck', attempt: 1 } as never)
      await rig('r1', a)
      await rig('r2', b)
      await rig('r3', b)
      await stick(clerk, stacks, b, { retryable: true })
      await stick(clerk, stacks, a, { retryable: true, stuckCause: 'failed-blocker' })
      expect(await phaseOf(a)).toBe('open')
      expect(await phaseOf(b)).toBe('stuck')
    })

    // 42
    it('at the cap, the flag written again changes nothing', async () => {
      const { post, drain, clerk, phaseOf } = await open({ designs: { thrower }, hasRetry: true })
      const writ = await post()
      await drain()
      await clerk.setWritStatus(writ.id, 'spider', { stuckCause: 'engine-failure', retryable: true })
      expect(await phaseOf(writ)).toBe('stuck')
      expect(await drain()).toEqual([])
    })

    // W15
    it('crawls that meet at one engine, in two guilds, run it once', async () => {
      let runs = 0
      let end = () => {}
      const ended = new Promise<void>((resolve) => {
        end = resolve
      })
      const options: SpiderGuildOptions = {
        spider: { maxConcurrentEnginesPerRig: 2 },
        designs: {
          slow: async () => {
            runs += 1
            if (runs > 1) end()
            await ended
            return { status: 'completed', yields: 1 }
          },
        },
      }
      const [one, two] = [await open(options), await open(options)]
      await one.post()
      expect(await one.spider.crawl()).toMatchObject({ action: 'rig-spawned' })
      let idle = 0
      const crawls = [one, two, one, two].map(async ({ spider }) => {
        const result = await spider.crawl()
        idle += 1
        // All but the one that runs the engine have found nothing to do.
        if (idle === 3) end()
        return result
      })
      const results = (await Promise.all(crawls)).filter((result) => result !== null)
      expect(results).toEqual([expect.objectContaining({ action: 'rig-completed', outcome: 'completed' })])
      expect(runs).toBe(1)
      expect([...one.warnings, ...two.warnings]).toEqual([])
    })

    // 43
    it('a guild that starts finds what became stuck while none ran, once, and not at the cap', async () => {
      const first = await spiderGuild(ground, { designs: { thrower } })
      const writ = await first.post()
      await first.drain()
      expect(await first.phaseOf(writ)).toBe('stuck')
      await first.g.shutdown()
      const second = await spiderGuild(ground, { designs: { thrower }, hasRetry: true })
      expect(await second.phaseOf(writ)).toBe('open')
      expect((await second.drain()).map(({ action }) => action)).toEqual(['rig-spawned', 'rig-completed'])
      await second.g.shutdown()
      const third = await open({ designs: { thrower }, hasRetry: true })
      expect(await third.phaseOf(writ)).toBe('stuck')
      expect(await third.drain()).toEqual([])
      expect(await third.rigsOf(writ)).toHaveLength(2)
    })
  })
}

async function stick(
  clerk: SpiderGuild['clerk'],
  stacks: StacksApi,
  writ: WritDoc,
  status: Readonly<Record<string, unknown>>,
): Promise<void> {
  await stacks.transaction(async () => {
    await clerk.transition(writ.id, 'stuck')
    await clerk.setWritStatus(writ.id, 'spider', status)
  })
}

/** A provider of sessions that remembers what it was asked to cancel. */
function animator(cancelled: string[]): PluginSource {
  return {
    package: 'animator-apparatus',
    plugin: {
      apparatus: {
        requires: ['stacks'],
        supportKit: { books: { sessions: {} } },
        provides: {
          cancel: async (id: string, { reason }: { readonly reason: string }) => {
            cancelled.push(`${id}: ${reason}`)
          },
        },
        start: () => undefined,
      },
    },
  }
}
