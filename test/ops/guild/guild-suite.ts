import { createWork, memoryBackend, PoisonError } from 'millrace'
import { openStacks, type Stacks } from 'millrace/guild/stacks'
import { openOps, type WritReport } from 'millrace/ops'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { GroundKind } from '../../guild/grounds.js'
import { type SpiderGuildOptions, spiderGuild, thrower } from '../../guild/spider/spider-guild.js'

/** A guild on a ground, and ops in what is like another process: it has opened the same documents, and nothing else. */
async function scene(kind: GroundKind, options: SpiderGuildOptions = {}) {
  const ground = await kind.open()
  const made = await spiderGuild(ground, options)
  const stacks: Stacks = await openStacks({ backend: ground.backend() })
  const backend = memoryBackend()
  const ops = openOps(backend, { stacks })
  onTestFinished(async () => {
    await stacks.close()
    await made.g.shutdown()
    await ground.close()
  })
  const report = async (writ: { readonly id: string }): Promise<WritReport> => {
    const found = await ops.writ(writ.id)
    if (found === undefined) throw new Error('no such writ')
    return found
  }
  return { ...made, made, ops, stacks, backend, report }
}

const codes = ({ reasons }: WritReport) => reasons.map(({ code }) => code)
const first = ({ reasons }: WritReport) => reasons[0]?.text ?? ''

/** What ops says of a guild, of which it reads the documents only. */
export function describeGuildReads(kind: GroundKind): void {
  describe(`the guild, as ops sees it on ${kind.name}`, () => {
    it('lists writs by phase, type and parent, the newest first', async () => {
      const { ops, clerk, post } = await scene(kind)
      const [a, b] = [await post('a'), await post('b')]
      const child = await clerk.post({ title: 'child', body: 'of a', parentId: a.id })
      await clerk.transition(b.id, 'cancelled')

      expect((await ops.writs()).map(({ id }) => id)).toEqual([child.id, b.id, a.id])
      expect((await ops.writs({ phase: 'open', limit: 1 })).map(({ title }) => title)).toEqual(['child'])
      expect(await ops.writs({ phase: 'open', limit: 1, offset: 1 })).toEqual([
        expect.objectContaining({ id: a.id, type: 'mandate', phase: 'open' }),
      ])
      expect((await ops.writs({ parentId: a.id })).map(({ parentId }) => parentId)).toEqual([a.id])
      await expect(ops.writs({ limit: 0 })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    })

    it('finds a writ by the beginning of its id, and says when several begin so', async () => {
      const { ops, post } = await scene(kind)
      const a = await post('a')
      expect((await ops.writ(a.id.slice(0, -4)))?.id).toBe(a.id)
      await post('b')
      await expect(ops.writ('w-')).rejects.toMatchObject({ code: 'AMBIGUOUS_ID' })
      expect(await ops.writ('nothing')).toBeUndefined()
      expect(await ops.rig('nothing')).toBeUndefined()
    })

    it('reports a draft, and a writ that no crawl has reached, with a remedy that moves each', async () => {
      const { clerk, spider, report } = await scene(kind)
      const draft = await clerk.post({ title: 'draft', body: '', draft: true })
      expect(codes(await report(draft))).toEqual(['draft'])
      expect((await report(draft)).reasons[0]?.remedy).toContain(`ops.openWrit("${draft.id}", { who })`)
      await clerk.transition(draft.id, 'open')
      expect(codes(await report(draft))).toEqual(['queued'])
      await spider.crawl()
      expect(codes(await report(draft))).toEqual(['engine-ready'])
      expect(first(await report(draft))).toBe(
        'Engine "only" is ready and has not been started (no engines run in the guild).',
      )
      await spider.crawl()
      expect(await report(draft)).toMatchObject({ phase: 'completed', reasons: [], rigs: [{ status: 'completed' }] })
    })

    it('names the writs that another follows, with their phases', async () => {
      const { clerk, post, follows, drain, report } = await scene(kind)
      const before = await clerk.post({ title: 'before', body: '', draft: true })
      const after = await post('after')
      await follows(after, before)
      expect(codes(await report(after))).toEqual(['held'])
      await drain()
      const { reasons, links } = await report(after)
      expect(links).toEqual([{ from: after.id, to: before.id, label: 'follows', kind: 'spider.follows' }])
      expect(reasons).toEqual([
        {
          code: 'held',
          text: `It follows ${before.id} (new: before), and gets a rig when that has ended.`,
          remedy: `Find out why ${before.id} does not end, or remove the link: clerk.unlink("${after.id}", "${before.id}", "follows").`,
        },
      ])
      await clerk.unlink(after.id, before.id, 'follows')
      await drain()
      expect((await report(after)).phase).toBe('completed')
    })

    it('reports a failed writ that another follows, and a cycle', async () => {
      const { clerk, post, follows, drain, report } = await scene(kind)
      const [a, b, c, d] = [await post('a'), await post('b'), await post('c'), await post('d')]
      await clerk.transition(a.id, 'failed')
      await follows(b, a)
      await follows(c, d)
      await follows(d, c)
      await drain()
      expect(codes(await report(b))).toEqual(['stuck-by-blocker'])
      expect(first(await report(b))).toContain(`what it follows has failed: ${a.id} (failed: a).`)
      expect((await report(b)).retry).toBeUndefined()
      expect(codes(await report(c))).toEqual(['stuck-by-cycle'])
      expect((await report(c)).reasons[0]?.remedy).toContain(`clerk.unlink("${c.id}", "${d.id}", "follows")`)
      await clerk.unlink(c.id, d.id, 'follows')
      await clerk.unlink(b.id, a.id, 'follows')
      await drain()
      for (const writ of [b, c, d]) expect((await report(writ)).phase).toBe('completed')
    })

    it('says what blocks an engine, since when, and how to continue', async () => {
      const { post, spider, drain, report, ops } = await scene(kind, {
        designs: {
          asks: async (_, { priorBlock }) =>
            priorBlock === undefined
              ? {
                  status: 'blocked',
                  blockType: 'scheduled-time',
                  condition: { resumeAt: '2999-01-01T00:00:00.000Z' },
                  message: 'not before the next millennium',
                }
              : { status: 'completed', yields: 1 },
        },
        engines: [
          { id: 'ask', designId: 'asks' },
          { id: 'then', designId: 'asks', upstream: ['ask'] },
        ],
      })
      const writ = await post()
      await drain()
      const { reasons, rigs } = await report(writ)
      const [rig] = rigs
      expect(reasons.map(({ code }) => code)).toEqual(['engine-blocked'])
      expect(reasons[0]?.text).toMatch(
        /^Engine "ask" is blocked by scheduled-time since .+: not before the next millennium\. It waits until 2999-01-01T00:00:00.000Z, in \d+ d/,
      )
      expect(reasons[0]?.remedy).toContain(`spider.resume("${rig?.id}", "ask")`)
      expect(await ops.rig(rig?.id ?? '')).toEqual(rig)
      expect(rig).toMatchObject({
        writId: writ.id,
        status: 'blocked',
        attempt: 1,
        engines: [
          {
            id: 'ask',
            designId: 'asks',
            status: 'blocked',
            blockedBy: 'scheduled-time: not before the next millennium',
          },
          { id: 'then', status: 'pending', upstream: ['ask'] },
        ],
      })
      await spider.resume(rig?.id ?? '', 'ask')
      await drain()
      expect(first(await report(writ))).toContain('Engine "then" is blocked')
    })

    it('shows what writs carry and how their engines failed through redact', async () => {
      const { clerk, drain, backend, stacks } = await scene(kind, { designs: { thrower } })
      const writ = await clerk.post({ title: 'a', body: 'the body' })
      await drain()
      const kinds = new Set<string>()
      const ops = openOps(backend, {
        stacks,
        redact: (value, { kind, type, id }) => {
          kinds.add(`${kind} ${type}`)
          expect(id).not.toBe('')
          return value.replaceAll(/boom|the body/g, '****')
        },
      })

      const shown = await ops.writ(writ.id)
      const rig = await ops.rig(shown?.rigs[0]?.id ?? '')

      expect(JSON.stringify([shown, rig])).not.toMatch(/boom|the body/)
      expect(shown).toMatchObject({ body: '****', rigs: [{ engines: [{ error: expect.stringContaining('****') }] }] })
      expect(shown?.reasons[0]?.text).toContain('****')
      expect(kinds).toEqual(new Set(['input mandate', 'result mandate', 'error mandate', 'error thrower']))
    })

    it('says that a writ has reached its cap, what failed, and what the retry observer decided', async () => {
      const { post, drain, report, clerk } = await scene(kind, { hasRetry: true, designs: { thrower } })
      const writ = await post()
      await drain()
      const found = await report(writ)
      expect(found).toMatchObject({
        phase: 'stuck',
        cap: 2,
        rigs: [
          { status: 'stuck', attempt: 1 },
          { status: 'stuck', attempt: 2, engines: [{ status: 'failed', error: expect.stringContaining('boom') }] },
        ],
        retry: { decision: 'leave', why: 'It has had 2 of 2 attempts; now a person has to look at it.' },
      })
      expect(codes(found)).toEqual(['stuck-at-cap'])
      expect(first(found)).toMatch(
        /^It is stuck since .+, with 2 of 2 rigs used\. Engine "only" failed: boom .*\. It has reached its cap/,
      )
      expect(found.reasons[0]?.remedy).toContain(`ops.retryWrit("${writ.id}", { who }) gives it one more rig`)
      await clerk.transition(writ.id, 'open')
      await drain()
      expect((await report(writ)).rigs).toHaveLength(3)
    })

    it('says which engines of a rig did not run in it, because an earlier one had completed them', async () => {
      const { post, drain, report } = await scene(kind, {
        hasRetry: true,
        designs: { charge: { carryOver: true, run: async () => ({ status: 'completed', yields: 1 }) }, thrower },
        engines: [
          { id: 'charge', designId: 'charge' },
          { id: 'ship', designId: 'thrower', upstream: ['charge'] },
        ],
      })
      const writ = await post()
      await drain()
      const [one, two] = (await report(writ)).rigs
      expect(one?.engines[0]).not.toHaveProperty('carriedFrom')
      expect(two?.engines).toMatchObject([{ id: 'charge', status: 'completed', carriedFrom: one?.id }, { id: 'ship' }])
      expect(two?.engines[1]).not.toHaveProperty('carriedFrom')
    })

    it('says that nothing retries in a guild without an observer, and that a failure is final', async () => {
      const { post, drain, report } = await scene(kind, { designs: { thrower } })
      const writ = await post()
      await drain()
      expect(codes(await report(writ))).toEqual(['stuck-retried'])
      expect(first(await report(writ))).toContain('this guild has no clockworks-retry')
      expect((await report(writ)).retry).toBeUndefined()
      const poison = await scene(kind, { designs: { bad: () => Promise.reject(new PoisonError('never')) } })
      const lost = await poison.post()
      await poison.drain()
      expect(codes(await poison.report(lost))).toEqual(['stuck-for-good'])
    })

    it('says that it was made stuck by hand', async () => {
      const { clerk, post, report } = await scene(kind)
      const writ = await post()
      await clerk.transition(writ.id, 'stuck', { resolution: 'waits for the lawyers' })
      expect(codes(await report(writ))).toEqual(['stuck-by-hand'])
      expect(first(await report(writ))).toContain('waits for the lawyers')
    })

    it('names the children that have not ended', async () => {
      const { clerk, report } = await scene(kind, { spider: { rigTemplateMappings: {} } })
      const parent = await clerk.post({ title: 'parent', body: '' })
      const child = await clerk.post({ title: 'child', body: '', parentId: parent.id })
      const found = await report(parent)
      expect(codes(found)).toEqual(['children', 'not-dispatched'])
      expect(first(found)).toBe(`1 of its children has not ended: ${child.id} (open: child).`)
      expect(found.children.map(({ id }) => id)).toEqual([child.id])
      expect(codes(await report(child))).toEqual(['not-dispatched'])
    })
  })
}

/** An engine that the work engine is to run: its item tells why it does not. */
export function describeEngineItems(kind: GroundKind): void {
  it('says why the item of an engine does not run', async () => {
    const { post, spider, report, backend } = await scene(kind, { spider: { pollIntervalMs: 10 } })
    const work = createWork({ backend, work: [spider.engineWork], autoStart: false })
    await work.pause({ type: 'spider.engine' }, 'deploy')
    const writ = await post()
    const running = spider.start({ work })
    onTestFinished(async () => {
      await running.stop()
      await work.stop()
    })
    await until(async () => (await report(writ)).reasons[0]?.text.includes('is paused') === true)
    const { reasons, rigs } = await report(writ)
    expect(reasons[0]).toMatchObject({ code: 'engine-ready', remedy: expect.stringContaining('Resume the type') })
    expect(reasons[0]?.text).toContain(`is work item ${rigs[0]?.id}/only/1`)
    await work.resume({ type: 'spider.engine' })
    work.start()
    await until(async () => (await report(writ)).phase === 'completed')
  })
}

/** It runs by itself, in real time. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5))
}
