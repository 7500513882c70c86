import { createWork, memoryBackend } from 'millrace'
import { guild, type PluginSource } from 'millrace/guild'
import type { WritDoc } from 'millrace/guild/clerk'
import type { EngineDesign } from 'millrace/guild/fabricator'
import type { StacksApi } from 'millrace/guild/stacks'
import { openOps } from 'millrace/ops'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Ground, GroundKind } from '../grounds.js'
import { errands, type SpiderGuild, type SpiderGuildOptions, spiderGuild } from './spider-guild.js'

async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A plugin that watches a book inside its transactions. */
const watching = (ownerId: string, book: string, act: (entry: Record<string, unknown>) => void): PluginSource => ({
  package: 'inspector-apparatus',
  plugin: {
    apparatus: {
      requires: ['stacks', 'clerk', 'spider'],
      start: () =>
        guild()
          .apparatus<StacksApi>('stacks')
          .watch<{ id: string }>(ownerId, book, (event) => {
            if (event.type !== 'delete') act(event.entry as unknown as Record<string, unknown>)
          }),
    },
  },
})

/** Watchers that refuse what Spider wants to record, and writs that have both a rig and children, on one kind of ground. */
export function describeRefusals(kind: GroundKind): void {
  describe(`on ${kind.name}`, () => {
    let ground: Ground
    let runs: string[]
    beforeEach(async () => {
      ground = await kind.open()
      runs = []
    })
    afterEach(() => ground.close())

    const open = async (options: SpiderGuildOptions = {}): Promise<SpiderGuild> => {
      const made = await spiderGuild(ground, options)
      onTestFinished(() => made.g.shutdown())
      return made
    }
    const counted =
      (name: string): EngineDesign['run'] =>
      async () => {
        runs.push(name)
        return { status: 'completed', yields: { by: name } }
      }
    const child = ({ clerk }: SpiderGuild, parent: WritDoc, type = 'errand') =>
      clerk.post({ title: 'a child', body: '', parentId: parent.id, type })

    describe('a watcher that refuses the end of a writ', () => {
      const sealed = (isAllowed: () => boolean) =>
        watching('clerk', 'writs', ({ phase }) => {
          if (phase === 'completed' && !isAllowed()) throw new Error('the seal is missing')
        })

      it('leaves the writ stuck with its reason and the result recorded, and no engine runs again', async () => {
        let isAllowed = false
        const made = await open({
          designs: { first: counted('first'), last: counted('last') },
          engines: [
            { id: 'first', designId: 'first' },
            { id: 'last', designId: 'last', upstream: ['first'] },
          ],
          plugins: [sealed(() => isAllowed)],
        })
        const writ = await made.post()
        expect((await made.drain()).at(-1)).toMatchObject({ action: 'rig-completed', outcome: 'stuck' })
        expect(await made.clerk.show(writ.id)).toMatchObject({ phase: 'stuck', resolution: 'the seal is missing' })
        expect(await made.statusOf(writ)).toMatchObject({
          stuckCause: 'refused',
          retryable: false,
          detail: expect.stringContaining('the seal is missing'),
        })
        const [rig] = await made.rigsOf(writ)
        expect(rig?.engines.map(({ status, yields }) => [status, yields])).toEqual([
          ['completed', { by: 'first' }],
          ['completed', { by: 'last' }],
        ])
        expect(await made.stacks.book('spider', 'slots').count()).toBe(0)
        const ops = await openOps(memoryBackend(), { stacks: made.stacks })
        expect((await ops.writ(writ.id))?.reasons[0]).toMatchObject({
          code: 'stuck-refused',
          text: expect.stringContaining('the seal is missing'),
        })
        // Opened in vain, it says so again.
        await made.clerk.transition(writ.id, 'open')
        expect(await made.drain()).toEqual([])
        expect(await made.phaseOf(writ)).toBe('stuck')
        isAllowed = true
        await made.clerk.transition(writ.id, 'open')
        expect(await made.drain()).toEqual([
          { action: 'rig-completed', rigId: rig?.id, writId: writ.id, outcome: 'completed' },
        ])
        expect(await made.clerk.show(writ.id)).toMatchObject({ phase: 'completed', resolution: '{"by":"last"}' })
        expect(runs).toEqual(['first', 'last'])
        expect(await made.rigsOf(writ)).toHaveLength(1)
      })

      it('does so under a work system', async () => {
        const made = await open({ designs: { only: counted('only') }, plugins: [sealed(() => false)] })
        const w = createWork({ work: [made.spider.engineWork], pollInterval: 60_000 })
        const running = made.spider.start({ work: w })
        onTestFinished(async () => {
          await running.stop()
          await w.stop()
        })
        const writ = await made.post()
        await until(async () => (await made.phaseOf(writ)) === 'stuck')
        expect((await made.clerk.show(writ.id)).resolution).toBe('the seal is missing')
        await until(async () => (await w.list()).every(({ status }) => status === 'success'))
        expect(runs).toEqual(['only'])
      })
    })

    it('a watcher that refuses what an engine yielded makes that engine fail with its reason, once', async () => {
      const made = await open({
        designs: { only: counted('only') },
        hasRetry: true,
        plugins: [
          watching('spider', 'engines', ({ status }) => {
            if (status === 'completed') throw new Error('this is no yield')
          }),
        ],
      })
      const writ = await made.post()
      await made.drain()
      expect(await made.clerk.show(writ.id)).toMatchObject({ phase: 'stuck', resolution: 'this is no yield' })
      expect((await made.rigsOf(writ)).map(({ engines: [engine] }) => [engine?.status, engine?.error])).toEqual([
        ['failed', 'this is no yield'],
      ])
      expect(runs).toEqual(['only'])
    })

    it('a watcher that refuses what follows from a condition makes that writ stuck, and others go on', async () => {
      const made = await open({
        designs: { only: counted('only') },
        engines: [
          { id: 'first', designId: 'only' },
          { id: 'last', designId: 'only', upstream: ['first'], when: `$\{yields.first.never}` },
        ],
        plugins: [
          watching('clerk', 'writs', ({ phase, title }) => {
            if (phase === 'completed' && title === 'refused') throw new Error('not this one')
          }),
        ],
      })
      const refused = await made.post('refused')
      const other = await made.post()
      await made.drain()
      expect(await made.clerk.show(refused.id)).toMatchObject({ phase: 'stuck', resolution: 'not this one' })
      expect([await made.phaseOf(other), runs]).toEqual(['completed', ['only', 'only']])
    })

    it('a watcher that refuses a rig makes that writ stuck, and others get theirs', async () => {
      let refused = ''
      const made = await open({
        designs: { only: counted('only') },
        plugins: [
          watching('spider', 'rigs', ({ writId }) => {
            if (writId === refused) throw new Error('not this one')
          }),
        ],
      })
      const writ = await made.clerk.post({ title: 'refused', body: '', draft: true })
      refused = writ.id
      await made.clerk.transition(writ.id, 'open')
      const other = await made.post()
      await made.drain()
      expect(await made.clerk.show(writ.id)).toMatchObject({ phase: 'stuck', resolution: 'not this one' })
      expect(await made.phaseOf(other)).toBe('completed')
    })

    describe('a writ with a rig of its own and children', () => {
      const slow = { designs: { only: counted('only') }, plugins: [errands] }

      it('completes when both its rig and its children have, the rig first', async () => {
        const made = await open(slow)
        const parent = await made.post()
        const [one, two] = [await child(made, parent), await child(made, parent)]
        await made.drain()
        expect((await made.spider.forWrit(parent.id))?.status).toBe('completed')
        expect(await made.phaseOf(parent)).toBe('open')
        const ops = await openOps(memoryBackend(), { stacks: made.stacks })
        expect((await ops.writ(parent.id))?.reasons.map(({ code }) => code)).toEqual(['children'])
        await made.clerk.transition(one.id, 'completed', { resolution: 'one' })
        expect(await made.phaseOf(parent)).toBe('open')
        // One that is cancelled is not waited for.
        await made.clerk.transition(two.id, 'cancelled')
        expect(await made.clerk.show(parent.id)).toMatchObject({ phase: 'completed', resolution: '{"by":"only"}' })
        await made.drain()
        expect([runs, await made.rigsOf(parent)]).toEqual([['only'], [expect.anything()]])
      })

      it('is not completed by a quick first child before the second is posted, whether its rig has begun or not', async () => {
        const made: SpiderGuild = await open({
          ...slow,
          designs: {
            only: async () => {
              runs.push('only')
              const [first] = await made.clerk.list({ phase: 'open', type: 'mandate' })
              for (const title of ['quick', 'second']) {
                const errand = await made.clerk.post({ title, body: '', parentId: first?.id ?? '', type: 'errand' })
                await made.clerk.transition(errand.id, 'completed')
                expect((await made.clerk.show(first?.id ?? '')).phase).toBe('open')
              }
              return { status: 'completed', yields: { by: 'only' } }
            },
          },
        })
        const parent = await made.post()
        await made.clerk.transition((await child(made, parent)).id, 'completed')
        expect(await made.phaseOf(parent)).toBe('open')
        await made.drain()
        expect(await made.clerk.show(parent.id)).toMatchObject({ phase: 'completed', resolution: '{"by":"only"}' })
        expect(runs).toEqual(['only'])
      })

      it('fails with a child that fails, also after its rig', async () => {
        const made = await open(slow)
        const parent = await made.post()
        const one = await child(made, parent)
        await made.drain()
        await made.clerk.transition(one.id, 'failed', { resolution: 'no' })
        expect(await made.clerk.show(parent.id)).toMatchObject({ phase: 'failed', resolution: 'no' })
        expect(await made.drain()).toEqual([])
      })

      it('stuck by a person meanwhile, completes when it is opened again, without another rig', async () => {
        const made = await open(slow)
        const parent = await made.post()
        const one = await child(made, parent)
        await made.drain()
        await made.clerk.transition(parent.id, 'stuck')
        await made.clerk.transition(one.id, 'completed')
        expect(await made.phaseOf(parent)).toBe('stuck')
        await made.clerk.transition(parent.id, 'open')
        await made.drain()
        expect([await made.phaseOf(parent), runs]).toEqual(['completed', ['only']])
      })

      it('with strictCompletion is stuck with the reason until its children have ended, and then completes', async () => {
        const made = await open({ ...slow, hasRetry: true, config: { clerk: { strictCompletion: true } } })
        const parent = await made.post()
        const one = await child(made, parent)
        await made.drain()
        const stuck = await made.clerk.show(parent.id)
        expect(stuck).toMatchObject({ phase: 'stuck', resolution: expect.stringContaining(one.id) })
        expect(await made.statusOf(parent)).toMatchObject({ stuckCause: 'refused', refusedBy: 'OPEN_DESCENDANTS' })
        await made.clerk.transition(one.id, 'completed')
        await made.drain()
        expect([await made.phaseOf(parent), runs]).toEqual(['completed', ['only']])
      })

      it('completes though its rig and its last child end at the same time', async () => {
        for (let round = 0; round < 5; round += 1) {
          const made = await spiderGuild(ground, slow)
          const parent = await made.post()
          const one = await child(made, parent)
          await made.spider.crawl()
          await Promise.all([made.spider.crawl(), made.clerk.transition(one.id, 'completed')])
          await made.drain()
          expect(await made.phaseOf(parent)).toBe('completed')
          await made.g.shutdown()
        }
      })
    })
  })
}
