import type { LinkDoc, WritDoc } from '../../guild/clerk/writs/writ.js'
import type { DispatchRow, EngineRow, InputRequestDoc, RigRow, SlotRow, WaitRow } from '../../guild/spider/rigs/rig.js'
import type { ReadOnlyBook, Stacks, StacksApi } from '../../guild/stacks/api.js'

/** What ops needs of a guild's document store: snapshots of its books. `watchers` shows whether a retry observer exists. */
export type GuildStacks = Pick<StacksApi, 'transaction'> & Partial<Pick<Stacks, 'watchers'>>

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
}

/** Runs `read` on one snapshot, so that a writ and its rigs fit together. It takes no lock. */
export function reading<R>(stacks: GuildStacks, read: (books: GuildBooks) => Promise<R>): Promise<R> {
  return stacks.transaction(
    (tx) =>
      read({
        writs: tx.readBook('clerk', 'writs'),
        links: tx.readBook('clerk', 'links'),
        rigs: tx.readBook('spider', 'rigs'),
        engines: tx.readBook('spider', 'engines'),
        dispatch: tx.readBook('spider', 'dispatch'),
        waits: tx.readBook('spider', 'waits'),
        slots: tx.readBook('spider', 'slots'),
        inputRequests: tx.readBook('spider', 'input-requests'),
      }),
    { readOnly: true },
  )
}
