import { describe, expect, it } from 'vitest'
import type { Reason } from '../../../src/ops/items/explain.js'
import { KINDS, randomSystem } from './random-system.js'

const SEEDS = 100
const PER_TEST = 20
const BY = { who: 'ann', why: 'explain says so' } as const

type System = Awaited<ReturnType<typeof randomSystem>>

/** Where an item stands, so that any step forward shows. */
async function standing({ context }: System, id: string): Promise<string> {
  const [view] = await context.ledger.read([id])
  const runs = await context.ledger.inspect!.attempts(id)
  return JSON.stringify([view?.status, view?.envelope.attempt, view?.hold, view?.ending, runs.length])
}

/** Does what the remedy says, as a person would who has nothing but these words. */
async function follow(system: System, id: string, { code, remedy }: Reason): Promise<void> {
  const { actions, context, reads, deploy, mend } = system
  switch (code) {
    case 'scheduled':
    case 'retrying':
      await actions.runNow(id, BY)
      return
    case 'dead':
      mend()
      await actions.redrive(id, BY)
      return
    case 'paused': {
      const [, what, name] = /Resume the (queue|type) "(.+?)"/.exec(remedy) ?? []
      await actions.resume(what === 'queue' ? { queue: name! } : { type: name! }, BY)
      return
    }
    case 'no-worker':
    case 'unknown-type':
      expect(remedy).toMatch(/Start a process|Start a worker/)
      await deploy()
      return
    case 'gate': {
      const [, member] = /Find out why (.+?) has not ended/.exec(remedy) ?? []
      const [, missing] = /^Enqueue (.+?), or/.exec(remedy) ?? []
      if (member !== undefined) await follow(system, member, (await reads.explain(member))[0])
      else if (missing !== undefined) {
        const item = { v: 1, id: missing, type: 'ok', groupId: missing, input: '"x"', attempt: 1, priority: 0 } as const
        const now = await context.now()
        await context.ledger.commit([
          {
            guard: { by: 'absent', id: missing },
            effects: [
              { do: 'joinGroup', groupId: missing, count: 1 },
              { do: 'enqueue', item: { ...item, queueAt: now, startAt: now }, queue: 'default', delayMs: 0 },
            ],
          },
        ])
      } else throw new Error(`no way out in: ${remedy}`)
      return
    }
    case 'lease-lapsed':
      // "The next look of any worker at the queue".
      await deploy()
      return
    case 'running':
    case 'taken':
    case 'waiting':
      // Wait: here, for the one that runs to be let go.
      mend()
      return
    default:
      throw new Error(`nothing is to be done about ${code}`)
  }
}

describe('in random systems', () => {
  const seen = new Set<string>()

  it.each(Array.from({ length: SEEDS / PER_TEST }, (_, n) => [n * PER_TEST]))(
    `the first reason is the one that was made, and its remedy makes the item continue (seeds from %i, ${PER_TEST} of them)`,
    async (from) => {
      for (let seed = from; seed < from + PER_TEST; seed += 1) {
        const system = await randomSystem(seed)
        const { known, reads, clock, close, random } = system
        for (const { id, kind, code } of known) {
          const [first] = await reads.explain(id)
          expect([seed, kind, first.code, first.text]).toEqual([seed, kind, code, first.text])
          seen.add(kind)
        }
        const open = known.filter(({ code }) => code !== 'completed' && code !== 'cancelled')
        const one = open[Math.floor(random() * open.length)]
        if (one !== undefined) {
          const before = await standing(system, one.id)
          const [first] = await reads.explain(one.id)
          await follow(system, one.id, first)
          await clock.advance(10_000)
          expect([seed, one.kind, await standing(system, one.id)]).not.toEqual([seed, one.kind, before])
        }
        await close()
      }
    },
  )

  it('has seen every kind', () => {
    expect([...seen].toSorted()).toEqual([...KINDS].toSorted())
  })
})
