import { type GuildClient, type GuildClientOptions, guild, guildClient, type PluginSource } from 'millrace/guild'
import type { ClerkApi } from 'millrace/guild/clerk'
import type { EngineDesign } from 'millrace/guild/fabricator'
import type { InputRequestDoc } from 'millrace/guild/spider'
import type { StacksApi } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { clerkGuild, type Ground, type GroundKind } from '../grounds.js'
import { type SpiderGuild, type SpiderGuildOptions, spiderGuild } from '../spider/spider-guild.js'

/** A plugin that sees every writ in the transaction which writes it. */
const jealous: PluginSource = {
  package: 'jealous-apparatus',
  plugin: {
    apparatus: {
      requires: ['stacks', 'clerk'],
      start: () =>
        guild()
          .apparatus<StacksApi>('stacks')
          .watch('clerk', 'writs', () => undefined),
    },
  },
}

/** A type that a plugin of the workers registers. */
const orders: PluginSource = {
  package: 'orders-apparatus',
  plugin: {
    apparatus: {
      requires: ['clerk'],
      start: () => {
        const clerk = guild().apparatus<ClerkApi>('clerk')
        const { states, postTo = 'open' } = clerk.getWritTypeConfig('mandate')
        clerk.registerWritType({ name: 'order', states, postTo })
      },
    },
  },
}

/** An engine that asks a person, as the guide shows it. */
const approve: EngineDesign['run'] = async (_givens, { rigId, engineId }) => {
  const requests = guild().apparatus<StacksApi>('stacks').book<InputRequestDoc>('spider', 'input-requests')
  const id = `${rigId}/${engineId}`
  const asked = await requests.get(id)
  if (asked?.status === 'completed') return { status: 'completed', yields: asked.answers }
  if (asked === null) await requests.put({ id, rigId, engineId, questions: ['May it go?'], status: 'pending' })
  return { status: 'blocked', blockType: 'patron-input', condition: { requestId: id } }
}

/** A ground, a client on it that stands for another process, and workers that come and go. */
async function scene(kind: GroundKind, options: Partial<GuildClientOptions> = {}) {
  const ground: Ground = await kind.open()
  const client: GuildClient = await guildClient({ stacks: ground.backend(), ...options })
  const workers: SpiderGuild[] = []
  onTestFinished(async () => {
    await client.close()
    for (const { g } of workers) await g.shutdown()
    await ground.close()
  })
  const worker = async (given: SpiderGuildOptions = {}): Promise<SpiderGuild> => {
    const made = await spiderGuild(ground, given)
    workers.push(made)
    return made
  }
  return { ground, client, worker }
}

/** What a process can do that loads no plugin and no engine. */
export function describeGuildClient(kind: GroundKind): void {
  describe(`a client of a guild on ${kind.name}`, () => {
    it('posts a writ, which the workers of another process complete', async () => {
      const { client, worker } = await scene(kind)
      const { drain, rigsOf } = await worker()
      const writ = await client.post({ title: 'from the web', body: '' })

      expect((await drain()).map(({ action }) => action)).toEqual(['rig-spawned', 'rig-completed'])
      expect(await client.show(writ.id)).toMatchObject({ phase: 'completed', type: 'mandate' })
      expect(await rigsOf(writ)).toHaveLength(1)
    })

    it('posts while no worker runs; the next one that starts takes the writ', async () => {
      const { client, worker } = await scene(kind)
      const first = await worker()
      await first.g.shutdown()
      const writ = await client.post({ title: 'at night', body: '' })
      const next = await worker()
      await next.drain()
      expect((await client.show(writ.id)).phase).toBe('completed')
    })

    it('says that no guild has run on the store, and posts as soon as one has', async () => {
      const { client, worker } = await scene(kind)
      await expect(client.post({ title: 'too early', body: '' })).rejects.toMatchObject({ code: 'GUILD_NOT_STARTED' })
      expect(await client.list()).toEqual([])
      await worker()
      await client.post({ title: 'in time', body: '' })
      expect(await client.count({ phase: 'open' })).toBe(1)
    })

    it('knows the types that plugins of the workers registered, also of a worker that started later', async () => {
      const { client, worker } = await scene(kind)
      const first = await worker()
      await client.post({ title: 'a mandate', body: '' })
      await expect(client.post({ type: 'order', title: 'an order', body: '' })).rejects.toMatchObject({
        code: 'UNKNOWN_WRIT_TYPE',
      })
      await first.g.shutdown()
      const { drain } = await worker({
        plugins: [orders],
        spider: { rigTemplateMappings: { mandate: 'standard', order: 'standard' } },
      })
      const order = await client.post({ type: 'order', title: 'an order', body: '' })
      await drain()
      expect((await client.show(order.id)).phase).toBe('completed')
    })

    it('is not told less by a process without Spider that starts on the store, such as a script', async () => {
      const { client, ground, worker } = await scene(kind)
      const { g } = await worker({
        plugins: [orders],
        spider: { rigTemplateMappings: { mandate: 'standard', order: 'standard' } },
      })
      await g.shutdown()
      const script = await clerkGuild(ground)
      await script.g.shutdown()
      const order = await client.post({ type: 'order', title: 'an order', body: '' })
      const next = await worker({
        plugins: [orders],
        spider: { rigTemplateMappings: { mandate: 'standard', order: 'standard' } },
      })
      await next.drain()
      expect((await client.show(order.id)).phase).toBe('completed')
    })

    it('has its writs fulfilled while an older worker runs that has no template for their type', async () => {
      const clock = new FakeClock()
      const { client, worker } = await scene(kind, { clock })
      const older = await worker({ clock, plugins: [orders] })
      const newer = await worker({
        clock,
        plugins: [orders],
        spider: { rigTemplateMappings: { mandate: 'standard', order: 'standard' } },
      })
      const later = await client.post({ type: 'order', title: 'later', body: '', runAt: clock.now() + 3_600_000 })
      const order = await client.post({ type: 'order', title: 'an order', body: '' })
      const byHand = await older.clerk.post({ type: 'order', title: 'posted by the older one', body: '' })
      // The older one finds nothing that it could do with it.
      expect(await older.drain()).toEqual([])
      await clock.advance(60_000)
      await newer.drain()
      expect((await client.show(order.id)).phase).toBe('completed')
      expect((await client.show(byHand.id)).phase).toBe('completed')
      expect((await client.show(later.id)).phase).toBe('open')
    })

    it('leaves a writ whose type has no template to people, in no queue', async () => {
      const { client, worker } = await scene(kind)
      const { drain, stacks } = await worker({ plugins: [orders] })
      const order = await client.post({ type: 'order', title: 'by hand', body: '' })
      expect(await drain()).toEqual([])
      expect((await client.show(order.id)).phase).toBe('open')
      expect(await stacks.readBook('spider', 'dispatch').count()).toBe(0)
    })

    it('ends families as the workers do: a cancelled parent takes its children along', async () => {
      const { client, worker } = await scene(kind)
      await worker()
      const parent = await client.post({ title: 'parent', body: '', codex: 'shop' })
      const child = await client.post({ title: 'child', body: '', parentId: parent.id })
      expect(child.codex).toBe('shop')
      await client.cancel(parent.id, { reason: 'not wanted' })
      expect(await client.show(parent.id)).toMatchObject({ phase: 'cancelled', resolution: 'not wanted' })
      expect((await client.show(child.id)).phase).toBe('cancelled')
      await expect(client.post({ title: 'late', body: '', parentId: parent.id })).rejects.toMatchObject({
        code: 'PARENT_ENDED',
      })
    })

    it('cancels a writ whose rig goes on; a worker ends the rig and the session that it launched', async () => {
      const { client, worker } = await scene(kind)
      const cancelled: string[] = []
      const sessions: PluginSource = {
        package: 'animator-apparatus',
        plugin: {
          apparatus: {
            requires: ['stacks'],
            supportKit: { books: { sessions: { indexes: [] } } },
            provides: { cancel: (id: string) => void cancelled.push(id) },
            start: () => undefined,
          },
        },
      }
      const { drain, rigsOf } = await worker({
        designs: { launch: async () => ({ status: 'launched', sessionId: 's-1' }) },
        plugins: [sessions],
      })
      const writ = await client.post({ title: 'long', body: '' })
      await drain()
      expect((await rigsOf(writ))[0]?.status).toBe('running')
      await client.cancel(writ.id)
      expect(await client.cancel(writ.id)).toMatchObject({ phase: 'cancelled' })
      await drain()
      expect((await rigsOf(writ)).map(({ status }) => status)).toEqual(['cancelled'])
      expect(cancelled).toEqual(['s-1'])
      expect((await client.show(writ.id)).phase).toBe('cancelled')
    })

    it('has the rig of a cancelled writ ended although the writ is edited before a worker comes', async () => {
      const { client, worker } = await scene(kind)
      const { drain, rigsOf } = await worker({
        designs: { launch: async () => ({ status: 'launched', sessionId: 's-1' }) },
      })
      const writ = await client.post({ title: 'long', body: '' })
      await drain()
      await client.cancel(writ.id)
      await client.edit({ id: writ.id, deadline: Date.now() + 3_600_000 })
      await drain()
      expect((await rigsOf(writ)).map(({ status }) => status)).toEqual(['cancelled'])
    })

    it('does not stop the workers by a cancel that a plugin objects to', async () => {
      const { client, worker } = await scene(kind)
      const objecting: PluginSource = {
        package: 'objecting-apparatus',
        plugin: {
          apparatus: {
            requires: ['stacks', 'spider'],
            start: () =>
              guild()
                .apparatus<StacksApi>('stacks')
                .watch<{ readonly id: string; readonly status: string }>('spider', 'rigs', (event) => {
                  if (event.type === 'update' && event.entry.status === 'cancelled') throw new Error('not this one')
                }),
          },
        },
      }
      let runs = 0
      const { drain, warnings } = await worker({
        designs: {
          once: async () => {
            runs += 1
            return runs === 1 ? { status: 'launched', sessionId: 's-1' } : { status: 'completed', yields: {} }
          },
        },
        plugins: [objecting],
      })
      const writ = await client.post({ title: 'long', body: '' })
      await drain()
      await client.cancel(writ.id)
      const other = await client.post({ title: 'other', body: '' })
      await drain()
      expect((await client.show(other.id)).phase).toBe('completed')
      expect(warnings.map(({ code }) => code)).toEqual(['CANCEL_FAILED'])
    })

    it('cancels the last open child of a parent whose rig has completed, which a worker then completes', async () => {
      const { client, worker } = await scene(kind)
      const { drain, rigsOf } = await worker()
      const parent = await client.post({
        title: 'parent',
        body: '',
        children: [
          { title: 'one', body: '', draft: true },
          { title: 'two', body: '', draft: true },
        ],
      })
      const children = await client.list({ parentId: parent.id })
      await drain()
      expect((await client.show(parent.id)).phase).toBe('open')
      for (const { id } of children) {
        expect((await client.show(parent.id)).phase).toBe('open')
        await client.cancel(id)
        await drain()
      }
      expect(await client.show(parent.id)).toMatchObject({ phase: 'completed' })
      expect(await rigsOf(parent)).toHaveLength(1)
    })

    it('answers what an engine asks a person, once, and the engine goes on with the answer', async () => {
      const clock = new FakeClock({ startAt: Date.now() + 3_600_000 })
      // The client's own time goes on, behind theirs: one of two answers at once has to wait for the other.
      const { client, worker } = await scene(kind)
      await expect(client.answer('q', true)).rejects.toMatchObject({ code: 'QUESTION_NOT_FOUND' })
      expect(await client.questions()).toEqual([])
      const { drain } = await worker({ clock, designs: { approve } })
      const [first, second] = [
        await client.post({ title: 'first', body: '' }),
        await client.post({ title: 'second', body: '' }),
      ]
      await drain()
      expect(await client.questions()).toHaveLength(2)
      const [asked, ...others] = await client.questions({ writId: first.id })
      expect([asked, others]).toMatchObject([{ questions: ['May it go?'], status: 'pending' }, []])
      const id = asked?.id ?? ''
      await expect(client.answer(id, undefined)).rejects.toMatchObject({ code: 'BAD_OPTION' })
      await expect(client.answer(id, { at: new Date() })).rejects.toThrow('answers.at')
      const answered = await Promise.allSettled([client.answer(id, { may: 'yes' }), client.answer(id, { may: 'no' })])
      expect(answered.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      expect(answered).toContainEqual({
        status: 'rejected',
        reason: expect.objectContaining({ code: 'QUESTION_CLOSED' }),
      })
      expect(await client.questions({ writId: first.id })).toEqual([])
      await clock.advance(10_000)
      await drain()
      const may = answered[0]?.status === 'fulfilled' ? 'yes' : 'no'
      expect(await client.show(first.id)).toMatchObject({ phase: 'completed', resolution: JSON.stringify({ may }) })
      expect((await client.show(second.id)).phase).toBe('open')
      // What nobody waits for any more cannot be answered.
      const [left] = await client.questions({ writId: second.id })
      await client.cancel(second.id)
      await drain()
      await expect(client.answer(left?.id ?? '', { may: 'yes' })).rejects.toMatchObject({
        code: 'QUESTION_CLOSED',
        message: expect.stringContaining('withdrawn'),
      })
    })

    it('frees what followed a writ that it cancels', async () => {
      const { client, worker } = await scene(kind)
      const { drain, clerk } = await worker()
      const first = await clerk.post({ title: 'first', body: '', draft: true })
      const second = await client.post({ title: 'second', body: '' })
      await clerk.link(second.id, first.id, 'follows', 'spider.follows')
      expect(await drain()).toEqual([])
      await client.cancel(first.id)
      await drain()
      expect((await client.show(second.id)).phase).toBe('completed')
    })

    it('opens and edits drafts, and answers what does not apply with the next step', async () => {
      const { client, worker } = await scene(kind)
      const { drain } = await worker()
      const draft = await client.post({ title: 'draft', body: '', draft: true })
      await client.edit({ id: draft.id, title: 'edited', body: 'more' })
      expect(await drain()).toEqual([])
      await client.open(draft.id)
      await expect(client.open(draft.id)).rejects.toMatchObject({ code: 'WRONG_PHASE' })
      await drain()
      expect(await client.show(draft.id)).toMatchObject({ title: 'edited', phase: 'completed' })
      await expect(client.cancel(draft.id)).rejects.toThrow(/has not ended|stays so/)
      await expect(client.show('w-nothing')).rejects.toMatchObject({ code: 'WRIT_NOT_FOUND' })
    })

    it('refuses to write past a plugin that the workers run in the transaction, and names the ways out', async () => {
      const { client, ground, worker } = await scene(kind)
      await worker({ plugins: [jealous] })
      await expect(client.post({ title: 'unseen', body: '' })).rejects.toMatchObject({
        code: 'WATCHER_MISMATCH',
        message: expect.stringMatching(/jealous.*createGuild\(\).*differentWatchers: 'allow'/s),
      })
      expect(await client.count()).toBe(0)
      const bold = await guildClient({ stacks: ground.backend(), differentWatchers: 'allow' })
      onTestFinished(() => bold.close())
      await bold.post({ title: 'unseen', body: '' })
      expect(await client.count()).toBe(1)
    })

    it('stops writing when a worker brings such a plugin later', async () => {
      const { client, worker } = await scene(kind)
      const first = await worker()
      await client.post({ title: 'one', body: '' })
      await first.g.shutdown()
      await worker({ plugins: [jealous] })
      await expect(client.post({ title: 'two', body: '' })).rejects.toMatchObject({ code: 'WATCHER_MISMATCH' })
    })

    it('is no reason for a worker not to start, and the other way round', async () => {
      const { client, worker } = await scene(kind)
      await worker()
      await client.post({ title: 'one', body: '' })
      const second = await worker()
      await client.post({ title: 'two', body: '' })
      expect((await second.drain()).length).toBeGreaterThan(0)
    })

    it('works beside a guild that has no Spider', async () => {
      const { client, ground } = await scene(kind)
      const { g, clerk } = await clerkGuild(ground)
      onTestFinished(() => g.shutdown())
      const writ = await client.post({ title: 'by hand', body: '' })
      await clerk.transition(writ.id, 'completed')
      expect((await client.show(writ.id)).phase).toBe('completed')
    })
  })
}
