import { guild, type PluginSource } from 'millrace/guild'
import type { ClerkApi, WritDoc } from 'millrace/guild/clerk'
import type { ChangeEvent, ChangeHandler, StacksApi, WatchOptions } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ClerkGuild, type ClerkGuildOptions, clerkGuild, type Ground, type GroundKind } from '../grounds.js'
import { kit } from '../host/plugins.js'
import { TASK, typesPlugin } from './machines.js'

const KINDS = kit('spider', { linkKinds: [{ id: 'spider.follows', description: 'waits for it' }] })

/** What the Clerk promises, on one kind of ground. */
export function describeClerk(kind: GroundKind): void {
  describe(`the Clerk on ${kind.name}`, () => {
    let ground: Ground
    const running: ClerkGuild[] = []

    beforeAll(async () => {
      ground = await kind.open()
    })
    afterEach(async () => {
      for (const { g } of running.splice(0)) await g.shutdown()
    })
    afterAll(() => ground.close())

    async function start(options?: ClerkGuildOptions): Promise<ClerkGuild> {
      const started = await clerkGuild(ground, options)
      running.push(started)
      return started
    }
    const post = (clerk: ClerkApi, title: string, rest: object = {}) => clerk.post({ title, body: '', ...rest })
    const phases = async (clerk: ClerkApi, ...writs: readonly WritDoc[]) =>
      Promise.all(writs.map(async ({ id }) => (await clerk.show(id)).phase))

    describe('phases', () => {
      // 22
      it('a writ is posted open, a draft new, and only legal steps are taken', async () => {
        const { clerk } = await start()
        const draft = await post(clerk, 'later', { draft: true })
        const writ = await post(clerk, 'now')

        expect([draft.phase, writ.phase]).toEqual(['new', 'open'])
        expect(writ.createdAt).toBe(writ.updatedAt)
        await expect(clerk.transition(draft.id, 'completed')).rejects.toMatchObject({
          code: 'ILLEGAL_TRANSITION',
          message: expect.stringContaining('Legal: open, cancelled.'),
        })
        await clerk.transition(writ.id, 'completed')
        await expect(clerk.transition(writ.id, 'open')).rejects.toThrow('"completed" is terminal')
        await expect(clerk.transition(writ.id, 'completed')).rejects.toThrow('is terminal')
        await expect(clerk.transition(draft.id, 'nowhere')).rejects.toThrow('Legal: open, cancelled.')
        expect(await phases(clerk, draft, writ)).toEqual(['new', 'completed'])
      })

      // 23
      it('fields go with a step, except those that the Clerk manages', async () => {
        const clock = new FakeClock({ startAt: Date.parse('2026-01-01T00:00:00Z') })
        const { clerk } = await start({ clock })
        const { id, createdAt } = await post(clerk, 'x')
        await clock.advance(1000)
        const stuck = await clerk.transition(id, 'stuck', {
          resolution: 'r',
          status: { x: 1 },
          createdAt: '0',
          note: 5,
        })

        expect(stuck).toEqual(await clerk.show(id))
        expect(stuck).toMatchObject({ phase: 'stuck', resolution: 'r', createdAt, note: 5 })
        expect(stuck.updatedAt).toBe('2026-01-01T00:00:01.000Z')
        expect(stuck).not.toHaveProperty('status')
        expect(stuck).not.toHaveProperty('resolvedAt')
        const open = await clerk.transition(id, 'open', {
          resolution: undefined,
          parentId: 'w-1',
          id: 'other',
          phase: '',
        })
        expect(open).toMatchObject({ id, resolution: 'r' })
        expect(open).not.toHaveProperty('parentId')
        expect(open).not.toHaveProperty('resolvedAt')
        await clock.advance(1000)
        const done = await clerk.transition(id, 'completed')
        expect(done).toMatchObject({ resolution: 'r', resolvedAt: '2026-01-01T00:00:02.000Z' })
      })

      it('rejects what it cannot do, and changes nothing', async () => {
        const { clerk, stacks } = await start()
        const writ = await post(clerk, 'x')
        await expect(clerk.transition('w-none', 'open')).rejects.toMatchObject({ code: 'WRIT_NOT_FOUND' })
        await expect(clerk.transition(writ.id, 'stuck', { phase: 'failed' })).rejects.toThrow('the phase is the second')
        await expect(clerk.transition(writ.id, 'stuck', { type: 'task' })).rejects.toThrow('use edit()')
        await expect(clerk.transition(writ.id, '')).rejects.toThrow('non-empty string')
        await expect(clerk.transition(writ.id, 'stuck', { resolution: 5 } as never)).rejects.toThrow('a string')
        expect(await clerk.show(writ.id)).toEqual(writ)
        const book = stacks.book<WritDoc>('clerk', 'writs')
        await book.put({ ...writ, id: 'w-odd', phase: 'odd' })
        await book.put({ ...writ, id: 'w-alien', type: 'alien' })
        await expect(clerk.transition('w-odd', 'open')).rejects.toMatchObject({ code: 'UNKNOWN_PHASE' })
        await expect(clerk.transition('w-alien', 'completed')).rejects.toThrow('Registered: mandate.')
        await book.delete('w-odd')
        await book.delete('w-alien')
      })

      it('one step wins when several are tried at the same time, here and in another process', async () => {
        const [one, two] = [await start(), await start()]
        for (let round = 0; round < 5; round += 1) {
          const { id } = await post(one.clerk, 'contested')
          const tried = ['completed', 'failed', 'cancelled', 'completed', 'failed', 'cancelled'].map((to, i) =>
            (i % 2 === 0 ? one : two).clerk.transition(id, to, { resolution: String(i) }),
          )
          const settled = await Promise.allSettled(tried)
          const won = settled.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value)
          const lost = settled.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason.code)

          expect(won).toHaveLength(1)
          expect(lost).toEqual(Array(5).fill('ILLEGAL_TRANSITION'))
          expect(await two.clerk.show(id)).toEqual(won[0])
        }
      })
    })

    describe('status slots', () => {
      // 24
      it('each plugin has its own, and they outlive the end', async () => {
        const { clerk } = await start()
        const { id } = await post(clerk, 'x')
        await clerk.setWritStatus(id, 'p', 1)
        expect(await clerk.setWritStatus(id, 'q', 2)).toMatchObject({ status: { p: 1, q: 2 } })
        await clerk.transition(id, 'completed')
        await clerk.setWritStatus(id, 'p', { deep: [null] })
        expect((await clerk.show(id)).status).toEqual({ p: { deep: [null] }, q: 2 })
        for (const [writ, plugin, value] of [
          ['', 'p', 1],
          [id, '', 1],
          [id, 'p', undefined],
          ['w-none', 'p', 1],
        ] as const) {
          await expect(clerk.setWritStatus(writ, plugin, value)).rejects.toThrow()
        }
      })

      it('written at the same time, all are kept', async () => {
        const [one, two] = [await start(), await start()]
        const { id } = await post(one.clerk, 'x')
        await Promise.all([0, 1, 2, 3, 4, 5].map((n) => (n % 2 ? one : two).clerk.setWritStatus(id, `p${n}`, n)))
        expect((await one.clerk.show(id)).status).toEqual({ p0: 0, p1: 1, p2: 2, p3: 3, p4: 4, p5: 5 })
      })
    })

    describe('links', () => {
      // 25
      it('are one for every spelling of their label, and keep their kind until another is given', async () => {
        const { clerk } = await start({ plugins: [KINDS] })
        const [a, b] = [await post(clerk, 'a'), await post(clerk, 'b')]
        const first = await clerk.link(a.id, b.id, 'dependsOn')
        expect(first).toMatchObject({ id: `${a.id}:${b.id}:depends on`, label: 'depends on', kind: null })
        const second = await clerk.link(a.id, b.id, 'depends_on', 'spider.follows')
        expect(second).toEqual({ ...first, kind: 'spider.follows' })
        expect(await clerk.link(a.id, b.id, 'DEPENDS ON')).toEqual(second)
        await expect(clerk.link(a.id, b.id, 'x', 'spider.leads')).rejects.toThrow(
          'Unknown link kind "spider.leads". Registered: spider.follows.',
        )
        expect(await clerk.links(a.id)).toEqual({ outbound: [second], inbound: [] })
        expect(await clerk.links(b.id)).toEqual({ outbound: [], inbound: [second] })
        await clerk.unlink(a.id, b.id, 'Depends-On')
        await clerk.unlink(a.id, b.id, 'Depends-On')
        expect(await clerk.links(a.id)).toEqual({ outbound: [], inbound: [] })
      })

      it('need two different writs and a label', async () => {
        const { clerk } = await start()
        const { id } = await post(clerk, 'a')
        await expect(clerk.link(id, id, 'x')).rejects.toThrow('cannot be linked to itself')
        await expect(clerk.link(id, 'w-none', 'x')).rejects.toThrow('There is no target "w-none"')
        await expect(clerk.link('w-none', id, 'x')).rejects.toThrow('There is no source')
        await expect(clerk.link(id, 'w-none', ' -_ ')).rejects.toThrow('at least one letter')
        await expect(clerk.link(id, '', 'x')).rejects.toThrow('non-empty string')
        expect(await clerk.links(id)).toEqual({ outbound: [], inbound: [] })
      })

      it('come in the order of their making', async () => {
        const clock = new FakeClock({ startAt: 1_000_000 })
        const { clerk } = await start({ clock })
        const writs = []
        for (const title of ['a', 'b', 'c', 'd']) writs.push(await post(clerk, title))
        const [a, b, c, d] = writs as [WritDoc, WritDoc, WritDoc, WritDoc]
        for (const target of [c, b, d]) {
          await clerk.link(a.id, target.id, 'x')
          await clock.advance(1)
        }
        const { outbound } = await clerk.links(a.id)
        expect(outbound.map(({ targetId }) => targetId)).toEqual([c.id, b.id, d.id])
      })

      it('made at the same time in two processes are one', async () => {
        const [one, two] = [await start(), await start()]
        const [a, b] = [await post(one.clerk, 'a'), await post(one.clerk, 'b')]
        await Promise.all([1, 2, 3, 4].map((n) => (n % 2 ? one : two).clerk.link(a.id, b.id, 'x')))
        expect((await one.clerk.links(a.id)).outbound).toHaveLength(1)
      })
    })

    describe('families', () => {
      // 26
      it('a parent completes with its last child, and fails with the first that fails', async () => {
        const { clerk } = await start()
        const parent = await post(clerk, 'parent')
        const children = []
        for (const n of [1, 2, 3]) children.push(await post(clerk, `child ${n}`, { parentId: parent.id }))
        const [first, second, last] = children as [WritDoc, WritDoc, WritDoc]
        await clerk.transition(first.id, 'completed', { resolution: 'F' })
        await clerk.transition(second.id, 'completed')
        expect((await clerk.show(parent.id)).phase).toBe('open')
        await clerk.transition(last.id, 'completed', { resolution: 'L' })
        expect(await clerk.show(parent.id)).toMatchObject({
          phase: 'completed',
          resolution: 'L',
          status: { clerk: { triggeringChildId: last.id } },
          resolvedAt: expect.any(String),
        })

        const other = await post(clerk, 'other')
        const [good, bad, open] = [
          await post(clerk, 'good', { parentId: other.id }),
          await post(clerk, 'bad', { parentId: other.id }),
          await post(clerk, 'open', { parentId: other.id }),
        ]
        await clerk.setWritStatus(other.id, 'p', 1)
        await clerk.transition(good.id, 'completed')
        await clerk.transition(bad.id, 'failed', { resolution: 'no flour' })
        expect(await clerk.show(other.id)).toMatchObject({
          phase: 'failed',
          resolution: 'no flour',
          status: { p: 1, clerk: { triggeringChildId: bad.id } },
        })
        expect(await clerk.show(open.id)).toMatchObject({
          phase: 'cancelled',
          resolution: 'Automatically cancelled due to parent termination',
        })
        expect((await clerk.show(good.id)).phase).toBe('completed')
      })

      it('posted together are there before the first of them can complete their parent', async () => {
        const { clerk } = await start()
        const parent = await clerk.post({
          title: 'parent',
          body: '',
          codex: 'mill',
          children: [
            { title: 'quick', body: '' },
            { title: 'second', body: '', codex: 'barn', children: [{ title: 'below', body: '', draft: true }] },
          ],
        })
        const [second, quick] = await clerk.list({ parentId: parent.id })
        expect([quick, second]).toMatchObject([
          { title: 'quick', phase: 'open', codex: 'mill' },
          { title: 'second', phase: 'open', codex: 'barn' },
        ])
        expect(await clerk.list({ parentId: second?.id ?? '' })).toMatchObject([
          { title: 'below', phase: 'new', codex: 'barn' },
        ])
        await clerk.transition(quick?.id ?? '', 'completed')
        expect((await clerk.show(parent.id)).phase).toBe('open')
        // All of it, or nothing.
        const count = await clerk.count()
        const bad = { title: 'bad', body: '', type: 'mandat' }
        await expect(clerk.post({ title: 'p', body: '', children: [bad] })).rejects.toThrow('did you mean "mandate"?')
        const children = [{ title: 'c', body: '', parentId: parent.id } as never]
        await expect(clerk.post({ title: 'p', body: '', children })).rejects.toThrow('post().children[0].parentId')
        await expect(clerk.post({ title: 'p', body: '', children: {} as never })).rejects.toThrow('a list of writs')
        expect(await clerk.count()).toBe(count)
      })

      it('have open children until the last has ended, of whatever type', async () => {
        const { clerk } = await start()
        const parent = await post(clerk, 'parent')
        expect(await clerk.hasOpenChildren(parent.id)).toBe(false)
        const children = [
          await post(clerk, 'one', { parentId: parent.id }),
          await post(clerk, 'draft', { parentId: parent.id, draft: true }),
        ]
        for (const { id } of children) {
          expect(await clerk.hasOpenChildren(parent.id)).toBe(true)
          await clerk.transition(id, 'cancelled')
        }
        expect(await clerk.hasOpenChildren(parent.id)).toBe(false)
      })

      // 27
      it('cancelling the root cancels what has not ended, three levels down, in one transaction', async () => {
        const seen: ChangeEvent<WritDoc>[] = []
        const { clerk } = await start({ plugins: [recorder(seen)] })
        const root = await post(clerk, 'root')
        const [mid, done] = [
          await post(clerk, 'mid', { parentId: root.id }),
          await post(clerk, 'done', { parentId: root.id }),
        ]
        const [leaf, stuck, draft] = [
          await post(clerk, 'leaf', { parentId: mid.id }),
          await post(clerk, 'stuck', { parentId: mid.id }),
          await post(clerk, 'draft', { parentId: mid.id, draft: true }),
        ]
        await clerk.transition(done.id, 'completed')
        await clerk.transition(stuck.id, 'stuck')
        seen.length = 0
        await clerk.transition(root.id, 'cancelled')

        expect(await phases(clerk, root, mid, leaf, stuck, draft, done)).toEqual([
          ...Array(5).fill('cancelled'),
          'completed',
        ])
        // Coalesced: a draft goes to its end in one step, and so do the others, as seen after the commit.
        expect(seen.map((event) => event.type === 'update' && event.entry.title).sort()).toEqual([
          'draft',
          'leaf',
          'mid',
          'root',
          'stuck',
        ])
      })

      // 27
      it('when one descendant cannot be cancelled, nothing is', async () => {
        const { clerk } = await start({ plugins: [guard('leaf', 'cancelled')] })
        const root = await post(clerk, 'root')
        const mid = await post(clerk, 'mid', { parentId: root.id })
        const [first, leaf] = [
          await post(clerk, 'first', { parentId: mid.id }),
          await post(clerk, 'leaf', { parentId: mid.id }),
        ]
        await expect(clerk.transition(root.id, 'cancelled')).rejects.toThrow('guarded')
        expect(await phases(clerk, root, mid, first, leaf)).toEqual(Array(4).fill('open'))
      })

      it('walk the shortest legal path: a stuck parent completes, a draft fails, over open', async () => {
        const walked: string[] = []
        const { clerk } = await start({
          plugins: [
            watcher('walker', (event) => {
              if (event.type === 'update')
                walked.push(`${event.entry.title}: ${event.prev.phase} → ${event.entry.phase}`)
            }),
          ],
        })
        const stuck = await post(clerk, 'stuck')
        const child = await post(clerk, 'child', { parentId: stuck.id })
        await clerk.transition(stuck.id, 'stuck')
        const done = await clerk.transition(child.id, 'completed', { resolution: 'at last' })
        expect(done.phase).toBe('completed')
        expect(await clerk.show(stuck.id)).toMatchObject({ phase: 'completed', resolution: 'at last' })

        const draft = await post(clerk, 'draft', { draft: true })
        const lost = await post(clerk, 'lost', { parentId: draft.id })
        await clerk.transition(lost.id, 'failed')
        expect((await clerk.show(draft.id)).phase).toBe('failed')
        expect(walked.filter((step) => /^(stuck|draft): (\w+) → (?!\2)/.test(step))).toEqual([
          'stuck: open → stuck',
          'stuck: stuck → open',
          'stuck: open → completed',
          'draft: new → open',
          'draft: open → failed',
        ])
      })

      it('leave the parent alone when a child is cancelled, also among completed ones', async () => {
        const { clerk } = await start()
        const parent = await post(clerk, 'parent')
        const [a, b] = [
          await post(clerk, 'a', { parentId: parent.id }),
          await post(clerk, 'b', { parentId: parent.id }),
        ]
        await clerk.transition(a.id, 'cancelled')
        await clerk.transition(b.id, 'completed')
        expect((await clerk.show(parent.id)).phase).toBe('open')
      })

      it('are not limited to sixteen generations', async () => {
        const { clerk } = await start()
        const line = [await post(clerk, 'eve')]
        for (let n = 0; n < 24; n += 1) line.push(await post(clerk, `${n}`, { parentId: line.at(-1)!.id }))
        await clerk.transition(line[0]!.id, 'cancelled')
        expect(new Set(await phases(clerk, ...line))).toEqual(new Set(['cancelled']))

        const other = [await post(clerk, 'adam')]
        for (let n = 0; n < 24; n += 1) other.push(await post(clerk, `${n}`, { parentId: other.at(-1)!.id }))
        await clerk.transition(other.at(-1)!.id, 'completed', { resolution: 'from below' })
        expect(await clerk.show(other[0]!.id)).toMatchObject({ phase: 'completed', resolution: 'from below' })
      })

      it('of several types each follow their own: the child its parent’s action, over its own machine', async () => {
        const { clerk } = await start({ plugins: [typesPlugin(TASK)] })
        const task = await post(clerk, 'task', { type: 'task' })
        const part = await post(clerk, 'part', { type: 'task', parentId: task.id })
        const mandate = await post(clerk, 'mandate', { parentId: task.id })
        await clerk.transition(mandate.id, 'completed')
        await clerk.transition(part.id, 'doing')
        await clerk.transition(part.id, 'review')
        await clerk.transition(part.id, 'done')
        expect(await clerk.show(task.id)).toMatchObject({ phase: 'done', resolution: 'all parts are done' })
      })

      it('that cannot follow undo everything: a child of another type has no such phase', async () => {
        const { clerk } = await start({ plugins: [typesPlugin(TASK)] })
        const parent = await post(clerk, 'parent')
        const task = await post(clerk, 'task', { type: 'task', parentId: parent.id })
        await expect(clerk.transition(parent.id, 'failed')).rejects.toMatchObject({ code: 'UNREACHABLE_PHASE' })
        expect(await phases(clerk, parent, task)).toEqual(['open', 'idea'])
      })

      it('with a dangling parent, or a child of an unknown type, undo everything', async () => {
        const { clerk, stacks } = await start()
        const book = stacks.book<WritDoc>('clerk', 'writs')
        const writ = await post(clerk, 'x')
        await book.patch(writ.id, { parentId: 'w-gone' })
        await expect(clerk.transition(writ.id, 'completed')).rejects.toThrow('"w-gone"')
        expect((await clerk.show(writ.id)).phase).toBe('open')
        for (const odd of [{ type: 'alien' }, { phase: 'odd' }]) {
          const parent = await post(clerk, 'parent')
          const child = await post(clerk, 'child', { parentId: parent.id })
          await book.put({ ...child, id: `${child.id}-odd`, ...odd })
          await expect(clerk.transition(child.id, 'completed')).rejects.toMatchObject({
            code: expect.stringMatching(/^UNKNOWN_(WRIT_TYPE|PHASE)$/),
          })
          expect(await phases(clerk, parent, child)).toEqual(['open', 'open'])
        }
      })

      it('complete however many types and phases there are', async () => {
        const done = { name: 'done', classification: 'terminal', attrs: ['success'], allowedTransitions: [] } as const
        const plain = Array.from({ length: 150 }, (_, n) => ({
          name: `t${n}`,
          states: [{ name: 'a', classification: 'initial', allowedTransitions: ['done'] } as const, done],
        }))
        const steps = Array.from({ length: 150 }, (_, n) => ({
          name: `s${n}`,
          classification: n === 0 ? ('initial' as const) : ('active' as const),
          allowedTransitions: [n === 149 ? 'done' : `s${n + 1}`, 'done'],
        }))
        // What is a success elsewhere is none here: the name of a phase does not decide.
        const slow = {
          name: 'slow',
          states: [
            { name: 'done', classification: 'initial', allowedTransitions: ['over'] } as const,
            { name: 'over', classification: 'terminal', attrs: ['success'], allowedTransitions: [] } as const,
          ],
        }
        const { clerk } = await start({
          plugins: [typesPlugin(...plain, { name: 'long', states: [...steps, done] }, slow)],
        })
        const parent = await post(clerk, 'parent')
        const of = (type: string) => post(clerk, type, { parentId: parent.id, type })
        const [first, last, long, other] = [await of('t0'), await of('t149'), await of('long'), await of('slow')]
        for (const { id } of [first, last, long]) {
          await clerk.transition(id, 'done')
          expect(await phases(clerk, parent)).toEqual(['open'])
        }
        await clerk.transition(other.id, 'over')
        expect(await phases(clerk, parent)).toEqual(['completed'])
      })

      it('follow the last two children though they end at the same time in two processes', async () => {
        const [one, two] = [await start(), await start()]
        for (let round = 0; round < 5; round += 1) {
          const parent = await post(one.clerk, 'parent')
          const children = []
          for (let n = 0; n < 4; n += 1) children.push(await post(one.clerk, `${n}`, { parentId: parent.id }))
          await Promise.all(children.map(({ id }, n) => (n % 2 ? one : two).clerk.transition(id, 'completed')))
          expect((await one.clerk.show(parent.id)).phase).toBe('completed')
        }
      })

      it('have no child left behind that is posted while the parent is cancelled elsewhere', async () => {
        const [one, two] = [await start(), await start()]
        for (let round = 0; round < 5; round += 1) {
          const parent = await post(one.clerk, 'parent')
          await Promise.allSettled([
            one.clerk.transition(parent.id, 'cancelled'),
            ...[1, 2, 3].map((n) => post(two.clerk, `${n}`, { parentId: parent.id })),
          ])
          const left = await one.clerk.list({ parentId: parent.id, phase: ['new', 'open', 'stuck'] })
          expect(left).toEqual([])
        }
      })
    })

    describe('strictCompletion', () => {
      it('refuses a success while something below is open, at any depth', async () => {
        const { clerk, stacks } = await start({ config: { clerk: { strictCompletion: true } } })
        const root = await post(clerk, 'root')
        const mid = await post(clerk, 'mid', { parentId: root.id })
        const leaf = await post(clerk, 'leaf', { parentId: mid.id })
        await expect(clerk.transition(root.id, 'completed')).rejects.toMatchObject({
          code: 'OPEN_DESCENDANTS',
          message: expect.stringContaining(mid.id),
        })
        // Ended behind the Clerk's back, with something open below it.
        await stacks.book<WritDoc>('clerk', 'writs').put({ ...mid, phase: 'cancelled', parentId: root.id })
        await stacks.book<WritDoc>('clerk', 'writs').patch(leaf.id, { phase: 'stuck' })
        await expect(clerk.transition(root.id, 'completed')).rejects.toThrow(leaf.id)
        await clerk.transition(root.id, 'failed')
      })

      it('lets a family complete from below', async () => {
        const { clerk } = await start({ config: { clerk: { strictCompletion: true } } })
        const root = await post(clerk, 'root')
        const leaf = await post(clerk, 'leaf', { parentId: root.id })
        await clerk.transition(leaf.id, 'completed')
        expect((await clerk.show(root.id)).phase).toBe('completed')
      })

      it('is off unless asked for', async () => {
        const { clerk } = await start()
        const root = await post(clerk, 'root')
        const leaf = await post(clerk, 'leaf', { parentId: root.id })
        await clerk.transition(root.id, 'completed')
        expect((await clerk.show(leaf.id)).phase).toBe('open')
      })
    })

    describe('posting, reading and editing', () => {
      it('a child inherits the codex, unless it has its own, and changes nothing of its parent', async () => {
        const { clerk } = await start()
        const parent = await post(clerk, 'parent', { codex: 'mill' })
        const heir = await post(clerk, 'heir', { parentId: parent.id })
        const own = await post(clerk, 'own', { parentId: parent.id, codex: 'barn' })
        expect([heir.codex, own.codex, heir.parentId]).toEqual(['mill', 'barn', parent.id])
        expect(await clerk.show(parent.id)).toEqual(parent)
        expect(await clerk.show(heir.id)).toEqual(heir)
      })

      it('needs a parent that is there and has not ended, a known type, and a title', async () => {
        const { clerk } = await start()
        const before = await clerk.count()
        const ended = await post(clerk, 'ended')
        await clerk.transition(ended.id, 'cancelled')
        await expect(post(clerk, 'x', { parentId: 'w-none' })).rejects.toThrow('There is no parent "w-none"')
        await expect(post(clerk, 'x', { parentId: ended.id })).rejects.toMatchObject({ code: 'PARENT_ENDED' })
        await expect(post(clerk, 'x', { type: 'errand' })).rejects.toThrow(
          '"errand" is not registered. Registered: mandate.',
        )
        await expect(post(clerk, '')).rejects.toThrow('post().title must be a non-empty string')
        await expect(post(clerk, 'x', { body: 5 })).rejects.toThrow('post().body must be a string')
        await expect(post(clerk, 'x', { tittle: 'y' })).rejects.toThrow('Did you mean "title"?')
        expect(await clerk.count()).toBe(before + 1)
      })

      it('lists the newest first, twenty of them, by any of several phases and types', async () => {
        const { clerk } = await start({ clock: new FakeClock({ startAt: 5_000 }), plugins: [typesPlugin(TASK)] })
        const parent = await post(clerk, 'parent')
        const made = []
        for (let n = 0; n < 22; n += 1)
          made.push(await post(clerk, `${n}`, { parentId: parent.id, draft: n % 2 === 0 }))
        const task = await post(clerk, 'task', { parentId: parent.id, type: 'task' })
        const of = { parentId: parent.id }

        const ids = (writs: readonly WritDoc[]) => writs.map(({ id }) => id)
        expect(ids(await clerk.list(of))).toEqual(ids([task, ...made.toReversed()].slice(0, 20)))
        expect(ids(await clerk.list({ ...of, limit: 2, offset: 21 }))).toEqual(ids([made[1]!, made[0]!]))
        expect(await clerk.count(of)).toBe(23)
        expect(await clerk.count({ ...of, phase: 'new' })).toBe(11)
        expect(await clerk.count({ ...of, phase: ['new', 'idea'] })).toBe(12)
        expect(await clerk.count({ ...of, type: ['task', 'none'] })).toBe(1)
        expect(await clerk.count({ ...of, phase: [] })).toBe(0)
        await expect(clerk.list({ limit: 0 })).rejects.toThrow('list().limit')
        await expect(clerk.count({ phase: 5 } as never)).rejects.toThrow('count().phase')
        await expect(clerk.list({ fase: 'new' } as never)).rejects.toThrow('Did you mean "phase"?')
      })

      it('finds an id by its beginning, when there is one', async () => {
        const { clerk, stacks } = await start()
        const book = stacks.book<WritDoc>('clerk', 'writs')
        const { id, ...rest } = await post(clerk, 'x')
        for (const made of ['q-1', 'q-12', 'q-2']) await book.put({ ...rest, id: made })
        expect(await clerk.resolveId('q-1')).toBe('q-1')
        expect(await clerk.resolveId('q-12')).toBe('q-12')
        expect(await clerk.resolveId(id.slice(0, -1))).toBe(id)
        await expect(clerk.resolveId('q-')).rejects.toThrow(/Several writs .*q-1, q-12/)
        await expect(clerk.resolveId('q%')).rejects.toThrow('No writ has an id that begins with "q%"')
        await expect(clerk.resolveId('')).rejects.toThrow('non-empty string')
        await expect(clerk.show('q-')).rejects.toMatchObject({ code: 'WRIT_NOT_FOUND' })
        for (const made of ['q-1', 'q-12', 'q-2']) await book.delete(made)
      })

      it('edits words always, type and codex before it has left its initial phase', async () => {
        const { clerk } = await start({ plugins: [typesPlugin(TASK)] })
        const { id } = await post(clerk, 'x', { draft: true, codex: 'mill' })
        expect(await clerk.edit({ id, type: 'task', codex: '', title: 'y' })).toMatchObject({
          type: 'task',
          phase: 'idea',
          title: 'y',
        })
        expect(await clerk.show(id)).not.toHaveProperty('codex')
        await clerk.edit({ id, codex: 'barn' })
        await clerk.transition(id, 'doing')
        expect(await clerk.edit({ id, title: 'z', body: 'b' })).toMatchObject({ title: 'z', body: 'b', codex: 'barn' })
        await expect(clerk.edit({ id, type: 'mandate' })).rejects.toMatchObject({ code: 'WRIT_SETTLED' })
        await expect(clerk.edit({ id, codex: '' })).rejects.toMatchObject({ code: 'WRIT_SETTLED' })
        await expect(clerk.edit({ id, title: '' })).rejects.toThrow('edit().title')
        await expect(clerk.edit({ id, phase: 'done' } as never)).rejects.toThrow('"phase" is not an option')
        await expect(clerk.edit({ id: 'w-none', title: 'x' })).rejects.toMatchObject({ code: 'WRIT_NOT_FOUND' })
      })
    })

    describe('inside a transaction', () => {
      it('joins it: a step, a slot and a link are one commit, or none', async () => {
        const seen: ChangeEvent<WritDoc>[] = []
        const { clerk, stacks } = await start({ plugins: [recorder(seen)] })
        const [a, b] = [await post(clerk, 'a'), await post(clerk, 'b')]
        seen.length = 0
        const failing = stacks.transaction(async () => {
          await clerk.transition(a.id, 'stuck')
          await clerk.link(a.id, b.id, 'x')
          throw new Error('no')
        })
        await expect(failing).rejects.toThrow('no')
        expect(await clerk.show(a.id)).toEqual(a)
        expect((await clerk.links(a.id)).outbound).toEqual([])
        await stacks.transaction(async () => {
          await clerk.setWritStatus(a.id, 'p', { why: 1 })
          await clerk.transition(a.id, 'stuck', { resolution: 'why not' })
        })
        expect(seen).toHaveLength(1)
        expect(seen[0]).toMatchObject({
          type: 'update',
          prev: { phase: 'open' },
          entry: { phase: 'stuck', status: { p: { why: 1 } } },
        })
      })
    })
  })
}

/** Writes down the events of writs, as they are emitted after each commit. */
function recorder(seen: ChangeEvent<WritDoc>[]): PluginSource {
  return watcher('recorder', (event) => void seen.push(event), { failOnError: false })
}

/** Lets nothing titled `title` come to `phase`. */
function guard(title: string, phase: string): PluginSource {
  return watcher('guard', (event) => {
    if (event.type === 'update' && event.entry.title === title && event.entry.phase === phase)
      throw new Error('guarded')
  })
}

function watcher(name: string, handler: ChangeHandler<WritDoc>, options?: WatchOptions): PluginSource {
  const start = () => guild().apparatus<StacksApi>('stacks').watch<WritDoc>('clerk', 'writs', handler, options)
  return { package: name, plugin: { apparatus: { requires: ['clerk'], start } } }
}
