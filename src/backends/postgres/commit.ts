import type { EnlistedTransaction, Queryable, SqlValue } from '../../drivers/postgres/index.js'
import { quoteIdentifier } from '../../drivers/postgres/index.js'
import type { CommitResult, Settlement } from '../../ports/settlement.js'
import { isOnlyLogged } from '../shared/is-only-logged.js'
import { refusalOf } from '../shared/refusal.js'
import type { Announcer, MadeReady } from './announcer.js'
import { MOST_AT_ONCE, sortOut } from './common.js'
import type { Connection } from './connection.js'
import { type EncodedBatch, encodeBatch } from './encode.js'
import { additionsOf, foreignTo } from './enlist.js'
import { guardedId } from './guarded-id.js'
import { Locks } from './locks.js'
import type { Names } from './names.js'
import { Vacuum } from './retention.js'
import { ShortStatements } from './short-statements.js'
import { keepsInPostgres } from './storable.js'

const CALL = `select {schema}.commit_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`

/** Commits batches: through our own connections, or inside a transaction of the user. */
export class Committer {
  readonly #connection: Connection
  readonly #names: Names
  readonly #maxItemBytes: number
  readonly #vacuum: Vacuum
  readonly #locks: Locks
  readonly #short: ShortStatements
  readonly #announcer: Announcer

  constructor(connection: Connection, names: Names, announcer: Announcer, maxItemBytes: number) {
    this.#announcer = announcer
    this.#connection = connection
    this.#names = names
    this.#maxItemBytes = maxItemBytes
    this.#vacuum = new Vacuum(connection)
    this.#locks = new Locks(connection)
    this.#short = new ShortStatements(connection, names, this.#locks, this.#vacuum)
  }

  /** `within`: a transaction of ours. */
  async commit(batch: readonly Settlement[], within?: Queryable): Promise<readonly CommitResult[]> {
    if (!isOnlyLogged(batch)) await this.#connection.in('native')
    const results: (CommitResult | undefined)[] = batch.map((settlement) => this.#refused(settlement))
    const { ends, pushes, rest } = sortOut(batch, (at) => results[at] !== undefined)
    // What the short statements leave as it was.
    const left: number[] = []
    const put = (places: readonly { readonly at: number }[], answers: readonly (CommitResult | undefined)[]): void => {
      for (let n = 0; n < places.length; n += 1) {
        const { at } = places[n]!
        results[at] = answers[n]
        if (answers[n] === undefined) left.push(at)
      }
    }
    const theRest = async (places: readonly number[]): Promise<void> => {
      const answers = await this.#inWaves(
        places.map((at) => batch[at]!),
        (wave) => (within === undefined ? this.#sendUnlocked(wave) : this.#send(wave, within)),
      )
      for (const [n, at] of places.entries()) results[at] = answers[n]
    }
    const ways: (() => Promise<void>)[] = []
    if (ends.length > 0) {
      const all = ends.map(({ end }) => end)
      ways.push(async () => put(ends, await this.#short.end(all, within)))
    }
    if (pushes.length > 0) {
      const all = pushes.map(({ push }) => push)
      ways.push(async () => put(pushes, await this.#short.push(all, within)))
    }
    if (rest.length > 0) ways.push(() => theRest(rest))
    if (within === undefined && ways.length > 1) await allOf(ways.map((way) => way()))
    else for (const way of ways) await way()
    if (left.length > 0) await theRest(left.sort((a, b) => a - b))
    return results.map((result) => result!)
  }

  /** Inside a transaction of the user, which only adds: see `sql/enlist.ts`. */
  async enlist(batch: readonly Settlement[], tx: EnlistedTransaction): Promise<readonly CommitResult[]> {
    if (!isOnlyLogged(batch)) await this.#connection.in('native')
    return this.#inWaves(
      batch,
      (wave) => this.#add(wave, tx),
      batch.map((settlement) => this.#refused(settlement) ?? foreignTo(settlement)),
    )
  }

  async #inWaves(
    batch: readonly Settlement[],
    send: (wave: readonly Settlement[]) => Promise<readonly CommitResult[]>,
    results: (CommitResult | undefined)[] = batch.map(() => undefined),
  ): Promise<readonly CommitResult[]> {
    const first = new Map<string, number>()
    // The same guard twice: the second answers what it would answer after the first. Where that may be a conflict, which
    // leaves everything as it was, only the database knows.
    const same = batch.map((settlement, i) => {
      const key = results[i] === undefined ? keyOf(settlement) : undefined
      const known = key === undefined ? undefined : first.get(key)
      if (key === undefined || (known !== undefined && !mayConflict(batch[known]!))) return known
      first.set(key, i)
      return undefined
    })
    const sent = batch.map((_, i) => i).filter((i) => results[i] === undefined && same[i] === undefined)
    for (const wave of waves(sent, batch)) {
      const answers = await send(wave.map((i) => batch[i]!))
      for (const [place, i] of wave.entries()) results[i] = answers[place]
    }
    return batch.map((settlement, i): CommitResult => {
      const of = same[i]
      if (of === undefined) return results[i]!
      const before = results[of]!
      return before.kind === 'applied' ? { kind: 'repeated', id: guardedId(settlement.guard) } : before
    })
  }

  /** One that makes no sense (an effect without its fields) must not take its neighbours with it. */
  #refused(settlement: Settlement): CommitResult | undefined {
    try {
      return refusalOf(settlement, this.#maxItemBytes, keepsInPostgres)
    } catch (error) {
      return { kind: 'failed', error }
    }
  }

  #sendUnlocked(batch: readonly Settlement[]): Promise<readonly CommitResult[]> {
    return this.#locks.past(
      batch,
      (some) => this.#send(some, undefined),
      (some) => Promise.all(some.map(async (one) => (await this.#encode([one])).locks ?? [])),
    )
  }

  async #send(batch: readonly Settlement[], within: Queryable | undefined): Promise<readonly CommitResult[]> {
    const encoded = await this.#encode(batch)
    const { driver, sql } = await this.#connection.ready()
    const [row] = await (within ?? driver).query<[string]>(
      sql('commit', CALL, valuesOf(this.#connection.now(), encoded)),
    )
    this.#vacuum.ended(encoded.ends?.length ?? 0)
    return resultsFrom(row![0], batch, encoded)
  }

  async #add(batch: readonly Settlement[], tx: EnlistedTransaction): Promise<readonly CommitResult[]> {
    const encoded = await this.#encode(batch)
    const call = `${quoteIdentifier(this.#connection.schema)}.enlist`
    const text = JSON.stringify({ now: this.#connection.now(), ...additionsOf(batch, encoded) })
    const reply = await tx.callText(call, text)
    const { transaction, ready } = JSON.parse(reply) as {
      readonly transaction: string
      readonly ready: MadeReady | null
    }
    this.#announcer.add(transaction, ready ?? [])
    return resultsFrom(reply, batch, encoded)
  }

  async #encode(batch: readonly Settlement[]): Promise<EncodedBatch> {
    await this.#names.learn(queueTypesOf(batch))
    return encodeBatch(batch, (queue, type) => this.#names.numbers(queue, type))
  }
}

function valuesOf(now: number | null, b: EncodedBatch): SqlValue[] {
  const json = (rows: object | undefined) => (rows === undefined ? null : JSON.stringify(rows))
  return [
    ...[
      now,
      b.ids,
      b.tokens,
      b.absent,
      b.locks,
      b.touched,
      json(b.roots),
      json(b.children),
      json(b.ends),
      json(b.moves),
    ],
    ...[json(b.values), b.expects, json(b.gates), json(b.gateNotices), b.holdingGates, json(b.tags), json(b.ready)],
    json(b.actions),
  ]
}

function* queueTypesOf(batch: readonly Settlement[]): Iterable<{ readonly queue: string; readonly type: string }> {
  for (const { effects } of batch)
    for (const effect of effects) if (effect.do === 'enqueue') yield { queue: effect.queue, type: effect.item.type }
}

/** Waits for all of them, also where one fails: none is still being written when the caller repeats the batch. */
async function allOf(writes: readonly Promise<void>[]): Promise<void> {
  for (const one of await Promise.allSettled(writes)) if (one.status === 'rejected') throw one.reason
}

/** Settlements by a lease or for a new id happen once: the guard itself identifies them. */
function keyOf({ guard }: Settlement): string | undefined {
  if (guard.by === 'lease') return `${guard.lease.id}\0${guard.lease.token}`
  return guard.by === 'absent' ? `${guard.id}\0` : undefined
}

const mayConflict = ({ effects }: Settlement) =>
  effects.some((effect) => effect.do === 'setGroupValue' && effect.ifVersion !== undefined)

/**
 * The batch in parts that one statement each can take. A statement checks all its guards before the first effect, so a
 * guard goes after whatever the batch did before to the same item; and what people do goes after it as well, because a
 * statement does that last.
 */
function* waves(sent: readonly number[], batch: readonly Settlement[]): Iterable<readonly number[]> {
  let wave: number[] = []
  let seen = new Set<string>()
  let byPeople = new Set<string>()
  for (const i of sent) {
    const settlement = batch[i]!
    const isAction = isActionOfPeople(settlement)
    const touched = touchedBy(settlement)
    const isInTheWay =
      seen.has(guardedBy(settlement)) ||
      (isAction && touched.some((id) => seen.has(id))) ||
      (byPeople.size > 0 && touched.some((id) => byPeople.has(id)))
    if (isInTheWay || wave.length >= MOST_AT_ONCE) {
      yield wave
      wave = []
      seen = new Set()
      byPeople = new Set()
    }
    wave.push(i)
    for (const id of touched) {
      seen.add(id)
      if (isAction) byPeople.add(id)
    }
  }
  if (wave.length > 0) yield wave
}

function isActionOfPeople({ guard, effects }: Settlement): boolean {
  if (guard.by === 'status' || guard.by === 'schedule') return true
  return effects.some(
    ({ do: word }) => word === 'redrive' || word === 'delete' || word === 'requestCancel' || word === 'schedule',
  )
}

/** The item or schedule whose state decides; '' where nothing does. */
function guardedBy({ guard }: Settlement): string {
  if (guard.by === 'lease') return guard.lease.id
  if (guard.by === 'schedule') return `schedule ${guard.name}`
  return guard.by === 'none' ? '' : guard.id
}

function touchedBy(settlement: Settlement): string[] {
  const guarded = guardedBy(settlement)
  const touched = guarded === '' ? [] : [guarded]
  for (const effect of settlement.effects) {
    if (effect.do === 'enqueue') touched.push(effect.item.id)
    else if (effect.do === 'schedule') touched.push(`schedule ${effect.name}`)
    // The states of its members may decide it immediately.
    else if (effect.do === 'openGate') touched.push(...effect.members)
    else if ('id' in effect) touched.push(effect.id)
  }
  return touched
}

interface CommitReply {
  readonly kinds: string
  readonly closed?: readonly [s: number, groupId: string, value: string | null, watched: boolean][] | null
  readonly conflicts?:
    | readonly [s: number, groupId: string, value: string | null, final: boolean, version: number][]
    | null
}

const APPLIED: CommitResult = Object.freeze({ kind: 'applied', closed: Object.freeze([]) as never })

function resultsFrom(text: string, batch: readonly Settlement[], { own }: EncodedBatch): CommitResult[] {
  const { kinds, closed, conflicts } = JSON.parse(text) as CommitReply
  const results = batch.map(({ guard }, i): CommitResult => {
    const kind = kinds[i]
    const id = guardedId(guard)
    switch (kind) {
      case 'a':
        return APPLIED
      case 'o':
      case 'w': {
        const ended = own[i]
        return ended === undefined ? APPLIED : { kind: 'applied', closed: [closedGroup(id, ended.value, kind === 'w')] }
      }
      case 'r':
        return { kind: 'repeated', id }
      default:
        return { kind: 'stale' }
    }
  })
  for (const [s, groupId, value, watched] of closed ?? []) {
    const before = results[s - 1] as Extract<CommitResult, { kind: 'applied' }>
    results[s - 1] = { kind: 'applied', closed: [...before.closed, closedGroup(groupId, value ?? undefined, watched)] }
  }
  for (const [s, groupId, value, final, version] of conflicts ?? []) {
    results[s - 1] = { kind: 'conflict', groupId, now: { ...(value === null ? {} : { value }), final, version } }
  }
  return results
}

function closedGroup(groupId: string, value: string | undefined, watched: boolean) {
  return { groupId, ...(value === undefined ? {} : { value }), ...(watched ? { watched } : {}) }
}
