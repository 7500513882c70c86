import { MillraceError } from '../../core/error.js'
import { unreachable } from '../../core/unreachable.js'
import type { Ending, Status } from '../../ports/item.js'
import type { ItemView } from '../../ports/ledger.js'
import type { ClosedGroup, CommitResult, Settlement } from '../../ports/settlement.js'
import { act } from '../act.js'
import { cancelText } from '../cancel-text.js'
import type { Retention } from '../settle.js'

/** What became of a cancel. */
export type CancelAnswer =
  /** It was waiting, and has ended: it will not run. Also when somebody had cancelled it before. */
  | { readonly kind: 'cancelled' }
  /** It is running. Its holder is told; its run ends as cancelled, unless it ends by itself before it hears. */
  | { readonly kind: 'requested'; readonly holder?: string }
  /** It had ended already, otherwise. */
  | { readonly kind: 'ended'; readonly status: Status; readonly ending?: Ending }
  /** Nothing is known of it: it never was, or its records have expired. */
  | { readonly kind: 'unknown' }

/** An item moves between waiting and running only so often while somebody tries to cancel it. */
const TRIES = 50

/** How long something that acts on items may take to find one that stands still. */
export class CancelContendedError extends MillraceError {
  constructor(id: string) {
    super('CANCEL_CONTENDED', `${id} changed its state every time it was to be cancelled. Try again.`, {
      facts: { id },
    })
  }
}

export interface CancelServices {
  readonly who: string
  readonly keep: Retention
  readonly read: (id: string) => Promise<ItemView | undefined>
  readonly commit: (settlement: Settlement) => Promise<CommitResult>
  /** It was waiting and has ended, by our commit: with this error, closing these groups. */
  readonly ended: (view: ItemView, error: string, closed: readonly ClosedGroup[]) => void
}

/** Cancels an item as it stands; when it has moved on meanwhile, looks again and chooses again. */
export async function cancelItem(services: CancelServices, id: string, why: string): Promise<CancelAnswer> {
  const { who, keep } = services
  for (let tries = 0; tries < TRIES; tries += 1) {
    const view = await services.read(id)
    if (view === undefined) return { kind: 'unknown' }
    const settlement = act(view, 'cancel', { who, why, keep })
    if (settlement === undefined) return endedAs(view)
    const result = await services.commit(settlement)
    switch (result.kind) {
      case 'applied':
        if (view.status === 'running') {
          return view.holder === undefined ? { kind: 'requested' } : { kind: 'requested', holder: view.holder }
        }
        services.ended(view, cancelText(why), result.closed)
        return { kind: 'cancelled' }
      case 'stale':
      case 'repeated':
        break
      case 'refused':
        throw new MillraceError(result.code, result.message, { facts: { id, limit: result.limit } })
      case 'failed':
        throw result.error
      case 'conflict':
        throw new TypeError('a cancel folds nothing: the backend broke its contract')
      default:
        return unreachable(result)
    }
  }
  throw new CancelContendedError(id)
}

function endedAs({ status, ending }: ItemView): CancelAnswer {
  if (ending === 'cancelled') return { kind: 'cancelled' }
  return ending === undefined ? { kind: 'ended', status } : { kind: 'ended', status, ending }
}
