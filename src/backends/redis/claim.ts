import { newToken } from '../../core/ids.js'
import type { At } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { ClaimReply, ClaimRequest } from '../../ports/ledger.js'
import { expiredShare } from '../shared/expired-share.js'
import type { RedisContext } from './context.js'
import { lightItems } from './light-items.js'
import { type Cell, envelopeFrom } from './read.js'
import type { Swept } from './retention.js'
import { msWord } from './time.js'

/** The most lapsed, due, expired or plain entries that one claim handles: the others are for the next. */
const STEP = 200
/** The most leases that one script hands out of a queue, or extends: more take another call. */
export const MAX_LEASES = 500

/** Where light-claim.lua could not serve a claim, so many claims after it are not even tried there. */
const NOT_TRIED = 16

/** Claims light items where only such wait, by a script that does little else, and otherwise by one that can do everything. */
export class Claims {
  readonly #context: RedisContext
  readonly #swept: Swept
  #notTried = 0

  constructor(context: RedisContext, swept: Swept) {
    this.#context = context
    this.#swept = swept
  }

  async claim(ask: ClaimRequest): Promise<ClaimReply> {
    const key = newToken()
    const leaseMs = Math.ceil(ask.leaseMs)
    const words = this.#notTried > 0 ? undefined : lightClaimWords(ask, key)
    if (words !== undefined) {
      const reply = await this.#context.run('light-claim', words)
      if (reply !== null) {
        const { claimed, hasExpired } = lightReplyFrom(reply, ask.queues[0]!.queue, key, leaseMs)
        // Where items end all the time, others are over all the time: that is swept beside the claims.
        this.#swept.removed(0, hasExpired)
        return this.#reported(claimed)
      }
      this.#notTried = NOT_TRIED
    } else {
      this.#notTried = Math.max(0, this.#notTried - 1)
    }
    const reply = claimReplyFrom(await this.#context.run('claim', claimWords(ask, key)), key, leaseMs)
    this.#swept.removed(reply.removed, reply.hasExpired)
    return this.#reported(reply.claimed)
  }

  #reported(reply: ClaimReply): ClaimReply {
    const removed = this.#swept.take()
    return removed === 0 ? reply : { ...reply, removed }
  }
}

/** The reply of light-claim.lua. */
function lightReplyFrom(reply: unknown, queue: string, key: string, leaseMs: number) {
  const [now, more, due, over, ...row] = reply as [number, number, number | null, number, ...unknown[]]
  const claimed: ClaimReply = {
    items: row.length === 0 ? [] : lightItems([LIGHT, queue, ...row], key, now + leaseMs),
    more: more === 1,
    ...(due === null ? undefined : { nextDueAt: due }),
    now,
  }
  return { claimed, hasExpired: over === 1 }
}

type Words = (string | number)[]

/** A claim as claim.lua reads it. */
function claimWords(ask: ClaimRequest, token: string): Words {
  const head = [token, msWord(ask.leaseMs) || '0', ask.worker, STEP, ask.rooms?.length ?? '']
  const rooms = roomWords(ask)
  const queues = ask.queues.flatMap(({ queue, max }) => {
    const most = atMost(MAX_LEASES, max)
    return [queue, most, expiredShare(most)]
  })
  return [...head, ...rooms, ...queues]
}

/** A claim as light-claim.lua reads it; undefined: only claim.lua can serve it. */
function lightClaimWords({ queues, rooms, leaseMs, worker }: ClaimRequest, token: string): Words | undefined {
  const [first, second] = queues
  if (first === undefined || second !== undefined || rooms === undefined) return undefined
  const head = [token, msWord(leaseMs) || '0', worker, first.queue, atMost(MAX_LEASES, first.max), rooms.length]
  return [...head, ...roomWords({ rooms })]
}

const roomWords = ({ rooms = [] }: Pick<ClaimRequest, 'rooms'>): Words =>
  rooms.flatMap(({ types, max }) => [atMost(MAX_LEASES, max), types.length, ...types])

const atMost = (most: number, asked: number): number => Math.min(most, Math.max(0, Math.floor(asked)))

/** The reply of claim.lua. */
function claimReplyFrom(
  reply: unknown,
  token: string,
  leaseMs: number,
): { readonly claimed: ClaimReply; readonly hasExpired: boolean; readonly removed: number } {
  const [at, more, due, expired, removed, unreadable, crashed, ...rows] = reply as [
    number,
    number,
    number | null,
    number,
    number,
    string[],
    string[],
    ...Cell[][],
  ]
  const bodies: { queue: string; body: string }[] = []
  for (let i = 0; i < unreadable.length; i += 2) bodies.push({ queue: unreadable[i]!, body: unreadable[i + 1]! })
  return {
    claimed: {
      items: itemsFrom(rows, token, at + leaseMs),
      more: more === 1,
      ...(due === null ? undefined : { nextDueAt: due }),
      now: at,
      ...(bodies.length === 0 ? undefined : { unreadable: bodies }),
      ...(crashed.length === 0 ? undefined : { crashed }),
    },
    hasExpired: expired === 1,
    removed,
  }
}

function itemsFrom(rows: readonly (readonly Cell[])[], token: string, until: At): readonly ClaimedItem[] {
  const items: ClaimedItem[] = []
  let whole = 0
  for (const row of rows) {
    if (row[0] !== LIGHT) items.push(claimedFrom(row, `${token}.${whole++}`, until))
    else for (const item of lightItems(row, token, until)) items.push(item)
  }
  return items
}

/** Begins a row with light items of one claim; others begin with an id. */
const LIGHT = 1

function claimedFrom(row: readonly Cell[], token: string, until: At): ClaimedItem {
  const [
    id,
    queue,
    body,
    head,
    type,
    group,
    attempt,
    startAt,
    queueAt,
    redrives,
    fence,
    lapses,
    crashes,
    deliveries,
    met,
    cancelled,
  ] = row
  const claimed = {
    lease: { id: String(id), queue: String(queue), token, fence: Number(fence), until },
    envelope: envelopeFrom([id!, body!, head!, type!, group!], attempt!, startAt!, queueAt!, redrives!),
    lapses: Number(lapses),
    crashes: Number(crashes),
    deliveries: Number(deliveries),
  }
  return {
    ...claimed,
    ...(met === null ? undefined : { gate: { met: met === '1' } }),
    ...(cancelled === null ? undefined : { cancelReason: String(cancelled) }),
  }
}
