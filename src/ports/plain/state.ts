import type { FailureClass } from '../../core/failure.js'
import type { At, Ms } from '../../core/time.js'
import type { Ending, Envelope, EnvelopeHead, Status } from '../item.js'

/** The part of a stored state that is ours alone: what the state of `@ayepi/work` has no word for. */
export interface Marks {
  readonly queue?: string
  readonly ending?: Ending
  readonly class?: FailureClass
  readonly holder?: string
  readonly fence?: number
  readonly crashes?: number
  /** The dedupe key of the copy that carries this try, where that is not the item's first. */
  readonly copy?: string
  /** How long the records of an ended item are kept. */
  readonly keepMs?: Ms
  /** It ended well without a result: the state itself is the durable outcome. */
  readonly isResultless?: boolean
  /** The gate that holds it, or held it. */
  readonly gate?: string
  /** When a held item is freed at the latest. */
  readonly dueAt?: At
  /** How soon a held item is looked at first. */
  readonly pollMs?: Ms
  /** How often its gate was looked at without an answer. */
  readonly checks?: number
}

/** `state:<id>`: the state of `@ayepi/work` without its result, the rest of the envelope without its input, and our marks. */
export interface StoredState {
  readonly id: string
  readonly type: string
  readonly status: Status
  readonly attempt: number
  readonly queueAt: At
  readonly startAt: At
  readonly priority: number
  readonly group?: string
  readonly error?: string
  readonly runAt?: At
  readonly endAt?: At
  readonly envelope?: Readonly<Record<string, unknown>>
  readonly marks?: Marks
}

/** What a state says beside the envelope. */
export interface Standing {
  readonly status: Status
  readonly error?: string
  readonly runAt?: At
  readonly endAt?: At
  readonly marks?: Marks
}

export function stateOf(envelope: Envelope, standing: Standing): StoredState {
  const { id, type, attempt, queueAt, startAt, priority, group, input: _, ...rest } = envelope
  const { status, error, runAt, endAt, marks } = standing
  return {
    id,
    type,
    status,
    attempt,
    queueAt,
    startAt,
    priority,
    ...(group === undefined ? {} : { group }),
    ...(error === undefined ? {} : { error }),
    ...(runAt === undefined ? {} : { runAt }),
    ...(endAt === undefined ? {} : { endAt }),
    envelope: rest,
    ...(marks === undefined ? {} : { marks }),
  }
}

/** The envelope as the state remembers it: everything but the input. */
export function envelopeOf(state: StoredState): EnvelopeHead {
  const { id, type, attempt, queueAt, startAt, priority, group } = state
  const groupId = state.envelope?.['groupId']
  const own = { id, type, attempt, queueAt, startAt, priority, groupId: typeof groupId === 'string' ? groupId : '' }
  return { ...state.envelope, ...own, ...(group === undefined ? {} : { group }) }
}

export const writeState = (state: StoredState): string => JSON.stringify(state)

const STATUSES: readonly unknown[] = ['pending', 'running', 'success', 'dead']

/** Undefined for nothing, and for what is no state: a corrupt record must not stop the item. */
export function readState(text: string | undefined): StoredState | undefined {
  if (text === undefined) return undefined
  try {
    const read = JSON.parse(text) as Partial<StoredState> | null
    if (typeof read !== 'object' || read === null || typeof read.id !== 'string') return undefined
    // `failed` belongs to the vocabulary of `@ayepi/work`: nothing of ours writes it, and it counts as dead.
    const status: unknown = (read as { readonly status?: unknown }).status === 'failed' ? 'dead' : read.status
    if (!STATUSES.includes(status)) return undefined
    const { type = '', attempt = 1, queueAt = 0, startAt = 0, priority = 0 } = read
    return { ...read, id: read.id, status: status as Status, type, attempt, queueAt, startAt, priority }
  } catch {
    return undefined
  }
}

/** Which life of the item this is: a redrive begins another one. */
export function runOf(envelope: { readonly redrives?: number } | undefined): number {
  return envelope?.redrives ?? 0
}

export function runOfState(state: StoredState): number {
  const redrives = state.envelope?.['redrives']
  return typeof redrives === 'number' ? redrives : 0
}

export const hasEnded = (status: Status): boolean => status === 'success' || status === 'dead'
