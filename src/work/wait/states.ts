import { defined } from '../../core/defined.js'
import type { At } from '../../core/time/time.js'
import { type ItemSummary, summariesOf } from '../../ports/inspect.js'
import type { DeadEnding, EnvelopeHead, ItemStatus } from '../../ports/item.js'
import type { Ledger } from '../../ports/ledger.js'
import type { WorkState, WorkStatus } from '../define/work.js'

/**
 * An item as the public API shows it, without input and result. A claimed item is running, unless it is known not to have
 * started: this process knows its own items (`here`: when their handlers were called), and plain ports store `runAt`.
 */
export function workStateOf(view: ItemSummary, here?: ReadonlyMap<string, At | undefined>): WorkState {
  const { id } = view.envelope
  const ending = deadEnding(view.ending)
  const runAt = view.status === 'running' && here?.has(id) === true ? here.get(id) : view.runAt
  return {
    ...initialState(view.envelope),
    status: view.status === 'running' && runAt === undefined ? 'pending' : workStatus(view.status),
    ...(view.status === 'dead' && ending !== undefined ? { ending } : {}),
    ...defined({ error: view.error, runAt, endAt: view.endAt }),
  }
}

/** The status in the words of `@ayepi/work`, which calls a completed item a success. */
const workStatus = (status: ItemStatus): WorkStatus => (status === 'completed' ? 'success' : status)

/** Why an item is dead. Undefined: it is not. */
export function deadEnding(ending: ItemSummary['ending']): DeadEnding | undefined {
  return ending === 'completed' || ending === 'dropped' ? undefined : ending
}

/** The states of these items, in their order; what the ledger no longer knows, this process may. */
export async function statesOf(
  { ledger, known }: { readonly ledger: Pick<Ledger, 'inspect' | 'read'>; readonly known: KnownStates | undefined },
  ids: readonly string[],
): Promise<readonly (WorkState | undefined)[]> {
  const views = await summariesOf(ledger, ids)
  return ids.map((id, i) => {
    const view = views[i]
    return view === undefined ? known?.get(id) : workStateOf(view)
  })
}

/** The part of an item's state that its envelope decides. */
export function initialState(item: EnvelopeHead): Omit<WorkState, 'status'> {
  const { id, type, attempt, queueAt, startAt, priority, group, tags } = item
  return {
    id,
    type,
    attempt,
    queueAt,
    startAt,
    priority,
    ...defined({ group, tags }),
  }
}

/**
 * The states that this process has seen, for backends that cannot list. Bounded: ended ones are forgotten first, the
 * oldest before the others.
 */
export class KnownStates {
  readonly #most: number
  readonly #open = new Map<string, WorkState & { readonly groupId: string }>()
  readonly #ended = new Map<string, WorkState & { readonly groupId: string }>()

  constructor(most: number) {
    this.#most = most
  }

  remember(groupId: string, state: WorkState): void {
    const hasEnded = state.status === 'success' || state.status === 'dead'
    this.#open.delete(state.id)
    this.#ended.delete(state.id)
    const into = hasEnded ? this.#ended : this.#open
    into.set(state.id, { ...state, groupId })
    while (this.#open.size + this.#ended.size > this.#most) {
      const from = this.#ended.size > 0 ? this.#ended : this.#open
      const oldest = from.keys().next()
      if (oldest.done === true) break
      from.delete(oldest.value)
    }
  }

  get(id: string): WorkState | undefined {
    const found = this.#open.get(id) ?? this.#ended.get(id)
    return found === undefined ? undefined : withoutGroup(found)
  }

  list(groupId?: string): WorkState[] {
    const all = [...this.#ended.values(), ...this.#open.values()]
    return all.filter((state) => groupId === undefined || state.groupId === groupId).map(withoutGroup)
  }
}

function withoutGroup({ groupId: _, ...state }: WorkState & { readonly groupId: string }): WorkState {
  return state
}
