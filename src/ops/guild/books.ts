import type { LinkDoc, WritDoc } from '../../guild/clerk/writs/writ.js'
import type { ClockworksRetryConfig } from '../../guild/clockworks-retry/policy.js'
import type { DispatchRow, EngineRow, InputRequestDoc, RigRow, SlotRow, WaitRow } from '../../guild/spider/rigs/rig.js'
import type { ReadOnlyBook, Stacks, StacksApi } from '../../guild/stacks/api.js'
import { publishedSettings } from '../../guild/stacks/settings.js'
import type { DeadEvent } from '../../guild/stacks/watch/dead-events.js'
import { AmbiguousIdError, NAMED_IDS } from '../actions/errors.js'
import type { WritLogDoc } from './writ-log.js'

/**
 * What ops needs of a guild's document store: snapshots of its books. `watchers` shows whether a retry observer exists; the rest is
 * for acts on writs.
 */
export type GuildStacks = Pick<StacksApi, 'transaction'> & Partial<Pick<Stacks, 'watchers' | keyof StacksApi>>

/** The books of Clerk and Spider that ops reads. */
export interface GuildBooks {
  readonly writs: ReadOnlyBook<WritDoc>
  readonly links: ReadOnlyBook<LinkDoc>
  readonly rigs: ReadOnlyBook<RigRow>
  readonly engines: ReadOnlyBook<EngineRow>
  readonly dispatch: ReadOnlyBook<DispatchRow>
  readonly waits: ReadOnlyBook<WaitRow>
  readonly slots: ReadOnlyBook<SlotRow>
  readonly inputRequests: ReadOnlyBook<InputRequestDoc>
  readonly deadEvents: ReadOnlyBook<DeadEvent>
  /** What people did to writs. */
  readonly log: ReadOnlyBook<WritLogDoc>
  /** How often writs of each type are retried. */
  readonly retry: ClockworksRetryConfig
}

/** Runs `read` on one snapshot, so that a writ and its rigs fit together. It takes no lock. */
export function reading<R>(stacks: GuildStacks, read: (books: GuildBooks) => Promise<R>): Promise<R> {
  return stacks.transaction(
    async (tx) =>
      read({
        writs: tx.readBook('clerk', 'writs'),
        links: tx.readBook('clerk', 'links'),
        rigs: tx.readBook('spider', 'rigs'),
        engines: tx.readBook('spider', 'engines'),
        dispatch: tx.readBook('spider', 'dispatch'),
        waits: tx.readBook('spider', 'waits'),
        slots: tx.readBook('spider', 'slots'),
        inputRequests: tx.readBook('spider', 'input-requests'),
        deadEvents: tx.readBook('stacks', 'dead-events'),
        log: tx.readBook('clerk', 'log'),
        retry: (await publishedSettings<ClockworksRetryConfig>(tx, 'clockworks-retry')) ?? {},
      }),
    { readOnly: true },
  )
}

/** Sorts after every text with the same beginning. */
const LAST = '\u{10ffff}'

/** A document by its id or the beginning of it. One with exactly that id is always the one meant. */
export async function findByPrefix<T extends { readonly id: string }>(
  what: 'writ' | 'rig',
  book: ReadOnlyBook<T>,
  idOrPrefix: string,
): Promise<T | undefined> {
  const exact = await book.get(idOrPrefix)
  if (exact !== null) return exact
  const found = await book.find({
    where: [
      ['id', '>=', idOrPrefix],
      ['id', '<', `${idOrPrefix}${LAST}`],
    ],
    orderBy: ['id', 'asc'],
    limit: NAMED_IDS + 1,
  })
  if (found.length > 1)
    throw new AmbiguousIdError(
      what,
      idOrPrefix,
      found.map(({ id }) => id),
    )
  return found[0]
}
