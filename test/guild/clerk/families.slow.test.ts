import fc from 'fast-check'
import { MANDATE, type WritDoc } from 'millrace/guild/clerk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClerkGuild, clerkGuild, onMemory } from '../grounds.js'
import { FamilyModel } from './family-model.js'
import { CHORE, TASK, typesPlugin } from './machines.js'

const TYPES = [MANDATE, CHORE, TASK]

type Deed =
  | { readonly kind: 'post'; readonly type: string; readonly parent: number; readonly draft: boolean }
  | { readonly kind: 'move'; readonly writ: number; readonly step: number }

const index = fc.nat({ max: 30 })
const post = fc.record({
  kind: fc.constant('post' as const),
  // A family of tasks and mandates often cannot end together; they are rarer, so that most families can.
  type: fc.constantFrom('mandate', 'mandate', 'mandate', 'chore', 'chore', 'task'),
  parent: index,
  draft: fc.boolean(),
})
const move = fc.record({ kind: fc.constant('move' as const), writ: index, step: index })
const deeds = fc.array(fc.oneof({ weight: 2, arbitrary: post }, { weight: 3, arbitrary: move }), {
  minLength: 14,
  maxLength: 24,
})

describe('families of any shape', () => {
  let started: ClerkGuild

  beforeAll(async () => {
    started = await clerkGuild(await onMemory.open(), { plugins: [typesPlugin(CHORE, TASK)] })
  })
  afterAll(() => started.g.shutdown())

  it('end as a plain reading of the rules says, and a rejected step changes nothing', async () => {
    const counts = { accepted: 0, rejected: 0, cascades: 0 }
    await fc.assert(
      fc.asyncProperty(deeds, async (list) => {
        const outcome = await play(list)
        counts.accepted += outcome.accepted
        counts.rejected += outcome.rejected
        counts.cascades += outcome.cascades
      }),
      { numRuns: 1000 },
    )
    // Or the property would hold over worlds in which nothing happens.
    expect(counts.cascades).toBeGreaterThan(200)
    expect(counts.rejected).toBeGreaterThan(100)
    expect(counts.accepted).toBeGreaterThan(1000)
  })

  async function play(list: readonly Deed[]): Promise<{ accepted: number; rejected: number; cascades: number }> {
    const { clerk, stacks } = started
    const model = new FamilyModel(TYPES)
    const ids: string[] = []
    const outcome = { accepted: 0, rejected: 0, cascades: 0 }
    for (const [turn, deed] of list.entries()) {
      const before = model.writs.map(({ phase }) => phase)
      let expected: boolean
      let done: Promise<WritDoc>
      if (deed.kind === 'post' || ids.length === 0) {
        const type = deed.kind === 'post' ? deed.type : 'mandate'
        const draft = deed.kind === 'post' && deed.draft
        // One more than there are: the last means no parent.
        const place = deed.kind === 'post' ? deed.parent % (ids.length + 1) : 0
        const parent = place < ids.length ? place : undefined
        expected = model.post(type, parent, draft)
        done = clerk.post({
          title: `${turn}`,
          body: '',
          type,
          draft,
          ...(parent === undefined ? {} : { parentId: ids[parent]! }),
        })
        if (expected) ids.push((await done).id)
      } else {
        // Mostly one that can still move; sometimes one that has ended.
        const living = model.writs.filter((writ) => !clerk.isTerminal(writ)).map(({ key: alive }) => alive)
        const choose = living.length === 0 || deed.step % 7 === 0 ? model.writs.map(({ key: any }) => any) : living
        const key = choose[deed.writ % choose.length]!
        const { type, phase } = model.writs[key]!
        const { states } = TYPES.find(({ name }) => name === type)!
        const { allowedTransitions } = states.find(({ name }) => name === phase)!
        // Mostly a legal step; sometimes one that is not.
        const choices = deed.step % 5 === 0 ? states.map(({ name }) => name) : allowedTransitions
        const to = choices[deed.step % Math.max(1, choices.length)] ?? 'open'
        expected = model.move(key, to, `because ${turn}`)
        done = clerk.transition(ids[key]!, to, { resolution: `because ${turn}` })
      }
      const was = await done.then(
        () => true,
        () => false,
      )
      expect({ turn, accepted: was }).toEqual({ turn, accepted: expected })
      outcome[expected ? 'accepted' : 'rejected'] += 1
      const changed = model.writs.filter(({ key, phase }) => before[key] !== undefined && before[key] !== phase)
      if (changed.length > 1) outcome.cascades += 1
    }
    const found = await Promise.all(ids.map((id) => clerk.show(id)))
    const keyOf = (id: unknown) => (id === undefined ? undefined : ids.indexOf(id as string))
    expect(
      found.map(({ phase, resolution, status }) => ({
        phase,
        resolution,
        trigger: keyOf((status?.['clerk'] as { triggeringChildId?: string } | undefined)?.triggeringChildId),
      })),
    ).toEqual(model.writs.map(({ phase, resolution, trigger }) => ({ phase, resolution, trigger })))
    expect(found.map((writ) => writ.resolvedAt !== undefined)).toEqual(found.map((writ) => clerk.isTerminal(writ)))
    for (const id of ids) await stacks.book<WritDoc>('clerk', 'writs').delete(id)
    return outcome
  }
})
