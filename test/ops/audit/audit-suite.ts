import { afterEach, describe, expect, it } from 'vitest'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { createWork, defineWork, dependency } from '../../../src/index.js'
import { openActions } from '../../../src/ops/actions/open-actions.js'
import { openAudit } from '../../../src/ops/audit/audit.js'
import { openOpsContext } from '../../../src/ops/context.js'
import type { Settlement } from '../../../src/ports/settlement.js'
import type { OpenedGround } from '../../work/grounds/ground.js'
import { born, CORRUPTIONS, type Corruption, commit, envelope, type Site } from './corruptions.js'

const oneTooMany = (groupId: string): Settlement => ({
  guard: { by: 'none' },
  effects: [{ do: 'joinGroup', groupId, count: 1 }],
})

const BY = { who: 'ann', why: 'the audit says so' } as const

/** What an audit finds and repairs, on one backend. `isBrief`: all in one test, where each of them would take too long. */
export function describeAudit(name: string, open: () => OpenedGround, isBrief = false): void {
  const closings: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closings.splice(0).toReversed()) await close()
  })

  function scene() {
    const { backend, clock, close } = open()
    const plain = defineWork('plain', (_: string, ctx) => ctx.void())
    const flaky = defineWork(
      'flaky',
      (input: string, ctx) => {
        if (ctx.attempt === 1) throw new Error('not yet')
        return ctx.queue(plain(input))
      },
      { retry: { attempts: 3, base: 90_000, jitter: 0 } },
    )
    const w = createWork({ backend, clock, work: [plain, flaky] })
    const context = openOpsContext(overPlainPorts, backend, { clock })
    closings.push(async () => {
      const stopped = w.stop()
      await clock.advance(10_000)
      await stopped
      await close()
    })
    const { ledger } = context
    const site: Site = {
      context,
      actions: openActions(context),
      type: 'plain',
      now: () => clock.now(),
      pretend: async ({ queues, types }) => {
        await ledger.extend([], 30_000, { id: 'asleep', host: 'h', version: '0', queues, types })
      },
    }
    return { clock, w, context, plain, flaky, site, ...openAudit(context) }
  }

  describe(`an audit on ${name}`, () => {
    it('finds all of them in one audit, and after the repairs none', async () => {
      const { clock, context, site, audit } = scene()
      await clock.advance(1_000)
      const broken: { readonly about: string; readonly mustEnd: readonly string[]; readonly of: Corruption }[] = []
      const possible = CORRUPTIONS.filter(({ impossibleOn }) => impossibleOn?.includes(name) !== true)
      for (const [i, of] of possible.entries()) broken.push({ of, ...(await of.seed(site, `x${i}`)) })
      await clock.advance(90_000)
      await site.pretend({ queues: ['asleep'], types: ['plain'] })

      const { findings } = await audit()
      expect(findings.map(({ code, id }) => `${code} ${id}`).toSorted()).toEqual(
        broken.map(({ of, about }) => `${of.code} ${about}`).toSorted(),
      )

      const { repaired } = await audit({ repair: BY })
      expect(repaired).toBe(broken.filter(({ of }) => of.remedy === undefined).length)
      for (const { of, about } of broken) await of.remedy?.(site, about)
      await clock.advance(1_000)
      for (const view of await context.ledger.read(broken.flatMap(({ mustEnd }) => mustEnd))) {
        expect([view?.envelope.id, ['completed', 'dead'].includes(view?.status ?? '')]).toEqual([
          view?.envelope.id,
          true,
        ])
        expect((await context.ledger.groups([view!.envelope.groupId]))[0]?.open ?? 0).toBe(0)
      }
      expect(await audit()).toMatchObject({ found: 0, findings: [] })
    })

    it('compares groups of any size', async () => {
      const { clock, site, audit } = scene()
      const later = { delayMs: 3_600_000 }
      await commit(site, [born(envelope('large', site), later)])
      const child = (n: number) => born(envelope(`child-${n}`, site, { groupId: 'large', parent: 'large' }), later)
      for (let from = 0; from < 5_200; from += 400)
        await commit(
          site,
          Array.from({ length: 400 }, (_, n) => child(from + n)),
        )
      await commit(site, [oneTooMany('large')])
      await clock.advance(10)

      expect(await audit()).toMatchObject({ found: 1, isComplete: true, skipped: [] })
      expect(await audit({ repair: BY })).toMatchObject({ found: 1, repaired: 1 })
      expect(await audit()).toMatchObject({ found: 0, skipped: [] })
    })

    it('says that it skipped items that ended long ago, and checks them when it is thorough', async () => {
      const { clock, site, audit } = scene()
      const ids = Array.from({ length: 2_100 }, (_, n) => `e-${n}`)
      await commit(
        site,
        ids.map((id) => born(envelope(id, site), { delayMs: 3_600_000 })),
      )
      await commit(site, [
        oneTooMany('e-0'),
        ...ids.map(
          (id): Settlement => ({
            guard: { by: 'status', id, in: ['pending'] },
            effects: [
              { do: 'complete', id, ending: 'completed', keepMs: 86_400_000 },
              { do: 'leaveGroup', groupId: id, count: 1 },
            ],
          }),
        ),
      ])
      await clock.advance(10)

      const usual = await audit()
      expect(usual).toMatchObject({ found: 0, isComplete: true, skipped: [{ code: 'ended', count: 100 }] })
      expect(usual.skipped[0]?.text).toMatch(/^100 items that ended longer ago: only a thorough audit checks /)
      const thorough = await audit({ thorough: true })
      expect(thorough.findings).toMatchObject([{ code: 'group-count', id: 'e-0' }])
      expect(thorough.skipped).toEqual([])
    })
    if (isBrief) return

    it('compares as many groups as seem wrong', async () => {
      const { clock, site, audit } = scene()
      const ids = Array.from({ length: 210 }, (_, n) => `g-${n}`)
      await commit(site, [
        ...ids.map((id) => born(envelope(id, site), { delayMs: 3_600_000 })),
        ...ids.map((id) => oneTooMany(id)),
      ])
      await clock.advance(10)

      expect(await audit()).toMatchObject({ found: 210, isComplete: true, skipped: [] })
      expect(await audit({ repair: BY })).toMatchObject({ found: 210, repaired: 210 })
      expect(await audit()).toMatchObject({ found: 0, skipped: [] })
    })

    it.each(CORRUPTIONS)('finds $name, and the repair it names works', async ({ code, seed, remedy }) => {
      const { clock, context, site, audit } = scene()
      await clock.advance(1_000)
      const { about, mustEnd } = await seed(site, 'x')
      await clock.advance(90_000)
      await site.pretend({ queues: ['asleep'], types: ['plain'] })

      const found = await audit()
      expect(found.findings.map((finding) => [finding.code, finding.id])).toEqual([[code, about]])
      expect(found).toMatchObject({ found: 1, repaired: 0, isComplete: true })
      expect(found.findings[0]).toMatchObject({ canRepair: remedy === undefined, isRepaired: false })

      const mended = await audit({ repair: BY })
      expect(mended.repaired).toBe(remedy === undefined ? 1 : 0)
      if (remedy !== undefined) await remedy(site, about)
      else {
        const log = await site.actions.log()
        expect(log).toEqual(
          expect.arrayContaining([expect.objectContaining({ ...BY, what: `audit repaired ${code} of ${about}` })]),
        )
      }
      await clock.advance(1_000)
      for (const view of await context.ledger.read(mustEnd)) {
        expect(['completed', 'dead']).toContain(view?.status)
        expect((await context.ledger.groups([view!.envelope.groupId]))[0]?.open ?? 0).toBe(0)
      }
      expect(await audit()).toMatchObject({ found: 0, findings: [] })
    })

    it('finds nothing where all is well', async () => {
      const { clock, w, plain, flaky, audit, site } = scene()
      const first = plain('first')
      const promised = plain('promised')
      await Promise.all([
        w.enqueue(flaky('retried')).accepted(),
        w.enqueue(plain('later'), { delay: 3_600_000 }).accepted(),
        w.enqueue(first, { delay: 3_600_000 }).accepted(),
        w.enqueue(dependency({ on: [first], queue: promised })).accepted(),
        // Waits for the item that the gate above will enqueue: it does not exist yet.
        w.enqueue(dependency({ on: [promised], queue: plain('last') })).accepted(),
        w.enqueue(dependency({ on: ['nobody'], queue: plain('never'), timeout: 7_200_000 })).accepted(),
      ])
      await clock.advance(1_000)
      await site.actions.pause({ type: 'plain' }, BY)
      await w.enqueue(plain('paused')).accepted()
      await clock.advance(70_000)
      const report = await audit()
      expect(report).toMatchObject({ found: 0, findings: [], isComplete: true })
      expect(report.checked).toBe(7)
    })

    it('stops when it is aborted, and says that it is not complete', async () => {
      const { clock, w, plain, audit } = scene()
      await w.enqueue(plain('later'), { delay: 3_600_000 }).accepted()
      await clock.advance(10)
      const stop = new AbortController()
      const report = await audit({ signal: stop.signal, onProgress: () => stop.abort() })
      expect(report).toMatchObject({ checked: 1, isComplete: false })
    })
  })
}
