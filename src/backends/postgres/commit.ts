import { MillraceError } from '../../core/error.js'
import type { EnlistedTransaction, Queryable, SqlValue } from '../../drivers/postgres/index.js'
import { isLocked, quoteIdentifier } from '../../drivers/postgres/index.js'
import { refusalOf } from '../../ports/refusal.js'
import type { CommitResult, Guard, Settlement } from '../../ports/settlement.js'
import type { Connection } from './connection.js'
import { type EncodedBatch, encodeBatch } from './encode.js'
import { additionsOf, foreignTo } from './enlisted.js'
import { Housekeeping } from './housekeeping.js'
import type { Names } from './names.js'
import { keepsInPostgres } from './refusal.js'

/** So many settlements go into one statement: their places are numbered in twenty bits. */
const MOST_AT_ONCE = 1_000

const CALL = `select {schema}.commit_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`

/** Another transaction holds a row, or writes the same id, and did not end in time. Nothing of the settlement happened. */
class LockedError extends MillraceError {
  constructor(id: string, cause: unknown) {
    super(
      'POSTGRES_LOCKED',
      `${id === '' ? 'A settlement' : `The item ${id}`} could not be written: an open transaction holds a row that it needs, or has enqueued the ` +
        'same id. End that transaction, or try again once it has ended.',
      { facts: { id }, cause },
    )
  }
}

/** Commits batches: through our own connections, or inside a transaction of the user. */
export class Committer {
  readonly #connection: Connection
  readonly #names: Names
  readonly #maxItemBytes: number
  readonly #housekeeping: Housekeeping

  constructor(connection: Connection, names: Names, maxItemBytes: number) {
    this.#connection = connection
    this.#names = names
    this.#maxItemBytes = maxItemBytes
    this.#housekeeping = new Housekeeping(connection)
  }

  /** `within`: a transaction of ours. */
  async commit(batch: readonly Settlement[], within?: Queryable): Promise<readonly CommitResult[]> {
    return this.#settled(
      batch,
      (settlement) => this.#refused(settlement),
      (wave) => (within === undefined ? this.#sendUnlocked(wave) : this.#send(wave, within)),
    )
  }

  /** Inside a transaction of the user, which only adds: see `sql/enlist.ts`. */
  async enlist(batch: readonly Settlement[], tx: EnlistedTransaction): Promise<readonly CommitResult[]> {
    return this.#settled(
      batch,
      (settlement) => this.#refused(settlement) ?? foreignTo(settlement),
      (wave) => this.#add(wave, tx),
    )
  }

  async #settled(
    batch: readonly Settlement[],
    refused: (settlement: Settlement) => CommitResult | undefined,
    send: (wave: readonly Settlement[]) => Promise<readonly CommitResult[]>,
  ): Promise<readonly CommitResult[]> {
    await this.#connection.in('native')
    const results: (CommitResult | undefined)[] = batch.map(refused)
    const first = new Map<string, number>()
    // The same guard twice: the second answers what it would answer after the first. Where that may be a conflict, which
    // leaves everything as it was, only the database can tell.
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
      return before.kind === 'applied' ? { kind: 'repeated', id: idOf(settlement.guard) } : before
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

  /**
   * A row that a transaction of the user holds must not hold up its neighbours: the batch goes on in halves, until only those settlements
   * fail that need the row.
   */
  async #sendUnlocked(batch: readonly Settlement[]): Promise<readonly CommitResult[]> {
    try {
      return await this.#send(batch, undefined)
    } catch (error) {
      if (!isLocked(error)) throw error
      if (batch.length === 1) return [{ kind: 'failed', error: new LockedError(idOf(batch[0]!.guard), error) }]
      const middle = batch.length >> 1
      return [...(await this.#sendUnlocked(batch.slice(0, middle))), ...(await this.#sendUnlocked(batch.slice(middle)))]
    }
  }

  async #send(batch: readonly Settlement[], within: Queryable | undefined): Promise<readonly CommitResult[]> {
    const encoded = await this.#encode(batch)
    const { driver, sql } = await this.#connection.ready()
    const [row] = await (within ?? driver).query<[string]>(
      sql('commit', CALL, valuesOf(this.#connection.now(), encoded)),
    )
    this.#housekeeping.ended(encoded.ends?.length ?? 0)
    return resultsFrom(row![0], batch, encoded)
  }

  async #add(batch: readonly Settlement[], tx: EnlistedTransaction): Promise<readonly CommitResult[]> {
    const encoded = await this.#encode(batch)
    const call = `${quoteIdentifier(this.#connection.schema)}.enlist`
    const text = JSON.stringify({ now: this.#connection.now(), ...additionsOf(batch, encoded) })
    return resultsFrom(await tx.callText(call, text), batch, encoded)
  }

  async #encode(batch: readonly Settlement[]): Promise<EncodedBatch> {
    await this.#names.learn(placesOf(batch))
    return encodeBatch(batch, (queue, type) => this.#names.home(queue, type))
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
    ...[json(b.said), b.expects, json(b.gates), json(b.tells), b.looks, json(b.tags), json(b.ready)],
    json(b.rare),
  ]
}

function* placesOf(batch: readonly Settlement[]): Iterable<{ readonly queue: string; readonly type: string }> {
  for (const { effects } of batch)
    for (const effect of effects) if (effect.do === 'push') yield { queue: effect.queue, type: effect.item.type }
}

/** Settlements by a lease or for a new id happen once: the guard itself tells them apart. */
function keyOf({ guard }: Settlement): string | undefined {
  if (guard.by === 'lease') return `${guard.lease.id}\0${guard.lease.token}`
  return guard.by === 'absent' ? `${guard.id}\0` : undefined
}

function idOf(guard: Guard): string {
  return guard.by === 'lease' ? guard.lease.id : guard.by === 'absent' || guard.by === 'status' ? guard.id : ''
}

const mayConflict = ({ effects }: Settlement) =>
  effects.some((effect) => effect.do === 'contribute' && effect.expect !== undefined)

/**
 * The batch in parts that one statement each can take. A statement looks at all its guards before the first effect, so a
 * guard goes after whatever the batch did before to the same item; and what people do goes after it as well, because a
 * statement does that last.
 */
function* waves(sent: readonly number[], batch: readonly Settlement[]): Iterable<readonly number[]> {
  let wave: number[] = []
  let seen = new Set<string>()
  let rare = new Set<string>()
  for (const i of sent) {
    const settlement = batch[i]!
    const isRare = isPeoples(settlement)
    const touched = touchedBy(settlement)
    const isInTheWay =
      seen.has(guardedBy(settlement)) ||
      (isRare && touched.some((id) => seen.has(id))) ||
      (rare.size > 0 && touched.some((id) => rare.has(id)))
    if (isInTheWay || wave.length >= MOST_AT_ONCE) {
      yield wave
      wave = []
      seen = new Set()
      rare = new Set()
    }
    wave.push(i)
    for (const id of touched) {
      seen.add(id)
      if (isRare) rare.add(id)
    }
  }
  if (wave.length > 0) yield wave
}

function isPeoples({ guard, effects }: Settlement): boolean {
  if (guard.by === 'status' || guard.by === 'fire') return true
  return effects.some(
    ({ do: word }) => word === 'reopen' || word === 'erase' || word === 'cancel' || word === 'schedule',
  )
}

/** The item or schedule whose state decides; '' where nothing does. */
function guardedBy({ guard }: Settlement): string {
  if (guard.by === 'lease') return guard.lease.id
  if (guard.by === 'fire') return `schedule ${guard.name}`
  return guard.by === 'none' ? '' : guard.id
}

function touchedBy(settlement: Settlement): string[] {
  const guarded = guardedBy(settlement)
  const touched = guarded === '' ? [] : [guarded]
  for (const effect of settlement.effects) {
    if (effect.do === 'push') touched.push(effect.item.id)
    else if (effect.do === 'schedule') touched.push(`schedule ${effect.name}`)
    // How its members stand decides at once.
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
    const id = idOf(guard)
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
