import { defined } from '../../core/defined.js'
import type { FailureClass } from '../../core/failure/failure.js'
import type { At, Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ItemView } from '../../ports/inspect.js'
import type { Ending, Envelope, EnvelopeHead, ItemStatus } from '../../ports/item.js'
import type { PlainContext } from './context.js'
import { readObject } from './plain-ports.js'

/** The part of a stored state that the state of `@ayepi/work` has no word for. */
export interface Marks {
  readonly queue?: string | undefined
  readonly ending?: Ending | undefined
  readonly class?: FailureClass | undefined
  /** The worker that runs it. */
  readonly holder?: string | undefined
  readonly fence?: number | undefined
  readonly crashes?: number | undefined
  /** The dedupe key of the copy that carries this try, where that is not the item's first. */
  readonly copy?: string | undefined
  /** It completed without a result: the state itself is the durable outcome. */
  readonly isResultless?: boolean | undefined
  /** The gate that holds it, or held it. */
  readonly gate?: string | undefined
  /** When a held item is freed at the latest. */
  readonly dueAt?: At | undefined
  /** How soon the gate of a held item is checked first. */
  readonly pollMs?: Ms | undefined
  /** How often its gate was checked without an answer. */
  readonly checks?: number | undefined
}

/** What a state says beside the envelope. */
export interface ItemStanding {
  readonly status: ItemStatus
  readonly error?: string | undefined
  readonly runAt?: At | undefined
  readonly endAt?: At | undefined
  readonly marks?: Marks | undefined
}

/** `state:<id>`: the state of `@ayepi/work` without its result, the rest of the envelope without its input, and our marks. */
export interface StoredState
  extends ItemStanding,
    Pick<Envelope, 'id' | 'type' | 'attempt' | 'queueAt' | 'startAt' | 'priority'> {
  readonly group?: string | undefined
  readonly envelope?: Readonly<Record<string, unknown>>
}

export function storedStateOf(envelope: Envelope, { status, error, runAt, endAt, marks }: ItemStanding): StoredState {
  const { id, type, attempt, queueAt, startAt, priority, group, input: _, ...rest } = envelope
  return { id, type, status, attempt, queueAt, startAt, priority, group, error, runAt, endAt, envelope: rest, marks }
}

/** The envelope as the state remembers it: everything but the input. */
export function envelopeOfState(state: StoredState): EnvelopeHead {
  const { id, type, attempt, queueAt, startAt, priority, group } = state
  const groupId = String(state.envelope?.['groupId'] ?? '')
  return defined({ ...state.envelope, id, type, attempt, queueAt, startAt, priority, groupId, group })
}

/** The wire has the words of `@ayepi/work`, which calls a completed item a success. */
export const writeState = (state: StoredState): string =>
  JSON.stringify(state.status === 'completed' ? { ...state, status: 'success' } : state)

const STATUSES: ReadonlyMap<unknown, ItemStatus> = new Map([
  ['pending', 'pending'],
  ['running', 'running'],
  ['success', 'completed'],
  // A word of `@ayepi/work` that we never write, and read as dead.
  ['failed', 'dead'],
  ['dead', 'dead'],
])

/** Undefined for nothing, and for what is no state. */
export function readState(text: string | undefined): StoredState | undefined {
  const read = readObject<StoredState>(text)
  const status = STATUSES.get(read?.status)
  if (typeof read?.id !== 'string' || status === undefined) return undefined
  const { type = '', attempt = 1, queueAt = 0, startAt = 0, priority = 0 } = read
  return { ...read, id: read.id, status, type, attempt, queueAt, startAt, priority }
}

/** Which life of the item this is: a redrive begins another one. Takes an envelope, or what a state keeps of one. */
export function runOf(envelope: Readonly<Record<string, unknown>> | undefined): number {
  const redrives = envelope?.['redrives']
  return typeof redrives === 'number' ? redrives : 0
}

/**
 * An item as waiters see it. First its state, which is all there is to read while it waits; then what belongs to that state.
 * It shows as completed once its result is there, because the result is what makes it final.
 */
export async function readView(context: PlainContext, id: string): Promise<ItemView | undefined> {
  const { keys, store } = context
  // The marker of the end costs nothing more where many keys are one call, and is left out where each key is a call.
  const [text, settled] = await store.getAll([keys.state(id), store.readsInBulk ? keys.settled(id, 0) : undefined])
  const state = readState(text)
  if (state === undefined) return viewWithoutState(context, id)
  const view = viewOf(state)
  switch (state.status) {
    case 'pending':
      if (state.marks?.fence === undefined && settled === undefined) return viewIfFreed(context, state, view)
      return (await viewIfSettled(context, state, view)) ?? viewIfFreed(context, state, view)
    case 'running': {
      const [[progress, cancelReason], ended] = await Promise.all([
        store.getAll([keys.progress(id), keys.cancel(id)]),
        viewIfSettled(context, state, view),
      ])
      return ended ?? defined({ ...view, progress, cancelReason })
    }
    case 'completed': {
      if (state.marks?.isResultless === true) return view
      const result = await store.get(keys.result(id))
      if (result !== undefined) return { ...view, result }
      const { ending: _, endAt: __, ...open } = view
      return { ...open, status: 'running' }
    }
    case 'dead':
      return defined({ ...view, error: (await store.get(keys.error(id))) ?? state.error })
    default:
      return unreachable(state.status)
  }
}

function viewOf(state: StoredState): ItemView {
  const { status, runAt, endAt, startAt, marks = {} } = state
  const { queue, ending, class: failureClass, holder, crashes, gate, dueAt } = marks
  const isPending = status === 'pending'
  return defined({
    envelope: envelopeOfState(state),
    status,
    queue,
    ending,
    class: failureClass,
    hold: isPending && gate !== undefined ? { by: 'gate' as const, key: gate } : undefined,
    dueAt: isPending ? (gate === undefined ? startAt : dueAt) : undefined,
    worker: status === 'running' ? holder : undefined,
    runAt,
    endAt,
    crashes,
  })
}

/**
 * An item that has left its group has ended, whatever its state says: a process that had lost its lease may have written that
 * afterwards, because a plain store checks no fence.
 */
async function viewIfSettled(context: PlainContext, state: StoredState, view: ItemView): Promise<ItemView | undefined> {
  const { keys, store } = context
  const { id } = state
  const marker = keys.settled(id, runOf(state.envelope))
  const [settled, result, error] = await store.getAll([marker, keys.result(id), keys.error(id)])
  if (settled === undefined) return undefined
  const { worker: _, dueAt: __, ...rest } = view
  return { ...rest, ...(outcomeView(result, error) ?? { status: 'completed', ending: 'completed' }) }
}

/** The state may have expired, or be corrupt, before the outcome: a caller that waits for it still gets it. */
async function viewWithoutState({ keys, store }: PlainContext, id: string): Promise<ItemView | undefined> {
  const [result, error] = await store.getAll([keys.result(id), keys.error(id)])
  const outcome = outcomeView(result, error)
  const envelope = { id, type: '', groupId: '', queueAt: 0, startAt: 0, attempt: 1, priority: 0 }
  return outcome === undefined ? undefined : { envelope, ...outcome }
}

function outcomeView(result: string | undefined, error: string | undefined) {
  if (result !== undefined) return { status: 'completed', ending: 'completed', result } as const
  return error === undefined ? undefined : ({ status: 'dead', error } as const)
}

/** A gate that has decided no longer holds its item, though the item's state does not know yet. */
async function viewIfFreed(context: PlainContext, state: StoredState, view: ItemView): Promise<ItemView> {
  const gate = state.marks?.gate
  if (gate === undefined || (await context.store.get(context.keys.gateFreed(gate))) === undefined) return view
  const { hold: _, ...free } = view
  return { ...free, dueAt: state.startAt }
}
