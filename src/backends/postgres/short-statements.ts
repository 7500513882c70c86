import type { Queryable } from '../../drivers/postgres/index.js'
import { sqlStateOf } from '../../drivers/postgres/index.js'
import type { CommitResult } from '../../ports/settlement.js'
import { type CommonEnd, type CommonPush, MOST_AT_ONCE, SEPARATOR } from './common.js'
import type { Connection } from './connection.js'
import { guardedId } from './guarded-id.js'
import type { Locks } from './locks.js'
import type { Names } from './names.js'
import type { Vacuum } from './retention.js'
import { restOf, wholeMs } from './storable.js'

const END = 'select {schema}.end_items($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)'
const ADD = 'select {schema}.add_items($1, $2, $3, $4, $5, $6)'
/** What `end_items` raises when a caller has begun to wait for an item meanwhile. */
const AWAITED = 'M0001'

/** Undefined: nothing of it was done, and it has to go the long way. */
type Answer = CommitResult | undefined

interface EndReply {
  readonly heard: readonly number[] | null
  readonly others?: readonly [place: number, kind: 'r' | 's' | 'x'][] | null
}

/** What items of a batch share. */
interface Profile {
  readonly no: number
  readonly queue: number
  readonly queue_type: number
  readonly priority: number
  readonly attempt: number
  readonly delay: number
  readonly queue_at: number
  readonly start_at: number
  readonly rest: string | null
  readonly waiter: string | undefined
}

const APPLIED: CommitResult = Object.freeze({ kind: 'applied', closed: Object.freeze([]) as never })

/** The two statements that most settlements go by: an item that is new and alone in its group, and one that completes so. */
export class ShortStatements {
  readonly #connection: Connection
  readonly #names: Names
  readonly #locks: Locks
  readonly #vacuum: Vacuum

  constructor(connection: Connection, names: Names, locks: Locks, vacuum: Vacuum) {
    this.#connection = connection
    this.#names = names
    this.#locks = locks
    this.#vacuum = vacuum
  }

  end(ends: readonly CommonEnd[], within?: Queryable): Promise<readonly Answer[]> {
    return this.#inTurn(ends, (some) => this.#end(some, within), within)
  }

  async push(pushes: readonly CommonPush[], within?: Queryable): Promise<readonly Answer[]> {
    const unknown: { readonly queue: string; readonly type: string }[] = []
    for (const { push } of pushes) {
      const { type } = push.item
      if (this.#names.numbers(push.queue, type) === undefined) unknown.push({ queue: push.queue, type })
    }
    if (unknown.length > 0) await this.#names.learn(unknown)
    return this.#inTurn(pushes, (some) => this.#push(some, within), within)
  }

  /** One statement after the other: this is the order in which items arrive. */
  async #inTurn<T extends CommonEnd | CommonPush>(
    batch: readonly T[],
    send: (some: readonly T[]) => Promise<readonly Answer[]>,
    within: Queryable | undefined,
  ): Promise<readonly Answer[]> {
    const sendSome = (some: readonly T[]) => (within === undefined ? this.#past(some, send) : send(some))
    if (batch.length <= MOST_AT_ONCE) return sendSome(batch)
    const answers: Answer[] = []
    for (let from = 0; from < batch.length; from += MOST_AT_ONCE)
      answers.push(...(await sendSome(batch.slice(from, from + MOST_AT_ONCE))))
    return answers
  }

  #past<T extends CommonEnd | CommonPush>(
    batch: readonly T[],
    send: (some: readonly T[]) => Promise<readonly Answer[]>,
  ) {
    return this.#locks.past(batch, send, async (some) =>
      some.map(({ guard }) => (guard.by === 'lease' ? [guard.lease.id] : [])),
    )
  }

  async #end(ends: readonly CommonEnd[], within: Queryable | undefined): Promise<readonly Answer[]> {
    const { driver, sql } = await this.#connection.ready()
    const { complete, run } = ends[0]!
    const join = (textOf: (end: CommonEnd) => string, by = SEPARATOR) => ends.map(textOf).join(by)
    let text: string | null
    try {
      const [row] = await (within ?? driver).query<[string | null]>(
        sql('end', END, [
          this.#connection.now(),
          join(({ guard }) => guard.lease.id),
          join(({ guard }) => guard.lease.token),
          join(({ complete }) => complete.result ?? ''),
          join(({ value }) => value, ''),
          wholeMs(complete.keepMs),
          run?.worker ?? null,
          run === undefined ? null : join((end) => String(end.run?.attempt), ','),
          run === undefined ? null : join((end) => String(end.run?.startedAt), ','),
          run === undefined ? null : join((end) => String(end.run?.endedAt), ','),
        ]),
      )
      text = row![0]
    } catch (error) {
      if (sqlStateOf(error) === AWAITED) return ends.map(() => undefined)
      throw error
    }
    const answers: Answer[] = ends.map((end) => closing(end, false))
    if (text !== null) {
      const { heard, others } = JSON.parse(text) as EndReply
      for (const n of heard ?? []) answers[n - 1] = closing(ends[n - 1]!, true)
      for (const [n, kind] of others ?? []) answers[n - 1] = refused(kind, ends[n - 1]!)
    }
    this.#vacuum.ended(ends.length)
    return answers
  }

  async #push(pushes: readonly CommonPush[], within: Queryable | undefined): Promise<readonly Answer[]> {
    const profiles: Profile[] = []
    const known = new Map<string, number>()
    const of: number[] = []
    const ready = new Map<string, number>()
    let last: Profile | undefined
    for (const { push } of pushes) {
      if (last === undefined || !this.#hasProfile(push, last)) {
        const profile = this.#profileOf(push, profiles.length)
        const key = JSON.stringify({ ...profile, no: 0 })
        const no = known.get(key) ?? profile.no
        if (no === profile.no) {
          known.set(key, no)
          profiles.push(profile)
        }
        last = profiles[no]!
        const soonest = ready.get(push.queue)
        if (soonest === undefined || last.delay < soonest) ready.set(push.queue, last.delay)
      }
      of.push(last.no)
    }
    const { driver, sql } = await this.#connection.ready()
    const [row] = await (within ?? driver).query<[string | null]>(
      sql('add', ADD, [
        this.#connection.now(),
        pushes.map(({ push }) => push.item.id).join(SEPARATOR),
        pushes.map(({ push }) => push.item.input).join(SEPARATOR),
        profiles.length === 1 ? null : of.join(','),
        JSON.stringify(profiles),
        JSON.stringify([...ready]),
      ]),
    )
    const kinds = row![0]
    return pushes.map(({ guard }, n): Answer => {
      const kind = kinds?.[n] ?? 'a'
      if (kind === 'x') return undefined
      return kind === 'a' ? APPLIED : { kind: 'repeated', id: guardedId(guard) }
    })
  }

  #profileOf({ item, queue, delayMs }: CommonPush['push'], no: number): Profile {
    const { priority, attempt, queueAt, startAt, waiter } = item
    const numbers = this.#names.numbers(queue, item.type)
    if (numbers === undefined) throw new Error(`the number of ${queue} and ${item.type} was not requested`)
    return {
      no,
      queue: numbers.queue,
      queue_type: numbers.queueType,
      priority,
      attempt,
      delay: wholeMs(delayMs),
      queue_at: queueAt,
      start_at: startAt,
      rest: restOf(item),
      waiter,
    }
  }

  #hasProfile({ item, queue, delayMs }: CommonPush['push'], profile: Profile): boolean {
    return (
      item.queueAt === profile.queue_at &&
      item.startAt === profile.start_at &&
      item.priority === profile.priority &&
      item.attempt === profile.attempt &&
      item.waiter === profile.waiter &&
      wholeMs(delayMs) === profile.delay &&
      this.#names.numbers(queue, item.type)?.queueType === profile.queue_type &&
      restOf(item) === profile.rest
    )
  }
}

function closing({ guard, complete, value }: CommonEnd, watched: boolean): CommitResult {
  const { id } = guard.lease
  const { result } = complete
  // One for each item that ends: no object is made to be copied into this one.
  const closed: { groupId: string; value?: string; watched?: boolean } = { groupId: id }
  if (value !== '0' && result !== undefined) closed.value = result
  if (watched) closed.watched = watched
  return { kind: 'applied', closed: [closed] }
}

function refused(kind: 'r' | 's' | 'x', { guard }: CommonEnd): Answer {
  if (kind === 'x') return undefined
  return kind === 'r' ? { kind: 'repeated', id: guard.lease.id } : { kind: 'stale' }
}
