import type { At } from '../../core/time/time.js'
import type { EnvelopeHead } from '../../ports/item.js'
import type { ClosedGroup, Settlement } from '../../ports/settlement.js'
import type { EngineContext } from '../engine-context.js'
import type { RunPendingSettlement } from './pending-settlement.js'

/** A group whose last open item has ended. `text`: its value as it is stored; `value`: that value decoded. */
export type GroupClosed = (groupId: string, text: string | undefined, value: unknown, isWatched: boolean) => void

/**
 * Reports groups that are complete: as `group-done` events, and to `onClosed`, which resolves the callers that wait for them. The
 * backend closes a group, when the effect `leaveGroup` (end-effects.ts) brings its open count to 0 (in memory: groups/close-groups.ts).
 */
export class ClosedGroupReporter {
  readonly #context: EngineContext
  readonly #onClosed: GroupClosed

  constructor(context: EngineContext, onClosed: GroupClosed) {
    this.#context = context
    this.#onClosed = onClosed
  }

  closed({ groupId, value: text, watched }: ClosedGroup, at: At = this.#context.now()): void {
    const { o, recorder } = this.#context
    let value: unknown
    try {
      value = text === undefined ? undefined : o.codec.parse(text)
    } catch (error) {
      this.#context.failed(error, 'commit')
    }
    recorder.groupDone(groupId, value, at)
    this.#onClosed(groupId, text, value, watched === true)
  }

  /** Reports the groups that a settlement of this process has closed. */
  settled({ ran, result, settlement }: RunPendingSettlement, at: At): void {
    if (result?.kind === 'applied') for (const group of result.closed) this.closed(group, at)
    // The first reply was lost. On plain ports another process may have completed the settlement, and has reported the group.
    const isReplyLost = result?.kind === 'repeated' && this.#context.ledger.atomic
    const group = isReplyLost ? closedBySingleItem(ran.item.envelope, settlement) : undefined
    if (group?.isFolded === true) void this.#readAndReport(group)
    else if (group !== undefined) this.closed(group, at)
  }

  /** If the read fails, the callers that wait poll for the group themselves. */
  async #readAndReport({ groupId, watched = false }: ClosedGroup): Promise<void> {
    try {
      const [group] = await this.#context.ledger.groups([groupId])
      if (group === undefined) return
      this.closed({ groupId, watched, ...(group.value === undefined ? {} : { value: group.value }) })
    } catch (error) {
      this.#context.failed(error, 'commit')
    }
  }
}

/**
 * The group that an item closed by its end as the only member: a root that queued nothing. That is certain even where the reply
 * was lost. In other groups another item may have been the last, and its process has reported the group.
 *
 * `isFolded`: the contribution was folded again before it was sent again, perhaps on itself. Only the backend knows the value.
 */
export function closedBySingleItem(
  { parent, groupId }: EnvelopeHead,
  { effects }: Settlement,
): (ClosedGroup & { readonly isFolded: boolean }) | undefined {
  const hasEnded = effects.some((effect) => effect.do === 'complete' || effect.do === 'deadLetter')
  const hasQueued = effects.some((effect) => effect.do === 'enqueue')
  if (!hasEnded || hasQueued || parent !== undefined) return undefined
  const contribution = effects.findLast((effect) => effect.do === 'setGroupValue')
  const isFolded = contribution?.ifVersion !== undefined
  // Whether another process waits was part of the lost reply. Watched: the group must not count as unhandled for that.
  return { groupId, watched: true, isFolded, ...(contribution === undefined ? {} : { value: contribution.value }) }
}
