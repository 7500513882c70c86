import type { At, Ms } from '../../../core/time.js'
import type { Claimed, Envelope, Hold, Lease } from '../../../ports/item.js'
import type { ItemView, Ledger, Room, Worker } from '../../../ports/ledger.js'
import type { CommitResult, Effect, Settlement } from '../../../ports/settlement.js'
import { holds, present, same, show } from '../check.js'
import type { Fate } from '../mortal.js'
import type { TestTime } from '../time.js'

/** A ledger in a process that comes to grief at a given call of its ports. */
export interface MortalLedger {
  readonly ledger: Ledger
  readonly hasMet: () => boolean
  readonly death: Promise<void>
}

/** What a clause on a ledger gets: an empty ledger, its time, and what the suite was given beside it. */
export interface LedgerBench {
  readonly ledger: Ledger
  readonly time: TestTime
  readonly queue: string
  /** The ledger of another process on the same data. */
  again(): Promise<Ledger>
  /** A second queue of the same ledger. */
  other(): string
  /** Puts a body on the queue as a foreign program would. */
  pushRaw(body: string): Promise<void>
  /** A ledger of another process that dies, or one of whose calls fails. */
  mortal(fate: Fate): Promise<MortalLedger>
  /** A new and empty world, for clauses that try many. */
  fresh(): Promise<LedgerBench>
}

export const DAY: Ms = 86_400_000

export const worker = (id = 'w1'): Worker => ({ id, host: 'host', version: '1', types: ['t'], queues: ['default'] })

/** An item as the engine would make it, with what a clause wants different. */
export function item(bench: LedgerBench, id: string, over: Partial<Envelope> = {}): Envelope {
  const now = bench.time.clock.now()
  return {
    id,
    type: 't',
    groupId: `g-${id}`,
    input: 'null',
    queueAt: now,
    startAt: now,
    attempt: 1,
    priority: 0,
    ...over,
  }
}

export interface How {
  readonly queue?: string
  readonly delayMs?: Ms
  readonly hold?: Hold
  readonly heldBy?: { readonly worker: string; readonly token: string; readonly leaseMs: Ms }
}

export function push(bench: LedgerBench, envelope: Envelope, how: How = {}): Effect {
  const { queue = bench.queue, delayMs = 0, hold, heldBy } = how
  return { do: 'push', item: envelope, queue, delayMs, ...(hold && { hold }), ...(heldBy && { heldBy }) }
}

/** An enqueue: the item and its place in its group, unless it is there already. */
export function enqueue(
  bench: LedgerBench,
  envelope: Envelope,
  how: How = {},
  more: readonly Effect[] = [],
): Settlement {
  return {
    guard: { by: 'absent', id: envelope.id },
    effects: [{ do: 'openGroup', groupId: envelope.groupId, by: 1 }, push(bench, envelope, how), ...more],
  }
}

export const byLease = (lease: Lease, effects: readonly Effect[]): Settlement => ({
  guard: { by: 'lease', lease },
  effects,
})

/** A success: the end of the item, then of its place in its group. */
export function finish(claimed: Claimed, result?: string, more: readonly Effect[] = [], keepMs: Ms = DAY): Settlement {
  const { id, groupId } = claimed.envelope
  return byLease(claimed.lease, [
    ...more,
    { do: 'finish', id, ending: 'done', keepMs, ...(result === undefined ? {} : { result }) },
    { do: 'closeGroup', groupId, by: 1 },
  ])
}

export function park(
  claimed: Claimed,
  error = 'Error: boom',
  more: readonly Effect[] = [],
  keepMs: Ms = DAY,
): Settlement {
  const { id, groupId } = claimed.envelope
  return byLease(claimed.lease, [
    ...more,
    { do: 'park', id, ending: 'exhausted', class: 'retryable', error, keepMs },
    { do: 'closeGroup', groupId, by: 1 },
  ])
}

export function retry(claimed: Claimed, delayMs: Ms, why: 'retry' | 'deferred' = 'retry'): Settlement {
  const { id, attempt } = claimed.envelope
  return byLease(claimed.lease, [{ do: 'retryAt', id, attempt: why === 'retry' ? attempt + 1 : attempt, delayMs, why }])
}

export const release = (claimed: Claimed, delayMs?: Ms): Settlement =>
  byLease(claimed.lease, [{ do: 'release', id: claimed.lease.id, ...(delayMs === undefined ? {} : { delayMs }) }])

/** Commits one settlement and returns what became of it. */
export async function commitOne(ledger: Ledger, settlement: Settlement): Promise<CommitResult> {
  const results = await ledger.commit([settlement])
  same(results.length, 1, 'the number of results for a batch of one')
  return present(results[0], 'the result of the settlement')
}

/** Commits a batch all of which must be applied; returns the groups that it closed. */
export async function applied(ledger: Ledger, batch: readonly Settlement[], what: string) {
  const results = await ledger.commit(batch)
  same(results.length, batch.length, `the number of results of ${what}`)
  for (const [i, result] of results.entries())
    holds(
      result.kind === 'applied',
      `${what}: settlement ${i + 1} of ${batch.length} is applied (it is ${show(result)})`,
    )
  return results
    .flatMap((result) => (result.kind === 'applied' ? result.closed : []))
    .map(({ groupId, value }) => ({ groupId, ...(value === undefined ? {} : { value }) }))
}

export const kinds = (results: readonly CommitResult[]) => results.map((result) => result.kind)

export interface Ask {
  readonly from?: readonly { readonly queue: string; readonly max: number }[]
  readonly max?: number
  readonly leaseTicks?: number
  readonly worker?: string
  readonly rooms?: readonly Room[]
  /**
   * Whether the handlers of what is claimed begin at once. True: told by `begin` where there is one, and by a first heartbeat;
   * false: they wait. Default: told by `begin` alone, since it is what makes an item `running` over plain ports.
   */
  readonly runs?: boolean
  readonly ledger?: Ledger
}

export async function claim(bench: LedgerBench, ask: Ask = {}) {
  const { max = 10, leaseTicks = 30, worker: id = 'w1', rooms, ledger = bench.ledger } = ask
  const from = ask.from ?? [{ queue: bench.queue, max }]
  const leaseMs = bench.time.ms(leaseTicks)
  const reply = await ledger.claim({ from, leaseMs, worker: id, ...(rooms === undefined ? {} : { rooms }) })
  const leases = reply.items.map(({ lease }) => lease)
  if (ask.runs === false || leases.length === 0) return reply
  await ledger.begin?.(leases)
  if (ask.runs === undefined) return reply
  await ledger.extend(
    leases.map((lease) => ({ lease, running: true })),
    leaseMs,
    worker(id),
  )
  return reply
}

export const ids = (items: readonly Claimed[]) => items.map((claimed) => claimed.envelope.id)

/** Claims exactly the items named, whatever their order, and returns them in the order of their names. */
export async function take<const Names extends readonly string[]>(
  bench: LedgerBench,
  names: Names,
  ask: Ask = {},
): Promise<{ readonly [K in keyof Names]: Claimed }> {
  const { items } = await claim(bench, { max: names.length + 1, ...ask })
  same(ids(items).toSorted(), [...names].toSorted(), 'the items claimed')
  // One claimed item stands for each name: the line above has checked it.
  return names.map((name) => items.find((claimed) => claimed.envelope.id === name)) as never
}

export async function nothingToClaim(bench: LedgerBench, when: string, ask: Ask = {}): Promise<void> {
  const { items } = await claim(bench, ask)
  same(ids(items), [], `items claimable ${when}`)
}

export async function view(bench: LedgerBench, id: string): Promise<ItemView> {
  const [found] = await bench.ledger.read([id])
  return present(found, `the item ${id}, read back`)
}

export async function openCount(bench: LedgerBench, groupId: string): Promise<number | undefined> {
  return (await bench.ledger.groups([groupId]))[0]?.open
}

/** What an inbox hears, collected. */
export function listen(ledger: Ledger, inbox: string) {
  const heard = { ids: [] as string[], groups: [] as string[] }
  const leave = ledger.onInbox(inbox, (what) => {
    heard.ids.push(...what.ids)
    heard.groups.push(...what.groups)
  })
  return { heard, leave }
}

/** The nudges of a ledger, collected. */
export function nudges(ledger: Ledger) {
  const heard: { readonly queue: string; readonly dueAt: At | undefined }[] = []
  const leave = ledger.onReady((queue, dueAt) => void heard.push({ queue, dueAt }))
  return { heard, leave }
}

/** A gate item held by `key`, and the gate that holds it. */
export function gated(
  bench: LedgerBench,
  id: string,
  members: readonly string[],
  how: {
    readonly need?: number
    readonly of?: 'done' | 'success'
    readonly delayMs?: Ms
    readonly groupId?: string
  } = {},
): Settlement {
  const { need = members.length, of = 'success', delayMs = Infinity } = how
  const key = `gate of ${id}`
  const envelope = item(bench, id, how.groupId === undefined ? {} : { groupId: how.groupId })
  return enqueue(bench, envelope, { delayMs, hold: { by: 'gate', key } }, [
    { do: 'openGate', key, holds: id, members, need, of },
  ])
}

export const tell = (gateItem: string, member: string, ok = true): Effect => ({
  do: 'tellGate',
  key: `gate of ${gateItem}`,
  member,
  ok,
})
