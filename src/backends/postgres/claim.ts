import { newToken } from '../../core/ids.js'
import { isExpired, readEnvelope } from '../../ports/envelope.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { ClaimReply, ClaimRequest, Room } from '../../ports/ledger.js'
import { NOT_AN_ENVELOPE } from '../../ports/pushed-natively.js'
import type { Settlement } from '../../ports/settlement.js'
import { expiredShare } from '../shared/expired-share.js'
import { ClaimReader, type ClaimRow, claimFrom } from './claim-rows.js'
import type { Committer } from './commit.js'
import type { Connection } from './connection.js'
import type { Names } from './names.js'
import { isUnstorable, wholeMs } from './storable.js'

/** How many lapsed leases and due items one claim brings back. */
const STEP = 1_000
const MOST = 10_000

const CALL = 'select * from {schema}.claim_ready($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)'
const BURY = 'select {schema}.bury($1, $2, $3, $4, $5, $6)'
const TAKE = 'select * from {schema}.take_messages($1, $2, $3)'

const atMost = (max: number): number => Math.max(0, Math.min(MOST, Math.floor(max)))

/** Types with the number of their room, from 1, and how much each has. Nulls: there is room for any type. */
function roomsAsArrays(rooms: readonly Room[] | undefined) {
  if (rooms === undefined) return { types: null, inRoom: null, sizes: null }
  const types: string[] = []
  const inRoom: number[] = []
  for (const [i, room] of rooms.entries()) {
    for (const type of room.types) {
      if (isUnstorable(type)) continue
      types.push(type)
      inRoom.push(i + 1)
    }
  }
  return { types, inRoom, sizes: rooms.map(({ max }) => atMost(max)) }
}

/** One queue of a claim, with how many expired items it may hand out that take no room. */
type Source = ClaimRequest['queues'][number] & { readonly expired: number }

/** What is left of a claim once it has these items. They come queue by queue, and those that took no room before the others. */
function leftOf(from: readonly Source[], rooms: readonly Room[] | undefined, { items, now }: ClaimReply) {
  const inRoom: ClaimedItem[] = []
  const left = from.map(({ queue, max, expired }): Source => {
    const got = items.filter(({ lease }) => lease.queue === queue)
    const late =
      rooms === undefined ? 0 : got.slice(0, expired).filter(({ envelope }) => isExpired(envelope, now)).length
    inRoom.push(...got.slice(late))
    return { queue, max: max - got.length, expired: expired - late }
  })
  const taken = (types: readonly string[]) => inRoom.filter(({ envelope }) => types.includes(envelope.type)).length
  return { from: left, rooms: rooms?.map(({ types, max }) => ({ types, max: max - taken(types) })) }
}

type Unreadable = NonNullable<ClaimReply['unreadable']>[number]

/** Claims items; bodies that came past the ledger become items on the way. */
export class Claimer {
  readonly #connection: Connection
  readonly #names: Names
  readonly #committer: Committer
  readonly #reader: ClaimReader

  constructor(connection: Connection, names: Names, committer: Committer) {
    this.#connection = connection
    this.#names = names
    this.#committer = committer
    this.#reader = new ClaimReader(names)
  }

  async claim(ask: ClaimRequest): Promise<ClaimReply> {
    // A claim from no queue only asks for the time.
    if (ask.queues.length > 0) await this.#connection.in('native')
    const from = ask.queues.map(({ queue, max }) => ({ queue, max, expired: expiredShare(atMost(max)) }))
    const first = await this.#claim(ask, from, ask.rooms)
    if (!first.hasRaw) return first.reply
    const unreadable: Unreadable[] = []
    for (const { queue } of ask.queues) unreadable.push(...(await this.#adopt(queue)))
    const left = leftOf(from, ask.rooms, first.reply)
    const { reply, hasRaw } = await this.#claim(ask, left.from, left.rooms)
    const crashed = [...(first.reply.crashed ?? []), ...(reply.crashed ?? [])]
    const removed = (first.reply.removed ?? 0) + (reply.removed ?? 0)
    return {
      ...reply,
      items: [...first.reply.items, ...reply.items],
      // The first was asked with all the room and the whole share, as the same claim would be again.
      more: first.reply.more || reply.more || hasRaw,
      ...(crashed.length === 0 ? {} : { crashed }),
      ...(removed === 0 ? {} : { removed }),
      ...(unreadable.length === 0 ? {} : { unreadable }),
    }
  }

  async #claim(
    ask: ClaimRequest,
    from: readonly Source[],
    rooms: readonly Room[] | undefined,
  ): Promise<{ readonly reply: ClaimReply; readonly hasRaw: boolean }> {
    const { driver, sql } = await this.#connection.ready()
    const queues: number[] = []
    const most: number[] = []
    for (const { queue, max } of from) {
      queues.push(await this.#names.queueNo(queue))
      most.push(atMost(max))
    }
    const token = newToken()
    const leaseMs = wholeMs(ask.leaseMs)
    const { types, inRoom, sizes } = roomsAsArrays(rooms)
    const rows = await driver.query<ClaimRow>(
      sql('claim', CALL, [
        this.#connection.now(),
        token,
        leaseMs,
        ask.worker,
        STEP,
        queues,
        most,
        from.map(({ expired }) => expired),
        types,
        inRoom,
        sizes,
      ]),
    )
    const { now, due, more, hasRaw, removed, cutOff } = claimFrom(rows.pop()!)
    const items: ClaimedItem[] = []
    const lease = { token, until: now + leaseMs }
    for (const row of rows) await this.#reader.read(row, lease, items)
    const crashed: string[] = []
    for (const no of cutOff) crashed.push((await this.#names.nameOf(no)).type)
    const reply = {
      items,
      more,
      now,
      ...(due === undefined ? {} : { nextDueAt: due }),
      ...(crashed.length === 0 ? {} : { crashed }),
      ...(removed > 0 ? { removed } : {}),
    }
    return { reply, hasRaw }
  }

  /** Bodies leave the plain queue and become items in one transaction; those that are no envelopes are reported. */
  async #adopt(queue: string): Promise<readonly Unreadable[]> {
    const { driver, sql } = await this.#connection.ready()
    const queueNo = await this.#names.queueNo(queue)
    for (;;) {
      let unknown: { readonly queue: string; readonly type: string }[] = []
      const adopted = await driver.transaction(async (tx) => {
        const rows = await tx.query<[body: string, priority: number, id: string]>(
          sql('take', TAKE, [this.#connection.now(), queueNo, STEP]),
        )
        const unreadable: Unreadable[] = []
        const batch: Settlement[] = []
        unknown = []
        const lost: { readonly body: string; readonly id: string }[] = []
        for (const [body, , id] of rows) {
          const item = readEnvelope(body)
          if (item === undefined) {
            unreadable.push({ queue, body })
            lost.push({ body, id })
          } else if (this.#names.numbers(queue, item.type) === undefined) unknown.push({ queue, type: item.type })
          else
            batch.push({ guard: { by: 'absent', id: item.id }, effects: [{ do: 'enqueue', item, queue, delayMs: 0 }] })
        }
        // Numbers are asked for outside: the connection of this transaction may be the only one. Nothing is taken then.
        if (unknown.length > 0) await tx.query({ name: '', text: 'rollback' })
        else {
          if (batch.length > 0) await this.#committer.commit(batch, tx)
          // Their senders were told that they are accepted: they are kept where people look.
          for (const { body, id } of lost)
            await tx.query(sql('bury', BURY, [this.#connection.now(), queueNo, body, NOT_AN_ENVELOPE, id, null]))
        }
        return unreadable
      })
      if (unknown.length === 0) return adopted
      await this.#names.learn(unknown)
    }
  }
}
