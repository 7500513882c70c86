import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ClaimedItem } from '../../../src/ports/item.js'
import type { CommitResult, Effect, Settlement } from '../../../src/ports/settlement.js'
import { LedgerModel } from '../../model/ledger-model.js'
import { byLease, DAY, item, setGroupValue } from './settlements.js'
import { through, type World, world } from './world.js'

const LEASE_MS = 10_000
const NAMES = ['a', 'b', 'c', 'd', 'e'] as const
const GROUPS = ['g', 'h'] as const

/** One step of a story: which item, and how. Steps that make no sense at that moment are left out. */
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('enqueue' as const),
      name: fc.nat(4),
      group: fc.nat(1),
      delay: fc.constantFrom(0, 0, 500, 20_000),
      priority: fc.nat(2),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('claim' as const), start: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      held: fc.nat(7),
      value: fc.constantFrom('none', 'over', 'final', 'append'),
      kids: fc.nat(2),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deadLetter' as const), held: fc.nat(7) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('retry' as const),
      held: fc.nat(7),
      delay: fc.constantFrom(0, 700, 15_000),
      defer: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('release' as const),
      held: fc.nat(7),
      delay: fc.constantFrom(undefined, 300),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), name: fc.nat(4) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('gate' as const),
      need: fc.nat(3),
      of: fc.constantFrom('done' as const, 'success' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('repeat' as const), of: fc.nat(7) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(300, 1000, 11_000) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** A lease of the same item in both worlds. */
interface Pair {
  readonly plain: ClaimedItem
  readonly model: ClaimedItem
}

class Story {
  readonly made: World
  readonly model: LedgerModel
  readonly known = new Set<string>()
  readonly groups = new Set<string>()
  /** Every lease there ever was: old ones settle too, and must be refused alike. */
  readonly leases: Pair[] = []
  readonly said: (readonly [Settlement, Settlement])[] = []
  #values = 0

  readonly #canDedupe: boolean

  constructor(made: World, canDedupe: boolean) {
    this.made = made
    this.#canDedupe = canDedupe
    this.model = new LedgerModel(() => made.clock.now())
  }

  async take(one: Step): Promise<void> {
    switch (one.do) {
      case 'enqueue':
        return this.#enqueue(NAMES[one.name]!, this.#openGroup(GROUPS[one.group]!), one.delay, one.priority)
      case 'claim':
        return this.#claim(one.start)
      case 'finish':
        return this.#settle(one.held, (held) => this.#complete(held, one.value, one.kids))
      case 'deadLetter':
        return this.#settle(one.held, async (held) => this.#deadLetter(held, 'exhausted'))
      case 'retry':
        return this.#settle(one.held, async ({ plain: { lease, envelope } }) => {
          const [attempt, why] = one.defer
            ? ([envelope.attempt, 'deferred'] as const)
            : ([envelope.attempt + 1, 'retry'] as const)
          return both([{ do: 'retry', id: lease.id, attempt, delayMs: one.delay, reason: why }])
        })
      case 'release':
        return this.#settle(one.held, async ({ plain: { lease } }) => {
          // A gate item has a second copy, for safety: a put-back of one does not hide the other.
          const delayMs = lease.id.startsWith('gate') ? undefined : one.delay
          return both([{ do: 'release', id: lease.id, ...(delayMs === undefined ? {} : { delayMs }) }])
        })
      case 'cancel':
        return this.#cancel(NAMES[one.name]!)
      case 'gate':
        return this.#gate(one.need, one.of)
      case 'repeat': {
        const again = this.said[one.of % Math.max(1, this.said.length)]
        // A queue that cannot distinguish copies gets a second one, which is dropped after the first has run, or runs first.
        if (again === undefined || (again[0].guard.by === 'absent' && !this.#canDedupe)) return
        return this.#commit(...again)
      }
      case 'wait':
        return this.made.clock.advance(one.ms)
    }
  }

  /** A group that has closed is over: the next enqueue begins a new one. */
  #openGroup(name: string): string {
    for (let life = 0; ; life += 1) {
      const [group] = this.model.groups([`${name}${life}`])
      if (group === undefined || group.open > 0) return `${name}${life}`
    }
  }

  async #enqueue(id: string, groupId: string, delayMs: number, priority: number): Promise<void> {
    if (this.known.has(id) && !this.#canDedupe) return
    const now = this.made.clock.now()
    const envelope = item(id, { groupId, queueAt: now, startAt: now + delayMs, priority })
    this.known.add(id)
    this.groups.add(groupId)
    const settlement: Settlement = {
      guard: { by: 'absent', id },
      effects: [
        { do: 'joinGroup', groupId, count: 1 },
        { do: 'enqueue', item: envelope, queue: 'default', delayMs },
      ],
    }
    await this.#commit(settlement, settlement)
  }

  async #claim(start: boolean): Promise<void> {
    const ask = { queues: [{ queue: 'default', max: 50 }], leaseMs: LEASE_MS, worker: 'w' }
    const mine = await this.made.ledger.claim(ask)
    if (start) await this.made.ledger.markStarted?.(mine.items.map(({ lease }) => lease))
    const theirs = this.model.claim(ask)
    if (start)
      this.model.extend(
        theirs.items.map(({ lease }) => ({ lease, running: true })),
        LEASE_MS,
        { id: 'w', host: 'h', version: '1', types: [], queues: [] },
      )
    const seen = (items: readonly ClaimedItem[]) =>
      items
        .map(({ envelope: { id, attempt, groupId, priority }, crashes, gate }) => ({
          id,
          attempt,
          groupId,
          priority,
          crashes,
          gate,
        }))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    expect(seen(mine.items)).toEqual(seen(theirs.items))
    for (const plain of mine.items)
      this.leases.push({ plain, model: theirs.items.find(({ lease }) => lease.id === plain.lease.id)! })
  }

  async #settle(
    which: number,
    effects: (held: Pair) => Promise<readonly [readonly Effect[], readonly Effect[]]>,
  ): Promise<void> {
    // The newest leases first: old ones are mostly stale, and are tried too.
    const held = this.leases.at(-1 - (which % Math.max(1, this.leases.length)))
    if (held === undefined) return
    const [mine, theirs] = await effects(held)
    await this.#commit(byLease(held.plain.lease, mine), byLease(held.model.lease, theirs))
  }

  async #complete(held: Pair, value: string, kids: number): Promise<readonly [readonly Effect[], readonly Effect[]]> {
    const { id, groupId } = held.plain.envelope
    const names = Array.from({ length: kids }, (_, i) => `${id}.${i}`).filter((name) => name.length < 6)
    for (const name of names) this.known.add(name)
    const pushes = names.map((name): Effect => {
      const now = this.made.clock.now()
      return {
        do: 'enqueue',
        item: item(name, { groupId, parent: id, queueAt: now, startAt: now }),
        queue: 'default',
        delayMs: 0,
      }
    })
    const opened: readonly Effect[] =
      names.length === 0 ? [] : [{ do: 'joinGroup', groupId, count: names.length }, ...pushes]
    const end: readonly Effect[] = [
      { do: 'complete', id, ending: 'completed', result: `"${id}"`, keepMs: DAY },
      { do: 'leaveGroup', groupId, count: 1 },
    ]
    this.#values += 1
    const [mine] = await this.made.ledger.groups([groupId])
    const [theirs] = this.model.groups([groupId])
    const contribution = (version: number | undefined): readonly Effect[] => {
      if (value === 'none' || (value === 'append' && mine?.final)) return []
      const text = String(this.#values)
      if (value === 'append') return [setGroupValue(groupId, text, { ifVersion: version ?? 0 })]
      return [setGroupValue(groupId, text, { final: value === 'final' })]
    }
    return [
      [...opened, ...contribution(mine?.version), ...end],
      [...opened, ...contribution(theirs?.version), ...end],
    ]
  }

  #deadLetter({ plain }: Pair, ending: 'exhausted'): readonly [readonly Effect[], readonly Effect[]] {
    const { id, groupId } = plain.envelope
    return both([
      { do: 'deadLetter', id, ending, class: 'retryable', error: `Error: ${id}`, keepMs: DAY },
      { do: 'leaveGroup', groupId, count: 1 },
    ])
  }

  async #cancel(id: string): Promise<void> {
    const groupId = this.model.rows.get(id)?.envelope.groupId ?? 'g'
    const settlement: Settlement = {
      guard: { by: 'status', id, in: ['pending'] },
      effects: [
        { do: 'deadLetter', id, ending: 'cancelled', class: 'unclassified', error: 'no', keepMs: DAY },
        { do: 'leaveGroup', groupId, count: 1 },
      ],
    }
    // The one status that a plain store learns only with the start: claimed and not begun still reads pending there.
    if (this.model.rows.get(id)?.lease?.running === false) return
    await this.#commit(settlement, settlement)
  }

  async #gate(need: number, of: 'done' | 'success'): Promise<void> {
    const members = [...this.known].filter((name) => !name.startsWith('gate')).slice(0, 3)
    const id = `gate${[...this.known].filter((name) => name.startsWith('gate')).length}`
    const groupId = this.#openGroup('g')
    this.known.add(id)
    this.groups.add(groupId)
    const now = this.made.clock.now()
    const hold = { by: 'gate', key: id } as const
    const settlement: Settlement = {
      guard: { by: 'absent', id },
      effects: [
        { do: 'joinGroup', groupId, count: 1 },
        {
          do: 'enqueue',
          item: item(id, { groupId, queueAt: now, startAt: now }),
          queue: 'default',
          delayMs: Infinity,
          hold,
        },
        { do: 'openGate', key: id, heldId: id, members, need, of },
      ],
    }
    await this.#commit(settlement, settlement)
  }

  async #commit(mine: Settlement, theirs: Settlement): Promise<void> {
    const [expected] = this.model.commit([theirs])
    const found = await through(this.made, this.made.commit(mine))
    expect(shown(found)).toEqual(shown(expected!))
    if (found.kind === 'applied') this.said.push([mine, theirs])
  }

  /** Both worlds look the same from outside. */
  async compare(): Promise<void> {
    const names = [...this.known]
    const views = await this.made.ledger.read(names)
    const rows = this.model.read(names)
    const seen = (all: typeof views) =>
      all.map((view, i) => {
        // Claimed and not begun: a plain store knows only of the start.
        const row = this.model.rows.get(names[i]!)
        const status = view?.status === 'running' && row?.lease?.running === false ? 'pending' : view?.status
        return { id: names[i], status, ending: view?.ending, result: view?.result, error: view?.error }
      })
    expect(seen(views)).toEqual(seen(rows))
    const groups = [...this.groups]
    const counts = (all: readonly ({ open: number; value?: string; final: boolean } | undefined)[]) =>
      all.map((group) => ({ open: group?.open, value: group?.value, final: group?.final }))
    expect(counts(await this.made.ledger.groups(groups))).toEqual(counts(this.model.groups(groups)))
  }
}

const both = (effects: readonly Effect[]) => [effects, effects] as const

function shown(result: CommitResult): unknown {
  switch (result.kind) {
    case 'applied':
      return { kind: 'applied', closed: result.closed.map(({ groupId, value }) => ({ groupId, value })) }
    // A lease that settled long ago may be remembered or not: nothing happens either way.
    case 'repeated':
    case 'stale':
      return 'nothing happened'
    case 'conflict':
      return { kind: 'conflict', value: result.now.value }
    default:
      return result
  }
}

describe('any story of enqueues, claims, settlements, repetitions, cancels, gates and lapses', () => {
  it('goes the same way on plain ports, whatever they can do, as in the model', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 30 }),
        fc.constantFrom('all', 'documented', 'minimal'),
        async (steps, powers) => {
          const story = new Story(world(powers as 'all'), powers !== 'minimal')
          for (const one of steps) {
            await story.take(one)
            await story.compare()
          }
        },
      ),
      { numRuns: 1000 },
    )
  })
})
