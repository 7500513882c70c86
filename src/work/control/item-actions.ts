import { MillraceError } from '../../core/error.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { ClosedGroup, CommitResult, Effect, Settlement } from '../../ports/settlement.js'
import { endEffects } from '../settle/end-effects.js'
import type { Retention } from '../settle/settle.js'
import { redriveEffects } from './redrive.js'

/** What a person can do to an item. */
export type ItemVerb = 'cancel' | 'redrive' | 'discard' | 'runNow'

/** Who does it, why, and how. */
export interface ActOptions {
  readonly who: string
  readonly why: string
  readonly keep: Retention
  /** A redriven item starts after this long. Default 0. */
  readonly delayMs?: Ms
}

/**
 * Turns an action of a person into what is to be written, given how the item was last read. Guarded by that status: if it has
 * changed meanwhile, nothing happens, and the caller reads the item again. Undefined: the status does not allow the action.
 */
export function act(
  view: ItemSummary,
  action: ItemVerb,
  { who, why, keep, delayMs = 0 }: ActOptions,
): Settlement | undefined {
  const { envelope, status } = view
  const { id } = envelope
  const guarded = (...effects: readonly Effect[]): Settlement => ({
    guard: { by: 'status', id, in: [status] },
    effects: [...effects, { do: 'log', who, why, what: `${action} ${id}` }],
  })
  switch (action) {
    case 'cancel':
      if (status === 'running') return guarded({ do: 'requestCancel', id, reason: why })
      if (status !== 'pending') return undefined
      return guarded(
        {
          do: 'deadLetter',
          id,
          ending: 'cancelled',
          class: 'retryable',
          error: cancelText(why),
          keepMs: keep.completedMs,
        },
        ...endEffects(envelope, false),
      )
    case 'redrive':
      if (status !== 'dead') return undefined
      return guarded(...redriveEffects(envelope, delayMs))
    case 'discard':
      return status === 'dead' ? guarded({ do: 'delete', id }) : undefined
    case 'runNow':
      return status === 'pending' ? guarded({ do: 'release', id, delayMs: 0 }) : undefined
    default:
      return unreachable(action)
  }
}

/** An item changes its status only so often while an action tries to meet it. */
const TRIES = 50

/** Where an action reads and writes its item. */
export interface ItemAccess<V extends ItemSummary> {
  read(id: string): Promise<V | undefined>
  commit(settlement: Settlement): Promise<CommitResult>
}

/** What came of an action, and the item as it was read before. */
export type ActResult<V extends ItemSummary> =
  | { readonly kind: 'applied'; readonly view: V; readonly closed: readonly ClosedGroup[] }
  /** Its status does not allow the action, or `check` did not. */
  | { readonly kind: 'unchanged'; readonly view: V }
  /** The backend knows no such item. */
  | { readonly kind: 'unknown' }
  /** Its status changed before every commit. */
  | { readonly kind: 'contended' }

/**
 * Reads an item and carries out the action that its status allows; when the status has changed meanwhile, reads and decides
 * again. `check` sees the item before every try: `false` leaves it as it is.
 */
export async function actOnItem<V extends ItemSummary>(
  ledger: ItemAccess<V>,
  id: string,
  action: ItemVerb,
  o: ActOptions & { readonly check?: (view: V) => MaybePromise<boolean> },
): Promise<ActResult<V>> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const view = await ledger.read(id)
    if (view === undefined) return { kind: 'unknown' }
    const settlement = (await o.check?.(view)) === false ? undefined : act(view, action, o)
    if (settlement === undefined) return { kind: 'unchanged', view }
    const result = await ledger.commit(settlement)
    switch (result.kind) {
      case 'applied':
        return { kind: 'applied', view, closed: result.closed }
      case 'stale':
      case 'repeated':
        break
      case 'refused':
        throw new MillraceError(result.code, result.message, { facts: { id, limit: result.limit } })
      case 'failed':
        throw result.error
      case 'conflict':
        throw new TypeError(`a ${action} folds nothing: the backend broke its contract`)
      default:
        return unreachable(result)
    }
  }
  return { kind: 'contended' }
}

/** The error text of a cancelled item. */
export function cancelText(why: string): string {
  return why === '' ? 'cancelled' : `cancelled: ${why}`
}

/** Why an item was cancelled, from its error text; empty if the caller gave no reason. */
export function cancelReason(error: string | undefined): string {
  return error?.replace(/^cancelled(?:: )?/, '') ?? ''
}
