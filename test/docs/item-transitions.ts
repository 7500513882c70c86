import { memoryBackend } from '../../src/backends/memory/index.js'
import type { Verdict } from '../../src/core/failure/failure.js'
import { findLedger } from '../../src/ports/find-ledger.js'
import type { ClaimedItem, Envelope } from '../../src/ports/item.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { Settlement } from '../../src/ports/settlement.js'
import { type ItemState, itemState } from '../../src/ports/words.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { act, type ItemVerb } from '../../src/work/control/item-actions.js'
import {
  enqueueGateSettlement,
  enqueueHeldSettlement,
  enqueueSettlement,
} from '../../src/work/enqueue/enqueue-settlement.js'
import type { Outcome } from '../../src/work/settle/outcome.js'
import { settle, unrouted } from '../../src/work/settle/settle.js'

const HOUR = 3_600_000
const LEASE = 30_000
const KEEP = { completedMs: 24 * HOUR, deadMs: 30 * 24 * HOUR }
const QUEUE = 'default'
const ID = 'item'
const GATE = 'gate'
const MEMBER = 'member'

/** Where an item stands, or that there is none. */
export type Place = ItemState | 'none'

/** One way from one place to another, and what takes it. */
export interface Transition {
  readonly from: Place
  readonly to: Place
  readonly by: string
}

/** A ledger with at most one item, its time, and the lease of its run. */
class World {
  readonly clock = new FakeClock()
  readonly ledger: Ledger
  held: ClaimedItem | undefined

  constructor() {
    const backend = memoryBackend({ clock: this.clock })
    this.ledger = findLedger(backend, [], { prefix: 'work:' }, () => {
      throw new Error('the memory backend is native')
    }).ledger
  }

  async place(): Promise<Place> {
    const [view] = await this.ledger.read([ID])
    return view === undefined ? 'none' : itemState({ ...view, attempt: view.envelope.attempt }, this.clock.now())
  }

  /** What tells places apart in which an item goes on differently, though they have one word. */
  async detail(): Promise<string> {
    const [view] = await this.ledger.read([ID])
    const paused = await this.ledger.paused?.({ queues: [QUEUE], types: [] })
    const isLapsed = view?.leaseUntil !== undefined && view.leaseUntil <= this.clock.now()
    const isDue = view?.dueAt !== undefined && view.dueAt <= this.clock.now()
    return JSON.stringify([
      await this.place(),
      (view?.envelope.attempt ?? 1) > 1,
      view?.hold?.by,
      view?.dueAt !== undefined,
      isDue,
      isLapsed,
      this.held !== undefined,
      view?.cancelReason,
      paused?.queues.length,
    ])
  }

  async commit(settlement: Settlement): Promise<void> {
    const [result] = await this.ledger.commit([settlement])
    if (result?.kind === 'refused' || result?.kind === 'failed') throw new Error(`${ID}: ${result.kind}`)
  }
}

const envelope = (world: World, over: Partial<Envelope> = {}): Envelope => ({
  id: ID,
  type: 't',
  groupId: 'group',
  input: 'null',
  queueAt: world.clock.now(),
  startAt: world.clock.now(),
  attempt: 1,
  priority: 0,
  retry: { attempts: 2, base: 1_000, factor: 1, max: 1_000, jitter: 0 },
  ...over,
})

/** Something that happens to an item. It does nothing where it does not apply. */
type Move = (world: World) => Promise<void>

const onAbsent =
  (make: (world: World) => Settlement): Move =>
  async (world) => {
    if ((await world.place()) === 'none') await world.commit(make(world))
  }

/** The end of the run that holds the item, as the engine settles it. */
const ends =
  (outcome: Outcome | ((item: ClaimedItem) => Outcome | undefined)): Move =>
  async (world) => {
    const item = world.held
    if (item === undefined) return
    const ended = typeof outcome === 'function' ? outcome(item) : outcome
    if (ended === undefined) return
    const now = world.clock.now()
    const ran = { item, startedAt: now, endedAt: now, worker: 'w', outcome: ended }
    await world.commit(settle(ran, KEEP, now, () => 0).settlement)
    world.held = undefined
  }

const threw = (verdict: Verdict): Outcome => ({ kind: 'threw', error: 'Error: no', fingerprint: 'f', verdict })

const person =
  (action: ItemVerb, delayMs = 0): Move =>
  async (world) => {
    const [view] = await world.ledger.read([ID])
    if (view === undefined) return
    const settlement = act(view, action, { who: 'test', why: 'a test', keep: KEEP, delayMs })
    if (settlement !== undefined) await world.commit(settlement)
  }

const order =
  (what: 'pause' | 'resume'): Move =>
  (world) =>
    world.commit({ guard: { by: 'none' }, effects: [{ do: what, what: 'queue', name: QUEUE }] })

const claim: Move = async (world) => {
  if (await isPaused(world)) return
  await claims(world)
}

const isPaused = async ({ ledger }: World) =>
  (await ledger.paused?.({ queues: [QUEUE], types: [] }))?.queues.length === 1

const claims: Move = async (world) => {
  const queues = [{ queue: QUEUE, max: 1 }]
  const { items } = await world.ledger.claim({ queues, leaseMs: LEASE, worker: 'w' })
  const mine = items.find(({ envelope: { id } }) => id === ID)
  if (mine !== undefined) world.held = mine
}

/** Everything that the engine, people and time can do to an item, by the word that the page uses for it. */
const MOVES: Readonly<Record<string, Move>> = {
  enqueue: onAbsent((world) => enqueueSettlement(envelope(world), QUEUE, world.clock.now())),
  'enqueue with a delay': onAbsent((world) =>
    enqueueSettlement(envelope(world, { startAt: world.clock.now() + HOUR }), QUEUE, world.clock.now()),
  ),
  'enqueue behind a gate': onAbsent((world) =>
    enqueueGateSettlement(
      { item: envelope(world), queue: QUEUE, delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: GATE } },
      { do: 'openGate', key: GATE, heldId: ID, members: [MEMBER], need: 1, of: 'success' },
    ),
  ),
  'enqueue behind a gate with a timeout': onAbsent((world) =>
    enqueueGateSettlement(
      { item: envelope(world), queue: QUEUE, delayMs: HOUR, hold: { by: 'gate', key: GATE } },
      { do: 'openGate', key: GATE, heldId: ID, members: [MEMBER], need: 1, of: 'success' },
    ),
  ),
  'enqueue with skipQueue': onAbsent((world) =>
    enqueueHeldSettlement(envelope(world), QUEUE, { worker: 'w', token: 'born', leaseMs: LEASE }),
  ),
  claim,
  'its gate decides': (world) =>
    world.commit({
      guard: { by: 'none' },
      effects: [{ do: 'notifyGate', key: GATE, member: MEMBER, completed: true }],
    }),
  'its time comes': async (world) => {
    const [view] = await world.ledger.read([ID])
    if (view?.dueAt !== undefined) await world.clock.advance(Math.max(0, view.dueAt - world.clock.now()))
  },
  'its lease runs out': async (world) => {
    const [view] = await world.ledger.read([ID])
    if (view?.leaseUntil === undefined) return
    await world.clock.advance(LEASE + 1)
    world.held = undefined
    // Found by the next claim, even one without room for it.
    await world.ledger.claim({ queues: [{ queue: QUEUE, max: 0 }], leaseMs: LEASE, worker: 'v' })
  },
  pause: order('pause'),
  'claim while paused': async (world) => {
    if (await isPaused(world)) await claims(world)
  },
  resume: order('resume'),
  returned: ends({ kind: 'returned', contributions: [], children: [], gates: [] }),
  'failed, attempts left': ends((item) =>
    item.envelope.attempt < 2 ? threw({ class: 'retryable', rule: 'default' }) : undefined,
  ),
  'failed, no attempts left': ends((item) =>
    item.envelope.attempt < 2 ? undefined : threw({ class: 'retryable', rule: 'default' }),
  ),
  'failed for good': ends(threw({ class: 'poison', rule: 'explicit' })),
  deferred: (world) =>
    ends(threw({ class: 'unclassified', rule: 'deferred', deferTo: world.clock.now() + HOUR }))(world),
  'handed back': ends({ kind: 'interrupted' }),
  'handed back for a while': ends({ kind: 'waiting', delayMs: HOUR }),
  expired: ends({ kind: 'expired' }),
  'cancel, seen by its run': async (world) => {
    if (world.held === undefined) return
    await person('cancel')(world)
    await ends({ kind: 'cancelled', why: 'a test', hasRun: true })(world)
  },
  crashed: ends({ kind: 'crashed', crashes: 3 }),
  unroutable: ends({ kind: 'unroutable', error: 'unknown type' }),
  unknownTypeTimeout: async (world) => {
    const [view] = await world.ledger.read([ID])
    if (view !== undefined && (await world.place()) === 'waiting') {
      await world.commit(unrouted(view.envelope, 'unknown type', KEEP))
    }
  },
  unreadable: ends({ kind: 'unreadable', error: 'no JSON', rule: 'decode' }),
  cancel: person('cancel'),
  redrive: person('redrive'),
  'redrive with a delay': person('redrive', HOUR),
  discard: person('discard'),
  'run now': person('runNow'),
  'its keep is over': async (world) => {
    const [view] = await world.ledger.read([ID])
    if (view?.endAt === undefined) return
    await world.clock.advance(KEEP.deadMs + HOUR)
    await claims(world)
  },
}

/**
 * Every transition that is possible: from nothing on, each move is tried in each place that was reached, on a ledger of its
 * own, by the very functions that the engine settles and acts with.
 */
export async function itemTransitions(): Promise<readonly Transition[]> {
  const found = new Map<string, Transition>()
  const seen = new Set<string>()
  let paths: readonly (readonly string[])[] = [[]]
  while (paths.length > 0) {
    const further: (readonly string[])[] = []
    for (const path of paths) {
      for (const by of Object.keys(MOVES)) {
        const world = new World()
        for (const step of path) await MOVES[step]?.(world)
        const [from, before] = [await world.place(), await world.detail()]
        await MOVES[by]?.(world)
        const [to, after] = [await world.place(), await world.detail()]
        if (from !== to) found.set(`${from} ${to} ${by}`, { from, to, by })
        if (before !== after && !seen.has(after)) {
          seen.add(after)
          further.push([...path, by])
        }
      }
    }
    paths = further
  }
  return [...found.values()]
}

/** By which move each outcome and each act is tried. A new one does not compile until it has its line here. */
export const WAYS: Readonly<Record<Outcome['kind'] | ItemVerb, readonly string[]>> = {
  returned: ['returned'],
  threw: ['failed, attempts left', 'failed, no attempts left', 'failed for good', 'deferred'],
  waiting: ['handed back for a while'],
  interrupted: ['handed back'],
  expired: ['expired'],
  cancelled: ['cancel, seen by its run'],
  crashed: ['crashed'],
  unroutable: ['unroutable'],
  unreadable: ['unreadable'],
  cancel: ['cancel'],
  redrive: ['redrive', 'redrive with a delay'],
  discard: ['discard'],
  runNow: ['run now'],
}
