import { MillraceError } from '../../core/error.js'
import { unreachable } from '../../core/unreachable.js'
import type { ItemView } from '../../ports/inspect.js'
import type { Ending, ItemStatus } from '../../ports/item.js'
import type { ClosedGroup } from '../../ports/settlement.js'
import type { Retention } from '../settle/settle.js'
import { actOnItem, cancelText, type ItemAccess } from './item-actions.js'

/** What became of a cancel. */
export type CancelResult =
  /** It was waiting, and has ended: it will not run. Also when it had been cancelled before. */
  | { readonly kind: 'cancelled' }
  /** It is running. Its worker is notified; the run ends as cancelled, unless it ends by itself before that. */
  | { readonly kind: 'requested'; readonly holder?: string }
  /** It had ended already, otherwise. */
  | { readonly kind: 'ended'; readonly status: ItemStatus; readonly ending?: Ending }
  /** The backend knows no such item: it never existed, or its records have expired. */
  | { readonly kind: 'unknown' }

/** The item changed its status every time before the cancel could be written. */
class CancelContendedError extends MillraceError {
  constructor(id: string) {
    super('CANCEL_CONTENDED', `${id} changed its state every time it was to be cancelled. Try again.`, {
      facts: { id },
    })
  }
}

export interface CancelServices extends ItemAccess<ItemView> {
  readonly who: string
  readonly keep: Retention
  /** It was waiting, and our commit has ended it: with this error, closing these groups. */
  readonly ended: (view: ItemView, error: string, closed: readonly ClosedGroup[]) => void
}

/** Cancels an item, whatever its status; see `actOnItem`. */
export async function cancelItem(services: CancelServices, id: string, why: string): Promise<CancelResult> {
  const { who, keep } = services
  const result = await actOnItem(services, id, 'cancel', { who, why, keep })
  switch (result.kind) {
    case 'applied': {
      const { view, closed } = result
      if (view.status === 'running')
        return view.worker === undefined ? { kind: 'requested' } : { kind: 'requested', holder: view.worker }
      services.ended(view, cancelText(why), closed)
      return { kind: 'cancelled' }
    }
    case 'unchanged': {
      const { status, ending } = result.view
      if (ending === 'cancelled') return { kind: 'cancelled' }
      return ending === undefined ? { kind: 'ended', status } : { kind: 'ended', status, ending }
    }
    case 'unknown':
      return result
    case 'contended':
      throw new CancelContendedError(id)
    default:
      return unreachable(result)
  }
}
