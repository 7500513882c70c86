import type { At, Ms } from '../../core/time/time.js'
import { writeEnvelope } from '../../ports/envelope.js'
import { gateVerdict } from '../../ports/gate.js'
import type { ItemView } from '../../ports/inspect.js'
import type { Envelope } from '../../ports/item.js'
import { topOf, treeId } from '../../ports/item.js'
import type { EffectOf } from '../../ports/settlement.js'
import { hasEnded } from '../../ports/words.js'
import type { PlainContext } from './context.js'
import { countOf } from './counters.js'
import { readView } from './item-state.js'
import { allDone, entry, readObject } from './plain-ports.js'

/** `gate:<key>`: the condition, and the item that it holds. */
interface GateRecord extends Pick<EffectOf<'openGate'>, 'heldId' | 'members' | 'need' | 'of'> {
  /** Where and what to push when it is decided. Absent: the item was pushed elsewhere, and is freed when it is polled. */
  readonly queue?: string | undefined
  readonly body?: string | undefined
  readonly priority?: number | undefined
  /** When the marks of counted members were last renewed. Absent: not yet. */
  readonly markedAt?: At
}

/** How many times within their life marks are renewed: checks of a gate are at most a minute apart, and may be missed. */
const RENEWALS = 4

/** Both counts of a gate move in one step: endings below, completions above. */
const COMPLETED = 0x10_0000

export type GateVerdict = { readonly met: boolean } | undefined

/** What the counts say: met, impossible (`met: false`), or nothing yet. */
function verdictOn({ need, of, members }: GateRecord, ended: number, completed: number): GateVerdict {
  const met = gateVerdict(need - (of === 'done' ? ended : completed), members.length - ended)
  return met === undefined ? undefined : { met }
}

/**
 * Writes the gate and registers it with its members, before anything reads their states: a member that ends afterwards finds
 * it, and `checkGate` finds a member that ended before. Members that are pushed with the gate, and carry its key, find it
 * without being registered.
 */
export async function openGate(
  context: PlainContext,
  gate: EffectOf<'openGate'>,
  enqueues: readonly EffectOf<'enqueue'>[],
  lifeMs: Ms,
): Promise<void> {
  const { keys, store, records } = context
  const { key, heldId, need, of } = gate
  const members = [...new Set(gate.members)]
  const held = enqueues.find(({ item }) => item.id === heldId)
  const body = held && writeEnvelope(held.item)
  const record: GateRecord = { heldId, members, need, of, queue: held?.queue, body, priority: held?.item.priority }
  const ttl = context.keptFor(lifeMs)
  await store.set(keys.gate(key), JSON.stringify(record), ttl)
  const carriers = new Set(enqueues.flatMap(({ item }) => namesFor(key, item)))
  await allDone(
    members
      .filter((member) => !carriers.has(member))
      .map((member) =>
        records.update(keys.watch(member), ttl, (current) => {
          const watching = readWatch(current)
          return watching.includes(key) ? undefined : JSON.stringify([...watching, key])
        }),
      ),
  )
}

/** Under which names an item notifies a gate of its end without being registered. */
function namesFor(key: string, { id, gates = [], trees = [] }: Envelope): readonly string[] {
  const own = gates.includes(key) ? [id] : []
  return [...own, ...trees.filter((tree) => tree.key === key).map(({ of }) => treeId(id, of))]
}

/** Counts the members that have ended, and says what the gate has decided. Undefined: no such gate. */
export async function checkGate(
  context: PlainContext,
  key: string,
  token: string,
  /** The caller holds the item itself: nothing needs to be pushed. */
  isAtHand = false,
): Promise<{ readonly verdict: GateVerdict } | undefined> {
  const { keys, store } = context
  const gate = await readGate(context, key)
  if (gate === undefined) return undefined
  const views = await Promise.all(gate.members.map((member) => readMember(context, member)))
  const ended = gate.members.flatMap((member, i) => {
    const status = views[i]?.status
    return status !== undefined && hasEnded(status) ? [{ key, member, completed: status === 'completed' }] : []
  })
  await allDone(ended.map((notice) => count(context, notice, token)))
  const counted = countOf(await store.get(keys.gateEnded(key))) ?? 0
  // The count remembers members whose states have expired; the states know members whose count was lost in a crash.
  const completed = ended.filter((notice) => notice.completed).length
  const verdict = verdictOn(
    gate,
    Math.max(counted % COMPLETED, ended.length),
    Math.max(Math.floor(counted / COMPLETED), completed),
  )
  if (verdict !== undefined) await free(context, key, gate, verdict, token, isAtHand)
  return { verdict }
}

/** A tree without items below its top ends with the top: what the top queues is written before it ends. */
async function readMember(context: PlainContext, member: string): Promise<ItemView | undefined> {
  const top = topOf(member)
  if (top === undefined) return readView(context, member)
  // In this order: a tree that is not there when its top has ended will never be.
  const view = await readView(context, top)
  return (await readView(context, member)) ?? view
}

/** Notifies the gates of the trees that an item was part of, unless those continue below it. */
export async function notifyTreeGates(
  context: PlainContext,
  { id, trees = [] }: Envelope,
  completed: boolean,
  token: string,
): Promise<void> {
  await allDone(
    trees.map(async ({ key, of }) => {
      const member = treeId(id, of)
      if ((await context.store.get(context.keys.state(member))) === undefined)
        await notifyGate(context, { key, member, completed }, token)
    }),
  )
}

/** That a member of a gate ended. */
type GateNotice = Omit<EffectOf<'notifyGate'>, 'do'>

/** A gate that is not there yet will find the member's state. */
export async function notifyGate(context: PlainContext, notice: GateNotice, token: string): Promise<void> {
  const gate = await readGate(context, notice.key)
  if (gate === undefined || !gate.members.includes(notice.member)) return
  const counted = (await count(context, notice, token)) ?? 0
  const verdict = verdictOn(gate, counted % COMPLETED, Math.floor(counted / COMPLETED))
  if (verdict !== undefined) await free(context, notice.key, gate, verdict, token, false)
}

/**
 * Keeps a gate that waits for long from expiring, with its count and the marks of its counted members: the state of a member
 * may outlive its mark, and would then be counted once more.
 */
export async function refreshGate(context: PlainContext, key: string, lifeMs: Ms): Promise<void> {
  const { keys, store, counters, clock, options } = context
  const gate = await readGate(context, key)
  if (gate === undefined) return
  const ttl = context.keptFor(lifeMs)
  const now = clock.now()
  let { markedAt } = gate
  if (now - (markedAt ?? 0) >= options.retentionMs / RENEWALS) {
    const marks = gate.members.map((member) => keys.gateCounted(key, member))
    const found = await store.getAll(marks)
    await store.write(
      marks.flatMap((mark, i) => (found[i] === undefined ? [] : [entry(mark, found[i], context.keptFor())])),
    )
    markedAt = now
  }
  await store.set(keys.gate(key), JSON.stringify({ ...gate, markedAt }), ttl)
  await counters.increment(keys.gateEnded(key), 0, ttl)
}

/** The gates to notify when an item ends. */
export function readWatch(text: string | undefined): readonly string[] {
  const read = readObject(text)
  return Array.isArray(read) ? read.filter((one) => typeof one === 'string') : []
}

async function count(context: PlainContext, notice: GateNotice, token: string): Promise<number | undefined> {
  const { keys, counters } = context
  const { key, member, completed } = notice
  const by = completed ? COMPLETED + 1 : 1
  const ttl = context.keptFor()
  return (await counters.incrementOnce(keys.gateEnded(key), keys.gateCounted(key, member), by, ttl, token)).value
}

/**
 * Decided: one delivery of the held item, now. Only one of those that see the verdict pushes it, and the same one again when
 * its settlement is repeated; should it die in between, the item's own copy is polled within a minute.
 */
async function free(
  context: PlainContext,
  key: string,
  { heldId, queue, body, priority = 0 }: GateRecord,
  verdict: { readonly met: boolean },
  token: string,
  isAtHand: boolean,
): Promise<void> {
  if (queue === undefined || body === undefined) return
  const own = JSON.stringify({ ...verdict, token })
  if ((await context.store.claim(context.keys.gateFreed(key), own, context.keptFor())) !== own || isAtHand) return
  const to = context.queueNamed(queue)
  await context.push(to, body, { priority, delayMs: 0, key: `${heldId}:${token}`, wake: true })
}

async function readGate({ keys, store }: PlainContext, key: string): Promise<GateRecord | undefined> {
  // Only `openGate` and `refreshGate` write this key.
  return readObject<GateRecord>(await store.get(keys.gate(key))) as GateRecord | undefined
}
