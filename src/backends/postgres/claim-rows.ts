import type { At } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import { joinSharedRest } from '../shared/usual-rest.js'
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
    const ids = split(row[6])
    const heads = split(row[7])
    const inputs = split(row[8])
    if (ids === undefined || heads === undefined || inputs === undefined) return
    const rests = split(row[9])
    const groups = split(row[10])
    const cancels = split(row[11])
    for (let n = 0; n < ids.length; n += 1) {
      const head = new Head(heads[n]!)
      const place = head.number()
      const queueType = head.number()
      const { queue, type } = this.#names.knownName(queueType) ?? (await this.#names.nameOf(queueType))
      const id = unescaped(ids[n]!)
      const groupId = groups?.[n]
      const rest = rests?.[n]
      const priority = head.number()
      const attempt = head.number()
      const columns = {
        id,
        type,
        groupId: groupId === undefined || groupId === '' ? id : unescaped(groupId),
        input: unescaped(inputs[n]!),
        queueAt: head.number(),
        startAt: head.number(),
        attempt,
        priority,
      }
      const item: ClaimedItem = {
        lease: { id, queue, token: `${lease.token}.${place}`, fence: head.number(), until: lease.until },
        envelope: joinSharedRest(columns, rest === undefined || rest === '' ? null : rest),
        lapses: head.number(),
        crashes: head.number(),
        deliveries: head.number(),
      }
      items[place - 1] = head.isAtEnd ? item : { ...item, gate: { met: head.text() === 't' } }
      const cancelled = cancels?.[n]
      // A reason may be empty: a sign stands before it.
      if (cancelled !== undefined && cancelled !== '')
        items[place - 1] = { ...items[place - 1]!, cancelReason: unescaped(cancelled).slice(1) }
    }
  }
}

/** The fields of a head, one after the other: to split it would make a list and a dozen texts for each item. */
class Head {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.#at > this.#text.length
  }

  text(): string {
    const comma = this.#text.indexOf(',', this.#at)
    const end = comma < 0 ? this.#text.length : comma
    const field = this.#text.slice(this.#at, end)
    this.#at = end + 1
    return field
  }

  number(): number {
    const from = this.#at
    let value = 0
    for (let at = from; ; at += 1) {
      const code = this.#text.charCodeAt(at)
      // A comma, or the end.
      if (code === COMMA || at === this.#text.length) {
        this.#at = at + 1
        return value
      }
      // A sign or a fraction, or more digits than can be added up exactly.
      if (code < ZERO || code > NINE || at - from >= EXACT_DIGITS) return Number(this.text())
      value = value * 10 + code - ZERO
    }
  }
}

const COMMA = 44
const ZERO = 48
const NINE = 57
const EXACT_DIGITS = 15
