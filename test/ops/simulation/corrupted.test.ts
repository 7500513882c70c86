import { describe, expect, it } from 'vitest'
import type { FindingCode } from '../../../src/ops/api.js'
import { CORRUPTIONS, type Site } from '../audit/corruptions.js'
import { randomSystem } from './random-system.js'

const SEEDS = 100
const PER_TEST = 20
const BY = { who: 'ann', why: 'the audit says so' } as const
/** Work of the corruptions is of this type here. */
const TYPE = 'ok'

/** An item that waits because no worker serves it, or because its member was never enqueued, is a finding, too. */
const OWN: Readonly<Record<string, FindingCode>> = {
  'no worker': 'no-worker',
  'unknown type': 'unknown-type',
  'gate over nobody': 'gate-unknown',
  'cut off': 'no-worker',
}

describe('in random systems in which something is broken', () => {
  it.each(Array.from({ length: SEEDS / PER_TEST }, (_, n) => [n * PER_TEST]))(
    `an audit finds just that, and its advice fixes it (seeds from %i, ${PER_TEST} of them)`,
    async (from) => {
      for (let seed = from; seed < from + PER_TEST; seed += 1) {
        const { known, context, actions, clock, audit, random, close } = await randomSystem(seed)
        const site: Site = {
          context,
          actions,
          type: TYPE,
          now: () => clock.now(),
          pretend: async ({ queues, types }) => {
            await context.ledger.extend([], 30_000, { id: 'asleep', host: 'h', version: '0', queues, types })
          },
        }
        const broken: string[] = []
        const remedies: (() => Promise<void>)[] = []
        const mustEnd: string[] = []
        const count = 1 + Math.floor(random() * 4)
        for (let n = 0; n < count; n += 1) {
          const of = CORRUPTIONS[Math.floor(random() * CORRUPTIONS.length)]!
          // One finding covers all unserved items of one queue and type.
          if (of.remedy !== undefined && of.code !== 'gate-cycle' && broken.some((one) => one.startsWith(of.code)))
            continue
          const made = await of.seed(site, `broken-${n}`)
          broken.push(`${of.code} ${made.about}`)
          mustEnd.push(...made.mustEnd)
          if (of.remedy !== undefined) remedies.push(async () => of.remedy!(site, made.about))
        }
        await clock.advance(90_000)
        await site.pretend({ queues: ['asleep'], types: [TYPE] })
        const own = known.flatMap(({ kind, id }) => (OWN[kind] === undefined ? [] : [`${OWN[kind]} ${id}`]))

        const before = (await audit()).findings
        const named = before.map(({ code, id }) => `${code} ${id}`)
        for (const one of broken) expect([seed, named]).toEqual([seed, expect.arrayContaining([one])])
        // Of several that wait in the same queue the oldest is named.
        const strange = named.filter((one) => !broken.includes(one) && !own.includes(one))
        expect([seed, strange]).toEqual([seed, []])

        await audit({ repair: BY })
        for (const remedy of remedies) await remedy()
        await clock.advance(5_000)
        for (const view of await context.ledger.read(mustEnd)) {
          expect([seed, view?.envelope.id, view?.status]).toEqual([
            seed,
            view?.envelope.id,
            expect.stringMatching(/completed|dead/),
          ])
        }
        const after = (await audit()).findings.map(({ code, id }) => `${code} ${id}`)
        expect([seed, after.filter((one) => !own.includes(one))]).toEqual([seed, []])
        await close()
      }
    },
  )
})
