import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Claimed, Envelope } from '../../src/ports/item.js'
import type { ClaimReply } from '../../src/ports/ledger.js'
import type { CommitResult, Effect, Settlement } from '../../src/ports/settlement.js'
import { LedgerModel } from '../../src/testing/model/ledger-model.js'
import { ask, byLease, contribute, enqueue, gate, item, START } from './settlements.js'
import type { Tracer, TracerStore } from './tracer.js'

/** One settlement, before it is known which items exist: numbers pick among those that do. */
type Move =
  | {
      readonly do: 'enqueue'
      readonly id: number
      readonly group: number
      readonly priority: number
      readonly delay: number
    }
  | {
      readonly do: 'gate'
      readonly members: readonly number[]
      readonly need: number
      readonly of: 'done' | 'success'
      readonly delay: number
    }
  | {
      readonly do: 'settle'
      readonly which: number
      readonly how: 'finish' | 'park' | 'retry'
      readonly children: number
      readonly says: 'nothing' | 'value' | 'final' | 'append' | 'late append'
      readonly opens: readonly number[]
      /** With the token of an earlier lease. */
      readonly stale: boolean
    }
type Step =
  | { readonly do: 'commit'; readonly batch: readonly Move[] }
  | { readonly do: 'claim'; readonly max: number; readonly startNow: number }
  | { readonly do: 'wait'; readonly ms: number }
  /** The last batch again: its reply was lost. */
  | { readonly do: 'repeat' }

const delay = fc.constantFrom(0, 0, 0, 10, 40)
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('enqueue' as const),
      id: fc.nat(9),
      group: fc.nat(3),
      priority: fc.constantFrom(0, 0, 1),
      delay,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('gate' as const),
      members: fc.array(fc.nat(9), { maxLength: 4 }),
      need: fc.nat(4),
      of: fc.constantFrom('done' as const, 'success' as const),
      delay: fc.constantFrom(Infinity, Infinity, 30),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which: fc.nat(20),
      how: fc.constantFrom('finish' as const, 'finish' as const, 'park' as const, 'retry' as const),
      children: fc.constantFrom(0, 0, 1, 2),
      says: fc.constantFrom(
        'nothing' as const,
        'value' as const,
        'final' as const,
        'append' as const,
        'late append' as const,
      ),
      opens: fc.oneof(fc.constant([]), fc.array(fc.nat(9), { minLength: 1, maxLength: 3 })),
      stale: fc.constantFrom(false, false, false, false, true),
    }),
  },
)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('commit' as const), batch: fc.array(move, { minLength: 1, maxLength: 6 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      max: fc.integer({ min: 1, max: 8 }),
      startNow: fc.nat(4),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 10, 50, 120) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('repeat' as const) }) },
)

/** Runs the same steps on the model and on a store, and compares every reply and, at the end, everything that is stored. */
export function describeAgainstModel(name: string, openStore: () => Promise<TracerStore>, numRuns = 1_000): void {
  describe(`the ledger on ${name}, beside the model`, () => {
    let store: TracerStore
    let tracer: Tracer
    let now = START
    let cases = 0

    beforeAll(async () => {
      store = await openStore()
      await store.reset()
      tracer = await store.open(() => now)
    })
    afterAll(async () => {
      await tracer?.close()
      await store?.close()
    })

    it('answers and stores the same, whatever is asked of it', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
          now = START
          const world = new World(`${cases++}`, () => now)
          let last: readonly [Settlement[], Settlement[]] = [[], []]
          for (const each of steps) {
            switch (each.do) {
              case 'wait':
                now += each.ms
                break
              case 'claim': {
                const how = ask(each.max, {
                  from: [{ queue: world.queue, max: each.max }],
                  startNow: each.startNow,
                  leaseMs: 100,
                })
                const expected = world.model.claim(how)
                const actual = await tracer.claim(how)
                expect(actual.items.map(comparable)).toEqual(expected.items.map(comparable))
                expect(withoutItems(actual)).toEqual(withoutItems(expected))
                world.claimed(expected.items, actual.items)
                break
              }
              case 'commit':
              case 'repeat': {
                if (each.do === 'commit') last = world.settlements(each.batch)
                const expected = world.model.commit(last[0])
                const actual = await tracer.commit(last[1])
                expect(world.excused(actual, expected, last[0]).map(sorted)).toEqual(expected.map(sorted))
                break
              }
            }
          }
          const [ids, groups] = [[...world.ids], [...world.groups]]
          expect(await tracer.read(ids)).toEqual(world.model.read(ids))
          expect(await tracer.groups(groups)).toEqual(world.model.groups(groups))
        }),
        { numRuns },
      )
    })
  })
}

/** One case: names of its own, a model of its own, and the leases that both sides gave out. */
class World {
  readonly model: LedgerModel
  readonly queue: string
  readonly ids = new Set<string>()
  readonly groups = new Set<string>()
  readonly #name: string
  readonly #leases: (readonly [model: Claimed, store: Claimed])[] = []
  readonly #current = new Map<string, number>()
  readonly #members = new Map<string, string[]>()
  readonly #settled = new Set<string>()
  readonly #everSettled = new Set<string>()
  #made = 0

  constructor(name: string, now: () => number) {
    this.#name = name
    this.queue = `q${name}`
    this.model = new LedgerModel(now)
  }

  claimed(model: readonly Claimed[], store: readonly Claimed[]): void {
    for (const [i, one] of model.entries()) {
      this.#current.set(one.lease.id, this.#leases.length)
      this.#leases.push([one, store[i]!])
    }
  }

  /** The batch for the model and the batch for the store: they differ in their tokens only. */
  settlements(moves: readonly Move[]): readonly [Settlement[], Settlement[]] {
    this.#settled.clear()
    const both = moves.flatMap((one) => this.#settlement(one))
    return [both.map(([model]) => model), both.map(([, store]) => store)]
  }

  /**
   * A ledger need only remember the last token that settled an item, and then calls an earlier one stale. One that knows
   * better may say so: it was settled, and is repeated.
   */
  excused(
    actual: readonly CommitResult[],
    expected: readonly CommitResult[],
    batch: readonly Settlement[],
  ): CommitResult[] {
    for (const [i, { guard }] of batch.entries())
      if (guard.by === 'lease' && expected[i]?.kind === 'applied') this.#everSettled.add(guard.lease.token)
    return actual.map((result, i) => {
      const { guard } = batch[i]!
      const isKnown = guard.by === 'lease' && this.#everSettled.has(guard.lease.token)
      return isKnown && result.kind === 'repeated' && expected[i]?.kind === 'stale' ? { kind: 'stale' } : result
    })
  }

  #settlement(one: Move): (readonly [Settlement, Settlement])[] {
    switch (one.do) {
      case 'enqueue': {
        const id = this.#id(one.id)
        const groupId = one.group === 0 ? id : `${this.#name}-g${one.group}`
        const envelope = this.#item(id, { groupId, priority: one.priority })
        const settlement = enqueue(envelope, { queue: this.queue, delayMs: one.delay })
        return [[settlement, settlement]]
      }
      case 'gate': {
        const effects = this.#gate(`${this.#name}-h${this.#made++}`, undefined, one)
        const settlement: Settlement = {
          guard: { by: 'absent', id: (effects[0] as { item: Envelope }).item.id },
          effects,
        }
        return [[settlement, settlement]]
      }
      case 'settle': {
        const current = [...this.#current.values()]
        const pick = one.stale
          ? this.#leases[one.which % this.#leases.length]
          : this.#leases[current[one.which % current.length] ?? -1]
        // An engine settles a lease once in a batch; if at all twice, then with the same words.
        if (pick === undefined || this.#settled.has(pick[0].lease.token)) return []
        this.#settled.add(pick[0].lease.token)
        const effects = this.#effects(pick[0], one)
        const both = [byLease(pick[0], effects), byLease(pick[1], effects)] as const
        return one.which % 7 === 6 ? [both, both] : [both]
      }
    }
  }

  #effects(claimed: Claimed, one: Extract<Move, { do: 'settle' }>): Effect[] {
    const { id, groupId, attempt } = claimed.envelope
    if (one.how === 'retry')
      return [{ do: 'retryAt', id, attempt: attempt + 1, delayMs: one.which % 2 === 0 ? 0 : 25, why: 'retry' }]
    const version = this.model.groups([groupId])[0]?.version ?? 0
    const value = `"${this.#made++}"`
    const says: Record<typeof one.says, Effect[]> = {
      nothing: [],
      value: [contribute(groupId, value)],
      final: [contribute(groupId, value, true)],
      append: [contribute(groupId, value, false, version)],
      'late append': [contribute(groupId, value, false, version + 1)],
    }
    const children = Array.from({ length: one.children }, () =>
      this.#item(`${this.#name}-c${this.#made++}`, { groupId, parent: id }),
    )
    const opened =
      one.opens.length === 0
        ? []
        : this.#gate(
            `${this.#name}-h${this.#made++}`,
            groupId,
            { members: one.opens, need: one.which % 4, of: 'success', delay: Infinity },
            id,
          )
    const ok = one.how === 'finish'
    return [
      ok
        ? { do: 'finish', id, ending: 'done', keepMs: 1e9, result: value }
        : { do: 'park', id, ending: 'aborted', class: 'poison', error: 'Error: no', keepMs: 1e9 },
      { do: 'closeGroup', groupId, by: 1 },
      ...(children.length === 0 ? [] : [{ do: 'openGroup', groupId, by: children.length } as const]),
      ...children.map((child): Effect => ({ do: 'push', item: child, queue: this.queue, delayMs: 0 })),
      ...says[one.says],
      ...opened,
      // The ledger knows by itself who waits for the item; told once more, it must not count once more.
      ...[...this.#members].flatMap(([key, members]): Effect[] =>
        members.includes(id) && one.which % 3 === 0 ? [{ do: 'tellGate', key, member: id, ok }] : [],
      ),
    ]
  }

  #gate(
    id: string,
    groupId: string | undefined,
    one: Omit<Extract<Move, { do: 'gate' }>, 'do'>,
    opener?: string,
  ): Effect[] {
    const members = [
      ...one.members.map((n) => this.#id(n)),
      ...(opener === undefined || one.need === 3 ? [] : [opener]),
    ]
    const envelope = this.#item(id, groupId === undefined ? {} : { groupId })
    this.#members.set(`gate ${id}`, members)
    const [held, ...rest] = gate(envelope, members, one.need, one.of) as [Extract<Effect, { do: 'push' }>, ...Effect[]]
    return [{ ...held, queue: this.queue, delayMs: one.delay }, ...rest]
  }

  #item(id: string, over: Partial<Envelope>): Envelope {
    const envelope = item(id, over)
    this.ids.add(id)
    this.groups.add(envelope.groupId)
    return envelope
  }

  #id(n: number): string {
    const id = `${this.#name}-i${n}`
    this.ids.add(id)
    return id
  }
}

function comparable({ lease: { token: _, ...lease }, ...claimed }: Claimed) {
  return { ...claimed, lease }
}

function withoutItems({ items: _, ...reply }: ClaimReply) {
  return reply
}

/** The order of the groups that one settlement closed has no meaning. */
function sorted(result: CommitResult): CommitResult {
  if (result.kind !== 'applied') return result
  return { ...result, closed: result.closed.toSorted((a, b) => (a.groupId < b.groupId ? -1 : 1)) }
}
