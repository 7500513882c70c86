import { memoryBackend } from 'millrace'
import { openStacks, type Stacks } from 'millrace/guild/stacks'
import { openOps } from 'millrace/ops'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { GroundKind } from '../../guild/grounds.js'
import { type SpiderGuildOptions, spiderGuild, thrower } from '../../guild/spider/spider-guild.js'

const ada = { who: 'ada', why: 'the bank is back' }

/** A guild on a ground, and ops in what is like another process: it has opened the same documents, and nothing else. */
async function scene(kind: GroundKind, options: SpiderGuildOptions = {}) {
  const ground = await kind.open()
  const made = await spiderGuild(ground, options)
  const stacks: Stacks = await openStacks({ backend: ground.backend() })
  const ops = openOps(memoryBackend(), { stacks })
  onTestFinished(async () => {
    await stacks.close()
    await made.g.shutdown()
    await ground.close()
  })
  return { ...made, ops }
}

/** What people can do to writs, from a process that loads no plugin. */
export function describeGuildActs(kind: GroundKind): void {
  describe(`acts on writs on ${kind.name}`, () => {
    it('retries a writ that is stuck at its cap, with one more rig, and tells who did it and why', async () => {
      let isDown = true
      const flaky = async () => {
        if (isDown) throw new Error('the bank is away')
        return { status: 'completed', yields: { paid: true } } as const
      }
      const { ops, post, drain, rigsOf, phaseOf } = await scene(kind, { designs: { flaky }, hasRetry: true })
      const writ = await post()
      await drain()
      expect(await ops.writ(writ.id)).toMatchObject({ phase: 'stuck', cap: 2, reasons: [{ code: 'stuck-at-cap' }] })
      isDown = false
      expect(await ops.retryWrit(writ.id.slice(0, -3), ada)).toMatchObject({ id: writ.id, phase: 'open' })
      await drain()
      expect(await phaseOf(writ)).toBe('completed')
      expect(await rigsOf(writ)).toHaveLength(3)
      const line = { who: 'ada', why: 'the bank is back', what: `retry writ ${writ.id} (stuck → open)` }
      expect((await ops.writ(writ.id))?.log).toMatchObject([line])
      expect(await ops.log()).toMatchObject([line])
    })

    it('gives a retry that fails again no second one by itself', async () => {
      const { ops, post, drain, rigsOf, phaseOf } = await scene(kind, { designs: { thrower }, hasRetry: true })
      const writ = await post()
      await drain()
      await ops.retryWrit(writ.id, ada)
      await drain()
      expect([await phaseOf(writ), (await rigsOf(writ)).length]).toEqual(['stuck', 3])
    })

    it('opens drafts, cancels what has not ended with its family and its rig, and counts both', async () => {
      const { ops, clerk, post, drain, rigsOf, phaseOf } = await scene(kind, {
        designs: { wait: async () => ({ status: 'launched', sessionId: 's-1' }) },
      })
      const draft = await clerk.post({ title: 'draft', body: '', draft: true })
      await ops.openWrit(draft.id, { who: 'ada' })
      const child = await clerk.post({ title: 'child', body: '', parentId: draft.id })
      const other = await post()
      await drain()
      expect((await ops.overview()).writs).toEqual({ open: 3, stuck: 0 })
      expect(await ops.cancelWrit(draft.id, { who: 'ada', why: 'not wanted' })).toMatchObject({ phase: 'cancelled' })
      await drain()
      expect([await phaseOf(draft), await phaseOf(child), await phaseOf(other)]).toEqual([
        'cancelled',
        'cancelled',
        'open',
      ])
      expect((await clerk.show(draft.id)).resolution).toBe('not wanted')
      expect((await rigsOf(draft)).map(({ status }) => status)).toEqual(['cancelled'])
      expect((await ops.overview()).writs).toEqual({ open: 1, stuck: 0 })
    })

    it('refuses what does not apply, says what would, and changes and logs nothing', async () => {
      const { ops, clerk, post, drain, follows } = await scene(kind, { designs: { thrower } })
      const draft = await clerk.post({ title: 'draft', body: '', draft: true })
      const stuck = await post()
      const blocked = await post()
      await follows(blocked, stuck)
      await drain()
      const open = await clerk.post({ type: 'mandate', title: 'open', body: '' })
      await expect(ops.retryWrit(draft.id, ada)).rejects.toThrow(/is new\. It is a draft: open it first/)
      await expect(ops.retryWrit(open.id, ada)).rejects.toThrow(/is open\. It is being worked on, or waits/)
      await expect(ops.openWrit(stuck.id, ada)).rejects.toThrow(/is stuck\. Retry it/)
      await clerk.transition(stuck.id, 'failed')
      await drain()
      await expect(ops.retryWrit(blocked.id, ada)).rejects.toThrow(/what it follows has failed: w-.*Remove the link/)
      await expect(ops.cancelWrit(stuck.id, ada)).rejects.toMatchObject({ code: 'WRONG_PHASE' })
      await expect(ops.cancelWrit('w-none', ada)).rejects.toMatchObject({ code: 'WRIT_REFERENCE' })
      // @ts-expect-error: who acts is needed
      await expect(ops.retryWrit(stuck.id, {})).rejects.toThrow('retryWrit.who')
      expect(await ops.log()).toEqual([])
    })

    it('acts through the store of a guild in the same process, too', async () => {
      const { stacks, clerk, phaseOf } = await scene(kind)
      const ops = openOps(memoryBackend(), { stacks })
      const draft = await clerk.post({ title: 'draft', body: '', draft: true })
      await ops.cancelWrit(draft.id, ada)
      expect(await phaseOf(draft)).toBe('cancelled')
    })
  })
}
