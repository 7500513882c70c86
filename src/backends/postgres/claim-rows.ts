import type { At } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import { joinEnvelope } from '../shared/envelope-columns.js'
import { SEPARATOR } from './common.js'
import type { Names } from './names.js'

/** A row of `claim_ready`: of several items, whose values come joined, or, as the last one, of the claim itself. */
export type ClaimRow = [
  now: string | null,
  due: string | null,
  more: boolean | null,
  hasRaw: boolean | null,
  removed: number | null,
  cutOff: string | null,
  ids: string | null,
  heads: string | null,
  inputs: string | null,
  rests: string | null,
  groups: string | null,
  cancels: string | null,
]

/** What the last row tells. `cutOff`: the numbers of the queues and types of runs that were cut off. */
export function claimFrom([now, due, more, hasRaw, removed, cutOff]: ClaimRow) {
  return {
    now: Number(now),
    due: due === null ? undefined : Number(due),
    more: more === true,
    hasRaw: hasRaw === true,
    removed: removed ?? 0,
    cutOff: cutOff === null || cutOff === '' ? [] : cutOff.split(',').map(Number),
  }
}

/** What `joinable` in `sql/claim.ts` made of a text that the separator occurs in. */
function unescaped(text: string): string {
  return text.includes('\x1e') ? text.replaceAll('\x1e1', SEPARATOR).replaceAll('\x1e0', '\x1e') : text
}

const split = (joined: string | null): readonly string[] | undefined => joined?.split(SEPARATOR)

/** Reads the rows of claims. Of what one item shares with the one before it, little is read again. */
export class ClaimReader {
  readonly #names: Names

  constructor(names: Names) {
    this.#names = names
  }

  /** Puts the items of a row into their places among all of the claim. The token of each ends with its place. */
  async read(
    row: ClaimRow,
    lease: { readonly token: string; readonly until: At },
    items: ClaimedItem[],
  ): Promise<void> {
    const [, , , , , , ids, heads, inputs, rests, groups, cancels] = row.map((cell, n) =>
      n < 6 ? undefined : split(cell as string | null),
    )
    if (ids === undefined || heads === undefined || inputs === undefined) return
    for (const [n, escapedId] of ids.entries()) {
      const [place, no, priority, attempt, queueAt, startAt, fence, lapses, crashes, deliveries, met] =
        heads[n]!.split(',')
      const queueType = Number(no)
      const { queue, type } = this.#names.knownName(queueType) ?? (await this.#names.nameOf(queueType))
      const id = unescaped(escapedId)
      const groupId = groups?.[n]
      const rest = rests?.[n]
      const cancelled = cancels?.[n]
      const columns = {
        id,
        type,
        groupId: groupId === undefined || groupId === '' ? id : unescaped(groupId),
        input: unescaped(inputs[n]!),
        queueAt: Number(queueAt),
        startAt: Number(startAt),
        attempt: Number(attempt),
        priority: Number(priority),
      }
      items[Number(place) - 1] = {
        lease: { id, queue, token: `${lease.token}.${place}`, fence: Number(fence), until: lease.until },
        envelope: joinEnvelope(columns, rest === undefined || rest === '' ? null : rest),
        lapses: Number(lapses),
        crashes: Number(crashes),
        deliveries: Number(deliveries),
        // A reason may be empty: a sign stands before it.
        ...(cancelled === undefined || cancelled === '' ? {} : { cancelReason: unescaped(cancelled).slice(1) }),
        ...(met === undefined ? {} : { gate: { met: met === 't' } }),
      }
    }
  }
}
