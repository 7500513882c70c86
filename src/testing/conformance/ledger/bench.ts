import assert from 'node:assert/strict'
import type { At, Ms } from '../../../core/time/time.js'
import type { Inspect, ItemView } from '../../../ports/inspect.js'
import type { ClaimedItem, Envelope, ItemStatus, Lease } from '../../../ports/item.js'
import type { Ledger, Room, WorkerRecord } from '../../../ports/ledger.js'
import type { CommitResult, Effect, EffectOf, Settlement } from '../../../ports/settlement.js'
import { present, same, show } from '../check.js'
import type { Fate } from '../mortal.js'
import type { TestTime } from '../time.js'
import { inTime, type LedgerUnderTest, type MortalLedger, missing } from './under-test.js'

export type How = Partial<Pick<EffectOf<'enqueue'>, 'queue' | 'delayMs' | 'hold' | 'leasedTo'>>

export interface Ask {
  readonly queues?: readonly { readonly queue: string; readonly max: number }[]
  readonly max?: number
  readonly leaseTicks?: number
  readonly worker?: string
  readonly rooms?: readonly Room[]
  /**
   * Whether the handlers of the claimed items start immediately. True: `markStarted`, where there is one, and a first heartbeat
   * say so; false: they wait. Default: only `markStarted`, since that is what makes an item `running` over plain ports.
   */
  readonly runs?: boolean
  readonly ledger?: Ledger
}

/** What a clause on a ledger gets: an empty ledger, its time, and helpers that enqueue, claim and read. */
export class LedgerBench {
  readonly ledger: Ledger
  readonly time: TestTime
  readonly queue: string
  /** A new and empty world, for clauses that try many. */
  readonly fresh: () => Promise<LedgerBench>
  readonly #subject: LedgerUnderTest

  constructor(subject: LedgerUnderTest, time: TestTime, fresh: () => Promise<LedgerBench>) {
    this.ledger = inTime(subject.ledger, time)
    this.time = time
    this.queue = subject.queue
    this.fresh = fresh
    this.#subject = subject
  }

  get inspect(): Inspect {
    return present(this.ledger.inspect, '`inspect` of the ledger')
  }

  /** The ledger of another process on the same data. */
  async again(): Promise<Ledger> {
    const { again } = this.#subject
    return again === undefined ? this.ledger : inTime(await again(), this.time)
  }

  /** A second queue of the same ledger. */
  other(): string {
    return this.#subject.other ?? missing('other', 'named queues')
  }

  /** Puts a body on the queue as a foreign program would. */
  async pushRaw(body: string): Promise<void> {
    await (this.#subject.pushRaw ?? missing('pushRaw', 'foreign bodies'))(body)
  }

  /** A ledger of another process that dies, or one of whose calls fails. */
  async mortal(fate: Fate): Promise<MortalLedger> {
    const mortal = await (this.#subject.mortal ?? missing('mortal', 'crash points'))(fate)
    return { ...mortal, ledger: inTime(mortal.ledger, this.time) }
  }

  /** An item as the engine would make it, with what a clause wants different. */
  item(id: string, over: Partial<Envelope> = {}): Envelope {
    const now = this.time.clock.now()
    const groupId = `g-${id}`
    return { id, type: 't', groupId, input: 'null', queueAt: now, startAt: now, attempt: 1, priority: 0, ...over }
  }

  /** The effect that enqueues an item, given by its id or whole. */
  enqueueEffect(what: string | Envelope, over: Partial<Envelope> = {}, how: How = {}): Effect {
    const envelope = typeof what === 'string' ? this.item(what, over) : { ...what, ...over }
    return { do: 'enqueue', item: envelope, queue: this.queue, delayMs: 0, ...how }
  }

  /** An enqueue: the item and its place in its group, unless it is there already. */
  enqueue(
    what: string | Envelope,
    over: Partial<Envelope> = {},
    how: How = {},
    more: readonly Effect[] = [],
  ): Settlement {
    const envelope = typeof what === 'string' ? this.item(what, over) : { ...what, ...over }
    const { id, groupId } = envelope
    return {
      guard: { by: 'absent', id },
      effects: [{ do: 'joinGroup', groupId, count: 1 }, this.enqueueEffect(envelope, {}, how), ...more],
    }
  }

  /** Enqueues one item for each name. */
  async enqueueItems(names: readonly string[], over: Partial<Envelope> = {}, how: How = {}): Promise<void> {
    const batch = names.map((id) => this.enqueue(id, over, how))
    await this.apply(`the enqueue of ${names.join(', ')}`, batch)
  }

  /** Enqueues one item for each name and claims them all, in the order of their names. */
  async enqueueAndTake<const Names extends readonly string[]>(
    names: Names,
    over: Partial<Envelope> = {},
    ask: Ask = {},
  ): Promise<{ readonly [K in keyof Names]: ClaimedItem }> {
    await this.enqueueItems(names, over)
    return this.take(names, ask)
  }

  /** Commits a batch all of which must be applied; returns the groups that it closed. */
  async apply(what: string, batch: readonly Settlement[], ledger: Ledger = this.ledger) {
    const results = await ledger.commit(batch)
    same(results.length, batch.length, `the number of results of ${what}`)
    return results.flatMap((result, i) => {
      const which = `${what}: settlement ${i + 1} of ${batch.length}`
      if (result.kind !== 'applied')
        throw new assert.AssertionError({ message: `${which} is ${show(result)}, not applied` })
      return result.closed.map(({ groupId, value }) => ({ groupId, ...(value === undefined ? {} : { value }) }))
    })
  }

  async claim(ask: Ask = {}) {
    const { max = 10, leaseTicks = 30, worker: id = 'w1', rooms, ledger = this.ledger } = ask
    const queues = ask.queues ?? [{ queue: this.queue, max }]
    const leaseMs = this.time.ms(leaseTicks)
    const reply = await ledger.claim({ queues, leaseMs, worker: id, ...(rooms && { rooms }) })
    const leases = reply.items.map(({ lease }) => lease)
    if (ask.runs === false || leases.length === 0) return reply
    await ledger.markStarted?.(leases)
    if (ask.runs === undefined) return reply
    const running = leases.map((lease) => ({ lease, running: true }))
    await ledger.extend(running, leaseMs, worker(id))
    return reply
  }

  /** Claims exactly the items named, whatever their order, and returns them in the order of their names. */
  async take<const Names extends readonly string[]>(
    names: Names,
    ask: Ask = {},
  ): Promise<{ readonly [K in keyof Names]: ClaimedItem }> {
    const { items } = await this.claim({ max: names.length + 1, ...ask })
    same(ids(items).toSorted(), [...names].toSorted(), 'the items claimed')
    // There is one claimed item for each name: the line above has checked it.
    return names.map((name) => items.find((claimed) => claimed.envelope.id === name)) as never
  }

  async nothingToClaim(when: string, ask: Ask = {}): Promise<void> {
    const { items } = await this.claim(ask)
    same(ids(items), [], `items claimable ${when}`)
  }

  async view(id: string): Promise<ItemView> {
    const [found] = await this.ledger.read([id])
    return present(found, `the item ${id}, read back`)
  }

  async openCount(groupId: string): Promise<number | undefined> {
    return (await this.ledger.groups([groupId]))[0]?.open
  }

  /** A gate, and the item it holds. */
  gated(
    id: string,
    members: readonly string[],
    how: Partial<Pick<EffectOf<'openGate'>, 'need' | 'of'>> & { readonly delayMs?: Ms; readonly groupId?: string } = {},
  ): Settlement {
    const { need = members.length, of = 'success', delayMs = Infinity, groupId = `g-${id}` } = how
    const key = `gate of ${id}`
    return this.enqueue(id, { groupId }, { delayMs, hold: { by: 'gate', key } }, [
      { do: 'openGate', key, heldId: id, members, need, of },
    ])
  }
}

export const DAY: Ms = 86_400_000

export const worker = (id = 'w1'): WorkerRecord => ({
  id,
  host: 'host',
  version: '1',
  types: ['t'],
  queues: ['default'],
})

export const byLease = (lease: Lease, effects: readonly Effect[]): Settlement => ({
  guard: { by: 'lease', lease },
  effects,
})

/** The completion of the item, and the end of its place in its group. */
export function complete(
  claimed: ClaimedItem,
  result?: string,
  more: readonly Effect[] = [],
  keepMs: Ms = DAY,
): Settlement {
  const { id, groupId } = claimed.envelope
  return byLease(claimed.lease, [
    ...more,
    { do: 'complete', id, ending: 'completed', keepMs, ...(result === undefined ? {} : { result }) },
    { do: 'leaveGroup', groupId, count: 1 },
  ])
}

export function deadLetter(
  claimed: ClaimedItem,
  error = 'Error: boom',
  more: readonly Effect[] = [],
  keepMs: Ms = DAY,
  of: EffectOf<'deadLetter'>['class'] = 'retryable',
): Settlement {
  const { id, groupId } = claimed.envelope
  return byLease(claimed.lease, [
    ...more,
    { do: 'deadLetter', id, ending: 'exhausted', class: of, error, keepMs },
    { do: 'leaveGroup', groupId, count: 1 },
  ])
}

export function retry(claimed: ClaimedItem, delayMs: Ms, why: 'retry' | 'deferred' = 'retry'): Settlement {
  const { id, attempt } = claimed.envelope
  return byLease(claimed.lease, [
    { do: 'retry', id, attempt: why === 'retry' ? attempt + 1 : attempt, delayMs, reason: why },
  ])
}

export const release = (claimed: ClaimedItem, delayMs?: Ms): Settlement =>
  byLease(claimed.lease, [{ do: 'release', id: claimed.lease.id, ...(delayMs === undefined ? {} : { delayMs }) }])

export const byStatus = (id: string, status: ItemStatus, effects: readonly Effect[]): Settlement => ({
  guard: { by: 'status', id, in: [status] },
  effects,
})

export const redrive = (id: string, groupId = `g-${id}`, delayMs: Ms = 0): Settlement =>
  byStatus(id, 'dead', [
    { do: 'joinGroup', groupId, count: 1 },
    { do: 'redrive', id, delayMs },
  ])

/** What "run it now" and a repair commit. */
export const releaseNow = (id: string, status: ItemStatus = 'pending'): Settlement =>
  byStatus(id, status, [{ do: 'release', id, delayMs: 0 }])

export const cancelled = (id: string, error = 'cancelled'): Effect => ({
  do: 'deadLetter',
  id,
  ending: 'cancelled',
  class: 'unclassified',
  error,
  keepMs: DAY,
})

export const control = (what: 'pause' | 'resume', kind: 'queue' | 'type', name: string): Settlement => ({
  guard: { by: 'none' },
  effects: [{ do: what, what: kind, name }],
})

/** Commits one settlement and returns what became of it. */
export async function commitOne(ledger: Ledger, settlement: Settlement): Promise<CommitResult> {
  const results = await ledger.commit([settlement])
  same(results.length, 1, 'the number of results for a batch of one')
  return present(results[0], 'the result of the settlement')
}

export const kinds = (results: readonly CommitResult[]) => results.map((result) => result.kind)

export const ids = (items: readonly ClaimedItem[]) => items.map((claimed) => claimed.envelope.id)

/** Collects the notifications of an inbox. */
export function listen(ledger: Ledger, inbox: string) {
  const heard = { ids: [] as string[], groups: [] as string[] }
  const leave = ledger.onInbox(inbox, (what) => {
    heard.ids.push(...what.itemIds)
    heard.groups.push(...what.groupIds)
  })
  return { heard, leave }
}

/** Collects the wake-ups of a ledger. */
export function wakeUps(ledger: Ledger) {
  const heard: { readonly queue: string; readonly dueAt: At | undefined }[] = []
  const leave = ledger.onReady((queue, dueAt) => void heard.push({ queue, dueAt }))
  return { heard, leave }
}

export const notifyGate = (gateItem: string, member: string, ok = true): Effect => ({
  do: 'notifyGate',
  key: `gate of ${gateItem}`,
  member,
  completed: ok,
})

export const setGroupValue = (groupId: string, value: string, final = false): Effect => ({
  do: 'setGroupValue',
  groupId,
  value,
  final,
})
