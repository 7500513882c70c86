import { memoryBackend, NonRetryableError } from 'millrace'
import { guild, type PluginSource } from 'millrace/guild'
import type { ClerkApi, WritDoc } from 'millrace/guild/clerk'
import type { ClockworksRetryApi, ClockworksRetryConfig } from 'millrace/guild/clockworks-retry'
import type { StacksApi } from 'millrace/guild/stacks'
import { openOps } from 'millrace/ops'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { onMemory } from '../grounds.js'
import { type SpiderGuildOptions, spiderGuild, thrower } from './spider-guild.js'

const MINUTE = 60_000

/** A guild whose time the test moves. */
async function scene(options: SpiderGuildOptions = {}) {
  const clock = new FakeClock()
  const ground = await onMemory.open()
  const made = await spiderGuild(ground, { ...options, clock })
  onTestFinished(async () => {
    await made.g.shutdown()
    await ground.close()
  })
  const actions = async () => (await made.drain()).map(({ action }) => action)
  return { ...made, clock, actions }
}

const retrying = (retry: ClockworksRetryConfig, more: SpiderGuildOptions = {}) =>
  scene({ designs: { thrower }, hasRetry: true, ...more, config: { 'clockworks-retry': retry } })

describe('the next rig of a writ', () => {
  it('comes when the pause of its type is over, and each pause is longer', async () => {
    const { clock, actions, post, rigsOf, phaseOf, clerk } = await retrying({
      types: { mandate: { maxRigs: 3, backoff: { initialMs: MINUTE, factor: 3, maxMs: 10 * MINUTE } } },
    })
    const writ = await post()
    expect(await actions()).toEqual(['rig-spawned', 'rig-completed'])
    expect(await phaseOf(writ)).toBe('open')
    expect(Date.parse((await clerk.show(writ.id)).runAt ?? '')).toBe(clock.now() + MINUTE)
    await clock.advance(MINUTE - 1)
    expect(await actions()).toEqual([])
    await clock.advance(1)
    expect(await actions()).toEqual(['rig-spawned', 'rig-completed'])
    await clock.advance(3 * MINUTE - 1)
    expect(await actions()).toEqual([])
    await clock.advance(1)
    await actions()
    expect([await phaseOf(writ), (await rigsOf(writ)).length]).toEqual(['stuck', 3])
  })

  it('is one of as many as the type of the writ may have, and others have two', async () => {
    const { g, actions, post, rigsOf, phaseOf } = await retrying({ types: { mandate: { maxRigs: 1 } } })
    const retry = g.apparatus<ClockworksRetryApi>('clockworks-retry')
    const writ = await post()
    await actions()
    expect([await phaseOf(writ), (await rigsOf(writ)).length]).toEqual(['stuck', 1])
    expect(await retry.describe(writ.id)).toMatchObject({ attempts: 1, cap: 1, decision: 'leave' })
    expect([retry.maxRigsOf('mandate'), retry.maxRigsOf('other'), retry.maxAttempts]).toEqual([1, 2, 2])
  })

  it('that could not be given is told with the number of its type, and comes when the event is delivered again', async () => {
    let objects = true
    const objecting: PluginSource = {
      package: 'objecting-apparatus',
      plugin: {
        apparatus: {
          requires: ['stacks', 'clerk'],
          start: () =>
            guild()
              .apparatus<StacksApi>('stacks')
              .watch<WritDoc>('clerk', 'writs', (event) => {
                if (objects && event.type === 'update' && event.prev.phase === 'stuck' && event.entry.phase === 'open')
                  throw new NonRetryableError('not this one')
              }),
        },
      },
    }
    const { g, stacks, clock, actions, post, phaseOf, rigsOf } = await retrying(
      { types: { mandate: { maxRigs: 5, backoff: { initialMs: MINUTE } } } },
      { plugins: [objecting] },
    )
    const writ = await post()
    await actions()
    await expect.poll(async () => (await stacks.deadEvents()).length).toBe(1)
    const retry = g.apparatus<ClockworksRetryApi>('clockworks-retry')
    expect(await retry.describe(writ.id)).toMatchObject({
      attempts: 1,
      cap: 5,
      decision: 'leave',
      reason: expect.stringMatching(/1 of 5 attempts, but it could not be opened again .*not this one; tried once/),
    })
    const ops = openOps(memoryBackend(), { stacks, clock })
    expect(await ops.writ(writ.id)).toMatchObject({ phase: 'stuck', cap: 5, reasons: [{ code: 'stuck-retry-failed' }] })
    objects = false
    await stacks.redeliver((await stacks.deadEvents())[0]?.id ?? '')
    expect(await phaseOf(writ)).toBe('open')
    await clock.advance(MINUTE)
    await actions()
    expect(await rigsOf(writ)).toHaveLength(2)
  })

  it('does not come before the time to which a person has put the writ off meanwhile', async () => {
    const { clerk, clock, spider, actions, post, rigsOf } = await retrying({ backoff: { initialMs: MINUTE } })
    const writ = await post()
    await spider.crawl()
    await clerk.edit({ id: writ.id, runAt: clock.now() + 10 * MINUTE })
    await actions()
    await clock.advance(10 * MINUTE - 1)
    expect([await actions(), (await rigsOf(writ)).length]).toEqual([[], 1])
    await clock.advance(1)
    await actions()
    expect(await rigsOf(writ)).toHaveLength(2)
  })

  it('is not taken by a person who sticks the writ while it waits', async () => {
    const { clock, actions, post, phaseOf, clerk } = await retrying({ backoff: { initialMs: MINUTE } })
    const writ = await post()
    await actions()
    await clerk.transition(writ.id, 'stuck', { resolution: 'wait for me' })
    await clock.advance(2 * MINUTE)
    expect(await actions()).toEqual([])
    expect(await phaseOf(writ)).toBe('stuck')
  })

  it.each([
    [{ maxRigs: 0 }, 'clockworks-retry.maxRigs'],
    [{ backoff: { initialMs: 10, maxMs: 5 } }, 'clockworks-retry.backoff.maxMs'],
    [{ types: { order: { maxRig: 3 } } }, '"maxRig" is not an option of guild.json.clockworks-retry.types.order'],
    [{ types: [] }, 'clockworks-retry.types'],
    [
      { types: { mandat: { maxRigs: 3 } } },
      'clockworks-retry.types: The writ type "mandat" is not registered (did you',
    ],
  ])('a policy that cannot be kept fails the start: %j', async (retry, message) => {
    await expect(retrying(retry as ClockworksRetryConfig)).rejects.toThrow(message)
  })
})

describe('a writ with a time', () => {
  const at = (
    clerk: ClerkApi,
    given: { readonly runAt?: number; readonly deadline?: number; readonly draft?: boolean },
  ) => clerk.post({ title: 'timed', body: '', ...given })

  it('gets no rig before its time, which can be changed and removed', async () => {
    const { clerk, clock, actions, phaseOf } = await scene()
    const [later, sooner] = [
      await at(clerk, { runAt: clock.now() + MINUTE }),
      await at(clerk, { runAt: clock.now() + MINUTE }),
    ]
    expect(await actions()).toEqual([])
    await clerk.edit({ id: sooner.id, runAt: null })
    await clerk.edit({ id: later.id, runAt: clock.now() + 2 * MINUTE })
    expect((await actions()).length).toBe(2)
    expect(await phaseOf(sooner)).toBe('completed')
    await clock.advance(MINUTE)
    expect(await actions()).toEqual([])
    await clock.advance(MINUTE)
    await actions()
    expect(await phaseOf(later)).toBe('completed')
  })

  it('keeps its time also when it waited for another writ meanwhile', async () => {
    const { clerk, clock, actions, post, follows, phaseOf } = await scene()
    const first = await post()
    const timed = await at(clerk, { runAt: clock.now() + MINUTE })
    await follows(timed, first)
    await actions()
    expect(await phaseOf(timed)).toBe('open')
    await clock.advance(MINUTE)
    await actions()
    expect(await phaseOf(timed)).toBe('completed')
  })

  it('fails at its deadline, with its rig ended and its children cancelled', async () => {
    const { clerk, clock, drain, rigsOf, phaseOf, stacks } = await scene({
      designs: { wait: async () => ({ status: 'launched', sessionId: 's-1' }) },
    })
    const writ = await at(clerk, { deadline: clock.now() + MINUTE })
    const child = await clerk.post({ title: 'child', body: '', parentId: writ.id, draft: true })
    await drain()
    await clock.advance(MINUTE)
    expect(await drain()).toEqual([{ action: 'writ-expired', writId: writ.id }])
    expect(await clerk.show(writ.id)).toMatchObject({
      phase: 'failed',
      resolution: `Its deadline has passed: ${writ.deadline}`,
    })
    expect((await rigsOf(writ)).map(({ status }) => status)).toEqual(['cancelled'])
    expect(await phaseOf(child)).toBe('cancelled')
    expect(await stacks.readBook('spider', 'deadlines').count()).toBe(0)
  })

  it('is not held to its deadline before it is opened, nor after it has ended', async () => {
    const { clerk, clock, actions, phaseOf } = await scene()
    const done = await at(clerk, { deadline: clock.now() + MINUTE })
    const draft = await at(clerk, { deadline: clock.now() + MINUTE, draft: true })
    await actions()
    await clock.advance(MINUTE)
    expect(await actions()).toEqual([])
    expect([await phaseOf(done), await phaseOf(draft)]).toEqual(['completed', 'new'])
    await clerk.transition(draft.id, 'open')
    expect(await actions()).toEqual(['writ-expired'])
  })

  it('has its deadline enforced later where a plugin objects, and others do not wait for it', async () => {
    let objects = true
    const { clerk, clock, actions, phaseOf, warnings } = await scene({
      plugins: [
        {
          package: 'veto-apparatus',
          plugin: {
            apparatus: {
              requires: ['stacks', 'clerk'],
              start: async () => {
                const { guild } = await import('millrace/guild')
                guild()
                  .apparatus<{ watch(a: string, b: string, h: (e: { entry?: { phase: string } }) => void): void }>(
                    'stacks',
                  )
                  .watch('clerk', 'writs', ({ entry }) => {
                    if (objects && entry?.phase === 'failed') throw new Error('not this one')
                  })
              },
            },
          },
        },
      ],
    })
    const writ = await at(clerk, { runAt: clock.now() + 10 * MINUTE, deadline: clock.now() + MINUTE })
    const other = await clerk.post({ title: 'other', body: '' })
    await clock.advance(MINUTE)
    await actions()
    expect([await phaseOf(writ), await phaseOf(other)]).toEqual(['open', 'completed'])
    expect(warnings.map(({ code }) => code)).toEqual(['DEADLINE_FAILED'])
    objects = false
    await clock.advance(60_000)
    expect(await actions()).toEqual(['writ-expired'])
  })

  it.each([
    [{ runAt: 'tomorrow' }, 'post().runAt must be epoch ms or a valid Date'],
    [{ deadline: new Date(Number.NaN) }, 'post().deadline must be epoch ms or a valid Date'],
  ])('%j is refused', async (given, message) => {
    const { clerk } = await scene()
    await expect(at(clerk, given as never)).rejects.toThrow(message)
  })
})
