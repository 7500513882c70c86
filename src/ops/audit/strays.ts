import type { Inspect } from '../../ports/ledger.js'
import type { Desk } from '../desk.js'
import { type Found, onlyIfStill } from './suspicion.js'

const PAGE = 200

/** Unfinished items that stand in no list at all: nothing would ever put them to work. Each was missing at two looks. */
export async function* straysIn(desk: Desk): AsyncGenerator<readonly Found[], void> {
  const inspect = desk.inspect('audit')
  let cursor: string | undefined
  do {
    const ask: Parameters<Inspect['strays']>[0] = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
    const first = await inspect.strays(ask)
    const again = first.items.length === 0 ? first : await inspect.strays(ask)
    const still = new Set(again.items.map(({ envelope }) => envelope.id))
    yield first.items
      .filter(({ envelope }) => still.has(envelope.id))
      .map((view): Found => {
        const { id, type } = view.envelope
        const how =
          view.status === 'running'
            ? 'is marked as running, but nobody holds it'
            : 'waits, but has neither a time nor anything that holds it'
        return {
          code: 'stray',
          id,
          text: `${id} (${type}) ${how}: nothing will ever put it to work.`,
          repair: 'Put it back into its queue, ready now.',
          mend: onlyIfStill(view, [{ do: 'release', id, delayMs: 0 }]),
        }
      })
    cursor = first.next
  } while (cursor !== undefined)
}
