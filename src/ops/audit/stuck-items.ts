import type { Inspect } from '../../ports/inspect.js'
import type { OpsContext } from '../context.js'
import { type Found, ifUnchanged } from './found.js'

const PAGE = 200

/** Unfinished items that are in no list at all, so nothing would ever run them. Each was missing in two reads. */
export async function* stuckItemsIn(context: OpsContext): AsyncGenerator<readonly Found[], void> {
  const inspect = context.inspect('audit')
  let cursor: string | undefined
  do {
    const ask: Parameters<Inspect['stuckItems']>[0] = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
    const first = await inspect.stuckItems(ask)
    const again = first.items.length === 0 ? first : await inspect.stuckItems(ask)
    const still = new Set(again.items.map(({ envelope }) => envelope.id))
    yield first.items
      .filter(({ envelope }) => still.has(envelope.id))
      .map((view): Found => {
        const { id, type } = view.envelope
        const how =
          view.status === 'running'
            ? 'is marked as running, but no worker holds it'
            : 'is waiting, but has neither a due time nor a hold'
        return {
          code: 'stuck-item',
          id,
          text: `${id} (${type}) ${how}: nothing will ever run it.`,
          repair: 'Put it back into its queue, ready now.',
          fix: ifUnchanged(view, [{ do: 'release', id, delayMs: 0 }]),
        }
      })
    cursor = first.next
  } while (cursor !== undefined)
}
