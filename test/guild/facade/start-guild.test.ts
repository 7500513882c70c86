import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryBackend, memoryPubSub, memoryQueue, memoryStore, NonRetryableError } from 'millrace'
import { defineStep, guildClient, startGuild } from 'millrace/guild'
import { sqliteBackend } from 'millrace/sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

interface Order {
  readonly orderId: string
}

const charge = defineStep('charge', async ({ orderId }: Order) => ({ payment: `paid ${orderId}` }))
const label = defineStep('label', async (_: Order, ctx) => `${ctx.resultOf(charge).payment}, to Ada`)
const ship = defineStep('ship', (_: Order, ctx) => ({ shipped: ctx.resultOf(label) }))

describe('a guild of one type and three steps', () => {
  it('runs the steps in order, each with the input and the results before it, and stops with its block', async () => {
    let kept: { readonly host: { apparatus(id: string): unknown } } | undefined
    {
      await using guild = await startGuild({ writTypes: { order: { steps: [charge, label, ship] } } })
      kept = guild
      const writ = await guild.post('order', { orderId: 'o-1' })
      const ended = await guild.ended(writ.id)
      expect(ended).toMatchObject({ phase: 'completed', type: 'order', title: 'order' })
      expect(JSON.parse(ended.resolution ?? '')).toEqual({ shipped: 'paid o-1, to Ada' })
      // Everything of the system is within reach.
      expect((await guild.spider.forWrit(writ.id))?.engines.map(({ id }) => id)).toEqual(['charge', 'label', 'ship'])
    }
    expect(() => kept?.host.apparatus('clerk')).toThrow('it has been stopped')
  })

  it('gives steps the writ and the attempt, and writs as many rigs as their type says', async () => {
    const seen: string[] = []
    const fails = defineStep(
      'fails',
      (_, ctx) => {
        seen.push(`${ctx.writId} rig ${ctx.rigAttempt} try ${ctx.attempt}`)
        throw new Error('not today')
      },
      { retry: { retries: 1, backoff: { initialMs: 1, maxMs: 1 } } },
    )
    await using guild = await startGuild({
      writTypes: { order: { steps: [fails], retry: { maxRigs: 3, backoff: { initialMs: 5 } } } },
    })
    const writ = await guild.post('order', null)
    expect(await guild.ended(writ.id)).toMatchObject({ phase: 'stuck', resolution: 'not today' })
    expect(seen).toEqual([1, 2, 3].flatMap((rig) => [1, 2].map((n) => `${writ.id} rig ${rig} try ${n}`)))
    expect(await guild.retry.describe(writ.id)).toMatchObject({ attempts: 3, cap: 3, decision: 'leave' })
  })

  it('leaves a writ stuck with its reason that another attempt would not help', async () => {
    const refuse = defineStep('refuse', () => {
      throw new NonRetryableError('no such card')
    })
    await using guild = await startGuild({ writTypes: { order: { steps: [refuse] } } })
    const writ = await guild.post('order', {})
    expect(await guild.ended(writ.id)).toMatchObject({ phase: 'stuck', resolution: 'no such card' })
    expect(await guild.retry.describe(writ.id)).toMatchObject({ attempts: 1 })
  })

  it('lets a writ fail at its deadline, and ends the step that runs', async () => {
    const { promise: begun, resolve: begin } = deferred()
    const { promise: aborted, resolve: abort } = deferred()
    const slow = defineStep('slow', async (_, { signal }) => {
      signal.addEventListener('abort', () => abort())
      begin()
      await aborted
    })
    await using guild = await startGuild({ writTypes: { order: { steps: [slow], deadlineMs: 3_600_000 } } })
    const postedAt = Date.now()
    const writ = await guild.post('order', {})
    expect(Date.parse(writ.deadline ?? '')).toBeGreaterThanOrEqual(postedAt + 3_600_000)
    await begun
    await guild.clerk.edit({ id: writ.id, deadline: Date.now() })
    expect(await guild.ended(writ.id)).toMatchObject({
      phase: 'failed',
      resolution: expect.stringContaining('deadline has passed'),
    })
    await aborted
    expect((await guild.spider.forWrit(writ.id))?.status).toBe('cancelled')
  })

  it('rejects callers that still wait when it stops', async () => {
    const never = defineStep(
      'never',
      (_, { signal }) =>
        new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    const guild = await startGuild({ writTypes: { order: { steps: [never] } }, work: { stopDrain: 10 } })
    const writ = await guild.post('order', {})
    const waiting = expect(guild.ended(writ.id)).rejects.toMatchObject({ code: 'GUILD_STOPPED' })
    await guild.stop()
    await waiting
    await guild.stop()
  })
})

describe('bad input to startGuild', () => {
  const order = { steps: [charge] }

  it.each([
    [{}, 'it must be at least one type'],
    [{ writTypes: { order: { steps: [] } } }, 'writTypes.order.steps must be at least one step'],
    [{ writTypes: { order: { steps: [charge, charge] } } }, 'writTypes.order.steps[1] must be a step of another name'],
    [{ writTypes: { mandate: order } }, 'every guild has a type "mandate"'],
    [{ writTypes: { order: { steps: [() => 1] } } }, 'must be a step of defineStep()'],
    [{ writTypes: { order: { ...order, retry: { maxRigs: 0 } } } }, 'maxRigs'],
    [{ writTypes: { order: { ...order, retries: 3 } } }, '"retries" is not an option'],
    [{ writTypes: { order }, concurrency: 0 }, 'concurrency'],
    [{ writTypes: { order }, backend: memoryBackend() }, 'this backend keeps no documents'],
  ])('%# is refused', async (options, message) => {
    await expect(startGuild(options as never)).rejects.toThrow(message)
  })

  it('an input that JSON cannot carry, an unknown type and a result that was not there are named', async () => {
    const early = defineStep('early', (_: unknown, ctx) => ctx.resultOf(label))
    await using guild = await startGuild({ writTypes: { order: { steps: [charge] }, early: { steps: [early] } } })
    await expect(guild.post('order', { orderId: Number.NaN as never })).rejects.toThrow('input.orderId is NaN')
    await expect(guild.post('ordre' as never, {} as never)).rejects.toThrow('one of order, early')
    const writ = await guild.post('early', {})
    expect((await guild.ended(writ.id)).resolution).toMatch(/asks for the result of "label"/)
  })
})

describe('on a SQLite file', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-start-guild-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('keeps work and documents in that file, continues after a restart, and takes what a client posts', async () => {
    const file = join(folder, 'shop.db')
    const backend = sqliteBackend({ file })
    const types = { writTypes: { order: { steps: [charge, label, ship] } } } as const
    const first = await startGuild({ backend, ...types })
    const draft = await first.post('order', { orderId: 'o-1' }, { draft: true, title: 'Order 1' })
    await first.stop()
    await using client = await guildClient({ stacks: { backend: 'sqlite', file } })
    await client.open(draft.id)
    const second = await client.post({ type: 'order', title: 'Order 2', body: JSON.stringify({ orderId: 'o-2' }) })
    {
      await using guild = await startGuild({ backend, ...types })
      expect((await guild.ended(draft.id)).phase).toBe('completed')
      expect((await guild.ended(second.id)).phase).toBe('completed')
      expect(await guild.work.states([`${(await guild.spider.forWrit(second.id))?.id}/charge/1`])).toMatchObject([
        { status: 'success' },
      ])
    }
    await backend.close()
  })

  it('keeps documents where it is told, beside ports of any kind', async () => {
    const [queue, pubsub, store] = [memoryQueue(), memoryPubSub(), memoryStore()]
    await using guild = await startGuild({
      backend: { queue, pubsub, store },
      stacks: { backend: 'sqlite', file: join(folder, 'apart.db') },
      writTypes: { order: { steps: [charge] } },
    })
    expect((await guild.ended((await guild.post('order', { orderId: 'o-3' })).id)).phase).toBe('completed')
  })
})

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
