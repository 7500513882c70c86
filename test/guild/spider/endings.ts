import { createWork, defineWork, memoryBackend, priorityDoer, type WorkResult, type WorkSystem } from 'millrace'
import type { PluginSource } from 'millrace/guild'
import type { EngineDesign } from 'millrace/guild/fabricator'
import type { SessionDoc } from 'millrace/guild/spider'
import { openOps } from 'millrace/ops'
import { FakeClock } from 'millrace/testing'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Ground, GroundKind } from '../grounds.js'
import { type SpiderGuild, type SpiderGuildOptions, spiderGuild, thrower } from './spider-guild.js'

/** Waits for something that happens by itself, in real time; the runner's own limit is the only one. */
async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A run that ends when the test says how. */
function held() {
  let end: (outcome: 'completes' | 'fails') => void = () => {}
  const signals: AbortSignal[] = []
  const run: EngineDesign['run'] = (_, { signal }) => {
    if (signal !== undefined) signals.push(signal)
    return new Promise((resolve, reject) => {
      end = (outcome) =>
        outcome === 'completes'
          ? resolve({ status: 'completed', yields: { late: true } })
          : reject(new Error('it failed too'))
    })
  }
  return { run, signals, end: (outcome: 'completes' | 'fails') => end(outcome) }
}

const animator: PluginSource = { package: 'animator-kit', plugin: { kit: { books: { sessions: {} } } } }
const beside = [
  { id: 'long', designId: 'long' },
  { id: 'fails', designId: 'fails' },
]

/** Engines that end otherwise than by their own run, or after their rig, on one kind of ground. */
export function describeEndings(kind: GroundKind): void {
  describe(`on ${kind.name}`, () => {
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
    const slots = ({ stacks }: SpiderGuild) => stacks.book('spider', 'slots').count()
    const enginesOf = async ({ spider }: SpiderGuild, writ: { readonly id: string }, attempt = 1) => {
      const rig = (await spider.list({ limit: 100 })).find((one) => one.writId === writ.id && one.attempt === attempt)
      return Object.fromEntries((rig?.engines ?? []).map((engine) => [engine.id, engine]))
    }

    describe('an engine that runs beside one that fails', () => {
      it.each([
        ['completes', { status: 'completed', yields: { late: true } }],
        ['fails', { status: 'failed', error: 'it failed too' }],
      ] as const)('%s: that is kept, and only then does the writ get its next rig', async (outcome, kept) => {
        const long = held()
        let runs = 0
        const made = await open({
          hasRetry: true,
          spider: { maxConcurrentEnginesPerRig: 2 },
          designs: {
            long: (...args) => (runs++ === 0 ? long.run(...args) : Promise.resolve({ status: 'completed', yields: 2 })),
            fails: async (_, { rigId }) => {
              if ((await made.spider.show(rigId)).attempt === 1) throw new Error('boom')
              return { status: 'completed', yields: 1 }
            },
          },
          engines: beside,
        })
        const { post, spider, rigsOf, phaseOf } = made
        const writ = await post()
        await spider.crawl()
        const running = spider.crawl()
        await until(() => long.signals.length === 1)

        expect(await spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'stuck' })

        // The writ was opened again immediately, and waits: what was begun for it is not over, and holds its slot.
        expect(await phaseOf(writ)).toBe('open')
        expect(await spider.crawl()).toBeNull()
        expect(await rigsOf(writ)).toHaveLength(1)
        expect(await slots(made)).toBe(1)
        expect(long.signals[0]?.aborted).toBe(false)
        long.end(outcome)
        expect(await running).toMatchObject({ action: 'engine-ended', engineId: 'long', status: kept.status })
        expect((await enginesOf(made, writ))['long']).toMatchObject(kept)
        expect((await rigsOf(writ)).map(({ status }) => status)).toEqual(['stuck'])
        expect(await slots(made)).toBe(0)
        await made.drain()
        expect((await rigsOf(writ)).map(({ status }) => status)).toEqual(['stuck', 'completed'])
        expect(await phaseOf(writ)).toBe('completed')
        expect(await made.stacks.book('spider', 'queue').count()).toBe(0)
        expect(made.warnings).toEqual([])
      })

      it('has launched a session: its result is collected, in a guild that was not there before', async () => {
        const options: SpiderGuildOptions = {
          spider: { maxConcurrentEnginesPerRig: 2 },
          designs: { long: async () => ({ status: 'launched', sessionId: 's' }), fails: thrower },
          engines: beside,
          plugins: [animator],
        }
        const first = await spiderGuild(ground, options)
        const writ = await first.post()
        await first.drain()
        expect(await first.phaseOf(writ)).toBe('stuck')
        await first.g.shutdown()
        const made = await open(options)
        await made.stacks
          .book<SessionDoc>('animator', 'sessions')
          .put({ id: 's', status: 'completed', output: 'at last' })
        expect(await made.drain()).toMatchObject([
          { action: 'engine-ended', engineId: 'long', status: 'completed', rigId: expect.any(String) },
        ])
        expect((await enginesOf(made, writ))['long']).toMatchObject({ yields: { output: 'at last' } })
        expect(await slots(made)).toBe(0)
      })

      it.each(['the writ', 'the rig'])('is asked to stop when %s is cancelled', async (what) => {
        const long = held()
        const made = await open({
          spider: { maxConcurrentEnginesPerRig: 2 },
          designs: { long: long.run, fails: thrower },
          engines: beside,
        })
        const { post, spider, clerk } = made
        const writ = await post()
        await spider.crawl()
        const running = spider.crawl()
        await until(() => long.signals.length === 1)
        await spider.crawl()
        if (what === 'the writ') await clerk.transition(writ.id, 'cancelled')
        else await spider.cancel((await spider.forWrit(writ.id))?.id ?? '', { reason: 'enough' })

        expect(long.signals[0]?.aborted).toBe(true)
        expect(await made.phaseOf(writ)).toBe('cancelled')
        expect((await spider.forWrit(writ.id))?.status).toBe('cancelled')
        expect((await enginesOf(made, writ))['long']).toMatchObject({ status: 'cancelled' })
        expect(await slots(made)).toBe(0)
        long.end('completes')
        expect(await running).toBeNull()
      })

      it('is not run again when its process is gone', async () => {
        const startAt = 1_800_000_000_000
        const gone = held()
        let runs = 0
        const options = {
          spider: { maxConcurrentEnginesPerRig: 2 },
          designs: {
            long: (...args: Parameters<EngineDesign['run']>) => {
              runs += 1
              return gone.run(...args)
            },
            fails: thrower,
          },
          engines: beside,
        }
        // A guild with its own time that is not moved on is like a process that is gone.
        const dead = await open({ ...options, clock: new FakeClock({ startAt }) })
        const writ = await dead.post()
        await dead.spider.crawl()
        void dead.spider.crawl()
        await until(() => runs === 1)
        await dead.spider.crawl()
        const made = await open({ ...options, clock: new FakeClock({ startAt: startAt + 31_000 }) })
        expect(await made.drain()).toMatchObject([{ action: 'engine-ended', engineId: 'long', status: 'cancelled' }])
        expect(runs).toBe(1)
        expect((await enginesOf(made, writ))['long']?.error).toContain('Not run again')
        expect(await slots(made)).toBe(0)
      })

      it('is cancelled with it when a session of another was cancelled', async () => {
        const long = held()
        const made = await open({
          spider: { maxConcurrentEnginesPerRig: 2 },
          designs: { long: long.run, quick: async () => ({ status: 'launched', sessionId: 's' }) },
          engines: [
            { id: 'long', designId: 'long' },
            { id: 'quick', designId: 'quick' },
          ],
          plugins: [animator],
        })
        const writ = await made.post()
        await made.spider.crawl()
        const running = made.spider.crawl()
        await until(() => long.signals.length === 1)
        await made.spider.crawl()
        await made.stacks.book<SessionDoc>('animator', 'sessions').put({ id: 's', status: 'cancelled' })
        expect(await made.spider.crawl()).toMatchObject({ action: 'rig-completed', outcome: 'cancelled' })
        expect(await made.phaseOf(writ)).toBe('cancelled')
        expect(long.signals[0]?.aborted).toBe(true)
        expect(await slots(made)).toBe(0)
        long.end('completes')
        expect(await running).toBeNull()
      })
    })

    describe('run by the work engine', () => {
      const done: EngineDesign['run'] = async () => ({ status: 'completed', yields: 1 })
      type Items = ReturnType<typeof memoryBackend>

      /** A process: a guild, and a work system on items that all share. It checks its items every few milliseconds. */
      const member = async (
        items: Items,
        options: SpiderGuildOptions,
        work: Parameters<typeof createWork>[0] = {},
        around: (w: WorkSystem) => Partial<WorkSystem> = () => ({}),
      ) => {
        const made = await spiderGuild(ground, { ...options, spider: { pollIntervalMs: 20, ...options.spider } })
        const w = createWork({ backend: items, ...work, work: [made.spider.engineWork] }) as unknown as WorkSystem
        const running = made.spider.start({ work: { ...w, ...around(w) } })
        let stopped: Promise<void> | undefined
        const stop = (): Promise<void> => {
          stopped ??= (async () => {
            await running.stop()
            await w.stop()
            await made.g.shutdown()
          })()
          return stopped
        }
        onTestFinished(stop)
        return { ...made, w, stop }
      }
      const rows = ({ stacks }: SpiderGuild, kind: 'push' | 'item') =>
        stacks.book('spider', 'queue').count([['kind', '=', kind]])
      /** The item of the only engine that was handed over, once that is noted. */
      const itemIn = async (made: SpiderGuild & { readonly w: WorkSystem }) => {
        await until(async () => (await rows(made, 'item')) === 1)
        return (await made.w.list())[0]?.id ?? ''
      }
      const waiting = { autoStart: false }

      it('is woken by a process that has not started: it posts a writ, opens one again, ends a session', async () => {
        const client = await open({ ...woken() })
        function woken(): SpiderGuildOptions {
          return {
            hasRetry: true,
            spider: { pollIntervalMs: 3_600_000 },
            designs: {
              either: async ({ title }, { rigId }) => {
                const { attempt } = await client.spider.show(rigId)
                if (title === 'fails' && attempt < 3) throw new Error('boom')
                if (title === 'session') return { status: 'launched', sessionId: rigId }
                return { status: 'completed', yields: attempt }
              },
            },
            engines: [{ id: 'only', designId: 'either', givens: { title: `$\{writ.title}` } }],
            plugins: [animator],
          }
        }
        await member(memoryBackend(), woken())
        const plain = await client.post('plain')
        await until(async () => (await client.phaseOf(plain)) === 'completed')
        const fails = await client.post('fails')
        await until(async () => (await client.rigsOf(fails)).length === 2 && (await client.phaseOf(fails)) === 'stuck')
        await client.clerk.transition(fails.id, 'open')
        await until(async () => (await client.phaseOf(fails)) === 'completed')
        const session = await client.post('session')
        await until(async () => (await client.spider.forWrit(session.id))?.engines[0]?.sessionId !== undefined)
        const { id = '' } = (await client.spider.forWrit(session.id)) ?? {}
        await client.stacks.book<SessionDoc>('animator', 'sessions').put({ id, status: 'completed' })
        // PostgreSQL notifies only of books that a durable watcher follows, and sessions are none of them.
        if (kind.name !== 'SQLite') await client.post('plain')
        await until(async () => (await client.phaseOf(session)) === 'completed')
      })

      it.each(['the process that handed it over', 'another process, after that one is gone'])(
        'an item that is cancelled before it began cancels rig and writ, seen by %s',
        async (by) => {
          const items = memoryBackend()
          const first = await member(items, { designs: { done }, spider: { maxConcurrentEngines: 1 } }, waiting)
          const writ = await first.post()
          const id = await itemIn(first)
          const isLeft = by.startsWith('another')
          if (isLeft) await first.stop()
          expect(await first.w.cancel(id, 'not today')).toEqual({ kind: 'cancelled' })
          const now = isLeft ? await member(items, { designs: { done }, spider: { maxConcurrentEngines: 1 } }) : first

          await until(async () => (await now.phaseOf(writ)) !== 'open')

          expect(await now.clerk.show(writ.id)).toMatchObject({ phase: 'cancelled', resolution: 'not today' })
          expect((await now.rigsOf(writ)).map(({ status }) => status)).toEqual(['cancelled'])
          expect(await slots(now)).toBe(0)
          // The only slot is free for the next.
          now.w.start()
          const next = await now.post()
          await until(async () => (await now.phaseOf(next)) === 'completed')
        },
      )

      it('an item that is cancelled and discarded before a process saw it is for a person: it may have been lost as well', async () => {
        const items = memoryBackend()
        let ask = () => {}
        const mayAsk = new Promise<void>((resolve) => (ask = resolve))
        const made = await member(items, { designs: { done }, hasRetry: true }, waiting, (w) => ({
          states: async (ids) => mayAsk.then(() => w.states(ids)),
        }))
        const writ = await made.post()
        const id = await itemIn(made)
        await made.w.cancel(id)
        const discarded = await openOps(items).discard({ state: 'cancelled' }, { who: 'me', why: 'not wanted' })
        expect(discarded).toMatchObject({ done: 1, state: 'done' })
        ask()
        await until(async () => (await made.phaseOf(writ)) !== 'open')
        expect(await made.clerk.show(writ.id)).toMatchObject({
          phase: 'stuck',
          resolution: expect.stringContaining('discarded'),
          status: { spider: { stuckCause: 'engine-failure', retryable: false } },
        })
        expect((await made.rigsOf(writ)).map(({ status }) => status)).toEqual(['stuck'])
        expect(await slots(made)).toBe(0)
      })

      it('an item of another work system, which this one never saw, is not judged', async () => {
        const first = await member(memoryBackend(), { designs: { done } }, waiting)
        const writ = await first.post()
        await itemIn(first)
        let asked = 0
        // It comes when there is nothing to hand over again, and asks for what is not there.
        await member(memoryBackend(), { designs: { done } }, waiting, (w) => ({
          enqueue: (() => ({ accepted: () => new Promise(() => undefined) })) as never,
          states: async (ids) => {
            asked += ids.length
            return w.states(ids)
          },
        }))
        await until(() => asked >= 3)
        expect(await first.phaseOf(writ)).toBe('open')
      })

      it('an item that dies makes its engine fail, which is worth another attempt', async () => {
        const items = memoryBackend()
        const made = await member(items, { designs: { done } }, waiting, (w) => ({
          enqueue: ((work: Parameters<typeof w.enqueue>[0]) => w.enqueue(work as never, { timeout: 1 })) as never,
        }))
        const writ = await made.post()
        await itemIn(made)
        await new Promise((resolve) => setTimeout(resolve, 5)) // Its time passes, on the clock of the backend.
        made.w.start()
        await until(async () => (await made.phaseOf(writ)) !== 'open')
        expect(await made.statusOf(writ)).toMatchObject({ stuckCause: 'engine-failure', retryable: true })
        expect((await made.clerk.show(writ.id)).resolution).toContain('The work item died (expired)')
      })

      it('an item that succeeded and whose run is nowhere written is handed over once more', async () => {
        const items = memoryBackend()
        const made = await member(items, { designs: { done } }, waiting)
        const writ = await made.post()
        const id = await itemIn(made)
        // As after books were put back to an earlier time: the item is done, the engine knows of nothing.
        const other = createWork({
          backend: items,
          work: [defineWork<'spider.engine', unknown, WorkResult<void, void>>('spider.engine', (_, ctx) => ctx.void())],
        })
        await until(async () => (await made.w.list()).some((item) => item.id === id && item.status === 'success'))
        await other.stop()
        made.w.start()
        await until(async () => (await made.phaseOf(writ)) === 'completed')
        expect((await made.w.list()).map((item) => item.id).sort()).toContain(`${id}+1`)
        expect(await made.rigsOf(writ)).toHaveLength(1)
      })

      it('a late answer to a handing over is not taken for that of the next try', async () => {
        const items = memoryBackend()
        const fails: SpiderGuildOptions = {
          designs: {
            once: {
              retry: { maxAttempts: 1, backoff: { initialMs: 1, maxMs: 1 } },
              run: async (_, { attempt }) => {
                if (attempt === 1) throw new Error('boom')
                return { status: 'completed', yields: 1 }
              },
            },
          },
        }
        let answer = () => {}
        const isAnswered = new Promise<void>((resolve) => (answer = resolve))
        const late = await member(items, fails, waiting, (w) => ({
          enqueue: ((work: { readonly id: string }) => {
            const handle = w.enqueue(work as never)
            return { accepted: () => handle.accepted().finally(() => isAnswered) }
          }) as never,
        }))
        const writ = await late.post()
        await until(async () => (await late.w.list()).length === 1)
        // This one runs the first try and admits the second, which it cannot hand over.
        let giveUp = (_: Error) => {}
        const isCutOff = new Promise<never>((_, reject) => (giveUp = reject))
        isCutOff.catch(() => undefined)
        const cutOff = await member(items, fails, {}, (w) => ({
          enqueue: ((work: { readonly id: string }) =>
            work.id.endsWith('/1') ? w.enqueue(work as never) : { accepted: () => isCutOff }) as never,
        }))
        const isAdmitted = async () => {
          const engine = (await late.spider.forWrit(writ.id))?.engines[0]
          return engine?.attemptCount === 1 && engine.status === 'running'
        }
        await until(isAdmitted)
        answer()
        await until(async () => (await late.phaseOf(writ)) === 'completed')
        giveUp(new Error('cut off'))
        expect(await cutOff.rigsOf(writ)).toHaveLength(1)
      })

      it('beside one that fails, what runs comes to its end and what was not begun never runs', async () => {
        const items = memoryBackend()
        const long = held()
        const begun: string[] = []
        const three: SpiderGuildOptions = {
          hasRetry: true,
          spider: { maxConcurrentEnginesPerRig: 3 },
          designs: {
            any: async (givens, ctx) => {
              const { attempt } = await first.spider.show(ctx.rigId)
              begun.push(`${attempt}/${ctx.engineId}`)
              if (attempt === 2) return { status: 'completed', yields: attempt }
              if (begun.length === 1) return long.run(givens, ctx)
              throw new Error('boom')
            },
          },
          engines: ['a', 'b', 'c'].map((id) => ({ id, designId: 'any' })),
        }
        // Two processes that run one at a time: one runs on, the other fails, and the third of the engines waits.
        const first = await member(items, three, { autoStart: false, doer: priorityDoer({ max: 1, buffer: 0 }) })
        const writ = await first.post()
        await until(async () => (await rows(first, 'item')) === 3)
        first.w.start()
        await until(() => long.signals.length === 1)
        const second = await member(items, three, { doer: priorityDoer({ max: 1, buffer: 0 }) })
        await until(async () => (await first.rigsOf(writ))[0]?.status === 'stuck')
        const [one = '', two = ''] = begun.map((name) => name.slice(2))
        const three1 = ['a', 'b', 'c'].find((id) => id !== one && id !== two) ?? ''
        expect(await enginesOf(first, writ)).toMatchObject({
          [one]: { status: 'running' },
          [two]: { status: 'failed' },
          [three1]: { status: 'cancelled' },
        })
        await until(async () => (await first.phaseOf(writ)) === 'open')
        // Items that are no longer needed are claimed and do nothing, while the one goes on.
        await until(async () => (await second.w.list({ status: 'pending' })).length === 0)
        expect(await first.rigsOf(writ)).toHaveLength(1)
        long.end('completes')
        await until(async () => (await first.phaseOf(writ)) === 'completed')
        expect((await enginesOf(first, writ))[one]).toMatchObject({ status: 'completed', yields: { late: true } })
        expect(begun.filter((name) => name.startsWith('1/'))).toHaveLength(2)
        expect(begun.filter((name) => name.startsWith('2/')).sort()).toEqual(['2/a', '2/b', '2/c'])
        expect((await first.w.list({ status: 'dead' })).length).toBe(0)
      })
    })
  })
}
