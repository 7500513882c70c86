import type { At } from '../core/time.js'
import type { DeadEnding, EnvelopeHead } from '../ports/item.js'
import type { ItemSummary, Ledger } from '../ports/ledger.js'
import { summariesOf } from '../ports/summaries.js'
import type { WorkState } from './work.js'

/**
 * An item as the public API shows it, without what it carries. What a process has
 * claimed is running; only where it is known not to have begun it is pending. This process knows of its own (`here`: when the
 * handler of what it holds was called), and plain ports tell by `runAt`.
 */
export function stateOf(view: ItemSummary, here?: ReadonlyMap<string, At | undefined>): WorkState {
  const { id } = view.envelope
  const runAt = view.status === 'running' && here?.has(id) === true ? here.get(id) : view.runAt
  return {
    ...initialState(view.envelope),
    status: view.status === 'running' && runAt === undefined ? 'pending' : view.status,
    ...(view.error === undefined ? {} : { error: view.error }),
    ...(view.status === 'dead' && isDeadEnding(view.ending) ? { ending: view.ending } : {}),
    ...(runAt === undefined ? {} : { runAt }),
    ...(view.endAt === undefined ? {} : { endAt: view.endAt }),
  }
}

function isDeadEnding(ending: ItemSummary['ending']): ending is DeadEnding {
  return ending !== undefined && ending !== 'done' && ending !== 'dropped'
}

/** The states of these items, in their order; what the ledger no longer knows, this process may. */
export async function statesOf(
  { ledger, known }: { readonly ledger: Pick<Ledger, 'inspect' | 'read'>; readonly known: KnownStates | undefined },
  ids: readonly string[],
): Promise<readonly (WorkState | undefined)[]> {
  const views = await summariesOf(ledger, ids)
  return ids.map((id, i) => {
    const view = views[i]
    return view === undefined ? known?.get(id) : stateOf(view)
  })
}

/** What an item's state begins with. */
export function initialState(item: EnvelopeHead): Omit<WorkState, 'status'> {
  const { id, type, attempt, queueAt, startAt, priority, group, tags } = item
  return {
    id,
    type,
    attempt,
    queueAt,
    startAt,
    priority,
    ...(group === undefined ? {} : { group }),
    ...(tags === undefined ? {} : { tags }),
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

  saw(groupId: string, state: WorkState): void {
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
