import type { At, Ms } from '../../core/time.js'
import { writeEnvelope } from '../envelope.js'
import type { Envelope } from '../item.js'
import type { ItemView } from '../ledger.js'
import type { Effect } from '../settlement.js'
import { topOf, treeId } from '../tree.js'
import { allDone } from './call.js'
import { countOf } from './counters.js'
import { type Desk, deliver, keptFor, queueNamed } from './desk.js'
import { entry } from './plain-store.js'
import { hasEnded } from './state.js'
import { readView } from './views.js'

type OpenGate = Extract<Effect, { do: 'openGate' }>
type Push = Extract<Effect, { do: 'push' }>

/** `gate:<key>`: the condition, and the item that it holds. */
interface GateRecord {
  readonly holds: string
  readonly members: readonly string[]
  readonly need: number
  readonly of: 'done' | 'success'
  /** Where and what to push when it is decided. Absent: the item was pushed elsewhere, and finds out when it is looked at. */
  readonly queue?: string
  readonly body?: string
  readonly priority?: number
  /** When the marks of members that have been counted were last made to live on. Absent: not yet. */
  readonly markedAt?: At
}

/** How many times within their life marks are renewed: looks at a gate are at most a minute apart, and may be missed. */
const RENEWALS = 4

/** Both counts of a gate move in one step: endings below, good endings above. */
const GOOD = 0x10_0000

export type GateVerdict = { readonly met: boolean } | undefined

/** What the counts say: met, impossible (`met: false`), or nothing yet. */
function verdictOn(gate: Pick<GateRecord, 'need' | 'of' | 'members'>, counted: number): GateVerdict {
  const ended = counted % GOOD
  const good = Math.floor(counted / GOOD)
  const need = gate.need - (gate.of === 'done' ? ended : good)
  const left = gate.members.length - ended
  if (need <= 0) return { met: true }
  return need > left ? { met: false } : undefined
}

/**
 * Writes the gate down and registers it with its members, before anything looks at their states: whoever ends afterwards
 * finds it, and whoever ended before is found by `checkGate`. Members that are pushed with the gate, and carry its key,
 * find it without being told.
 */
export async function openGate(desk: Desk, gate: OpenGate, pushes: readonly Push[], lifeMs: Ms): Promise<void> {
  const { keys, store, records } = desk
  const members = [...new Set(gate.members)]
  const item = pushes.find((push) => push.item.id === gate.holds)
  const record: GateRecord = {
    holds: gate.holds,
    members,
    need: gate.need,
    of: gate.of,
    ...(item === undefined ? {} : { queue: item.queue, body: writeEnvelope(item.item), priority: item.item.priority }),
  }
  const ttl = keptFor(desk, lifeMs)
  await store.set(keys.gate(gate.key), JSON.stringify(record), ttl)
  const carriers = new Set(pushes.flatMap(({ item }) => namesFor(gate.key, item)))
  await allDone(
    members
      .filter((member) => !carriers.has(member))
      .map((member) =>
        records.update(keys.watch(member), ttl, (current) => {
          const watching = readWatch(current)
          return watching.includes(gate.key) ? undefined : JSON.stringify([...watching, gate.key])
        }),
      ),
  )
}

/** Under which names an item tells a gate of its end by itself. */
function namesFor(key: string, { id, gates = [], trees = [] }: Envelope): readonly string[] {
  const own = gates.includes(key) ? [id] : []
  return [...own, ...trees.filter((tree) => tree.key === key).map(({ of }) => treeId(id, of))]
}

/** Counts the members that have ended, and says what the gate has decided. Undefined: no such gate. */
export async function checkGate(
  desk: Desk,
  key: string,
  token: string,
  /** The caller holds the item itself: nothing needs to be pushed. */
  isAtHand = false,
): Promise<{ readonly verdict: GateVerdict } | undefined> {
  const { keys, store } = desk
  const gate = readGate(await store.get(keys.gate(key)))
  if (gate === undefined) return undefined
  const ended = await endedMembers(desk, gate)
  await allDone(ended.map(({ member, ok }) => count(desk, key, member, ok, token)))
  const told = countOf(await store.get(keys.gateEnded(key))) ?? 0
  // The count remembers members whose states have expired; the states know members whose count was lost in a crash.
  const seen = { ended: ended.length, good: ended.filter(({ ok }) => ok).length }
  const verdict = verdictOn(gate, mostOf(told, seen))
  if (verdict !== undefined) await free(desk, key, gate, verdict, token, isAtHand)
  return { verdict }
}

const mostOf = (counted: number, seen: { readonly ended: number; readonly good: number }): number =>
  Math.max(Math.floor(counted / GOOD), seen.good) * GOOD + Math.max(counted % GOOD, seen.ended)

/** The members whose outcome is final. */
async function endedMembers(desk: Desk, { members }: GateRecord): Promise<{ member: string; ok: boolean }[]> {
  const views = await Promise.all(members.map((member) => viewOf(desk, member)))
  return members.flatMap((member, i) => {
    const status = views[i]?.status
    return status !== undefined && hasEnded(status) ? [{ member, ok: status === 'success' }] : []
  })
}

/** A tree that nothing was queued below ends with the item at its top: what it queues is written down before it ends. */
async function viewOf(desk: Desk, member: string): Promise<ItemView | undefined> {
  const top = topOf(member)
  if (top === undefined) return readView(desk, member)
  // In this order: a tree that is not there when its top has ended will never be.
  const view = await readView(desk, top)
  return (await readView(desk, member)) ?? view
}

/** Tells the gates of the trees that an item was part of, unless those go on below it. */
export async function tellTrees(desk: Desk, { id, trees = [] }: Envelope, ok: boolean, token: string): Promise<void> {
  await allDone(
    trees.map(async ({ key, of }) => {
      const tree = treeId(id, of)
      if ((await desk.store.get(desk.keys.state(tree))) === undefined) await tellGate(desk, key, tree, ok, token)
    }),
  )
}

/** A member ended. A gate that is not there yet will find its state. */
export async function tellGate(desk: Desk, key: string, member: string, ok: boolean, token: string): Promise<void> {
  const gate = readGate(await desk.store.get(desk.keys.gate(key)))
  if (gate === undefined || !gate.members.includes(member)) return
  const verdict = verdictOn(gate, (await count(desk, key, member, ok, token)) ?? 0)
  if (verdict !== undefined) await free(desk, key, gate, verdict, token, false)
}

/**
 * Keeps a gate that waits for long from expiring, with its count and the marks of those who are in it: the state of a member
 * may outlive its mark, and would then be counted once more.
 */
export async function refreshGate(desk: Desk, key: string, lifeMs: Ms): Promise<void> {
  const { keys, store, counters } = desk
  const text = await store.get(keys.gate(key))
  const gate = readGate(text)
  if (text === undefined || gate === undefined) return
  const ttl = keptFor(desk, lifeMs)
  const now = desk.clock.now()
  const areMarksOld = now - (gate.markedAt ?? 0) >= desk.options.retentionMs / RENEWALS
  if (areMarksOld) await renewMarks(desk, key, gate)
  await store.set(keys.gate(key), areMarksOld ? JSON.stringify({ ...gate, markedAt: now }) : text, ttl)
  await counters.increment(keys.gateEnded(key), 0, ttl)
}

async function renewMarks(desk: Desk, key: string, { members }: GateRecord): Promise<void> {
  const marks = members.map((member) => desk.keys.gateTold(key, member))
  const found = await desk.store.getAll(marks)
  const ttl = keptFor(desk)
  await desk.store.write(
    marks.flatMap((mark, i) => {
      const text = found[i]
      return text === undefined ? [] : [entry(mark, text, ttl)]
    }),
  )
}

/** The gates that want to hear when an item ends. */
export function readWatch(text: string | undefined): readonly string[] {
  if (text === undefined) return []
  try {
    const read: unknown = JSON.parse(text)
    return Array.isArray(read) ? read.filter((one) => typeof one === 'string') : []
  } catch {
    return []
  }
}

async function count(desk: Desk, key: string, member: string, ok: boolean, token: string): Promise<number | undefined> {
  const { keys, counters } = desk
  const by = ok ? GOOD + 1 : 1
  const marker = keys.gateTold(key, member)
  return (await counters.incrementOnce(keys.gateEnded(key), marker, by, keptFor(desk), token)).value
}

/**
 * Decided: one delivery of the held item, now. Only one of those who see the verdict pushes it, and the same one again when
 * its settlement is repeated; should it die in between, the item's own copy is looked at within a minute.
 */
async function free(
  desk: Desk,
  key: string,
  gate: GateRecord,
  verdict: { readonly met: boolean },
  token: string,
  isAtHand: boolean,
): Promise<void> {
  if (gate.queue === undefined || gate.body === undefined) return
  const own = JSON.stringify({ ...verdict, token })
  if ((await desk.store.claim(desk.keys.gateFreed(key), own, keptFor(desk))) !== own || isAtHand) return
  await deliver(
    desk,
    queueNamed(desk, gate.queue),
    gate.body,
    { priority: gate.priority ?? 0 },
    {
      delayMs: 0,
      key: `${gate.holds}:${token}`,
      wake: true,
    },
  )
}

function readGate(text: string | undefined): GateRecord | undefined {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as GateRecord
  } catch {
    return undefined
  }
}
