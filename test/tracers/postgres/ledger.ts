import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import type { At } from '../../../src/core/time.js'
import type { Claimed } from '../../../src/ports/item.js'
import type { ClaimAsk, ClaimReply, ItemView } from '../../../src/ports/ledger.js'
import type { CommitResult, GroupValue, Settlement } from '../../../src/ports/settlement.js'
import { fromColumns } from '../columns.js'
import { tracedGuard } from '../sorted-effects.js'
import type { Tracer } from '../tracer.js'
import { type StoredItem, viewFrom } from '../view.js'
import { type EncodedBatch, encodeBatch, refusal } from './encode.js'

/** How many lapsed leases and due items one claim brings back. */
const STEP = 1_000
/** The time that was given as $2, or the server's. */
const NOW = 'coalesce($2, (extract(epoch from clock_timestamp()) * 1000)::bigint)'

export interface PostgresTracerOptions {
  readonly client: pg.Client
  readonly schema: string
  readonly now?: () => At
}

/** Creates schema, tables and functions. */
export async function migrate(client: pg.Client, schema: string): Promise<void> {
  const quoted = pg.escapeIdentifier(schema)
  const sql = ['schema.sql', 'claim.sql', 'commit.sql'].map((file) =>
    readFileSync(new URL(file, import.meta.url), 'utf8')
      .replaceAll('{schema}', quoted)
      // Inside a text literal of a function's body.
      .replaceAll('{schema_text}', quoted.replaceAll("'", "''")),
  )
  await client.query(`create schema ${quoted}; ${sql.join('\n')}`)
}

export class PostgresTracer implements Tracer {
  readonly #client: pg.Client
  readonly #schema: string
  readonly #now: () => At | null
  #answers = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: PostgresTracerOptions) {
    this.#client = options.client
    this.#schema = pg.escapeIdentifier(options.schema)
    this.#now = options.now ?? (() => null)
    // The server ends every round trip with this message, whatever was sent in it.
    const { connection } = options.client as unknown as { connection: NodeJS.EventEmitter }
    connection.on('readyForQuery', () => {
      this.#answers += 1
    })
  }

  roundTrips(): number {
    return this.#answers
  }

  async commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]> {
    const results: (CommitResult | undefined)[] = batch.map(refusal)
    // The same guard twice: the second answers what it would answer after the first.
    const first = new Map<string, number>()
    const same = batch.map((settlement, i) => {
      if (results[i] !== undefined) return undefined
      const { id, token } = tracedGuard(settlement)
      const key = `${id}\0${token ?? ''}`
      const known = first.get(key)
      if (known === undefined) first.set(key, i)
      return known
    })
    const sent = batch.map((_, i) => i).filter((i) => results[i] === undefined && same[i] === undefined)
    const answers = sent.length === 0 ? [] : await this.#commit(sent.map((i) => batch[i]!))
    for (const [place, i] of sent.entries()) results[i] = answers[place]
    return batch.map((settlement, i): CommitResult => {
      const of = same[i]
      if (of === undefined) return results[i]!
      const before = results[of]!
      return before.kind === 'applied' ? { kind: 'repeated', id: tracedGuard(settlement).id } : before
    })
  }

  /** One connection does one thing at a time; who calls meanwhile waits here. */
  #query<R extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<R>> {
    const answer = this.#last.then(() => this.#client.query<R>(query))
    this.#last = answer.catch(() => {})
    return answer
  }

  async #commit(batch: readonly Settlement[]): Promise<CommitResult[]> {
    const b = encodeBatch(batch)
    const { rows } = await this.#query<{ reply: string }>({
      name: 'millrace_commit',
      text: `select ${this.#schema}.commit_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) as reply`,
      values: [
        ...[this.#now(), b.ids, b.tokens, b.absent, b.locks, b.touched, b.roots, b.children, b.ends],
        ...[b.moves, b.said, b.expects, b.gates, b.strangers, b.tells, b.looks],
      ],
    })
    return resultsFrom(rows[0]!.reply, batch, b.own)
  }

  async claim(ask: ClaimAsk): Promise<ClaimReply> {
    const token = randomUUID()
    const { rows } = await this.#query<ClaimRow>({
      name: 'millrace_claim',
      text: `select * from ${this.#schema}.claim_ready($1, $2, $3, $4, $5, $6, $7, $8)`,
      values: [
        ...[this.#now(), token, ask.leaseMs, ask.worker, ask.startNow, STEP],
        ...[ask.from.map(({ queue }) => queue), ask.from.map(({ max }) => max)],
      ],
      rowMode: 'array',
    } as pg.QueryConfig)
    const [, , , , , , at, due, , , , , , , , more] = rows.pop()!
    const until = Number(at) + ask.leaseMs
    return {
      items: rows.map((row) => claimedFrom(row, token, until)),
      more,
      ...(due === null ? {} : { nextDueAt: Number(due) }),
      at: Number(at),
    }
  }

  async read(ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    const { rows } = await this.#client.query<{ readonly row: StoredRow; readonly now: string }>(
      `select row_to_json(x) as row, ${NOW} as now from (
         select id, queue, type, group_id, priority, attempt, queue_at, start_at, input, rest, run_at, lapses, crashes,
                case when state = 2 then 'running' else 'pending' end as status, due_at, hold_by, hold_key, worker,
                lease_until, null as ending, null as class, null as outcome, null as end_at
           from ${this.#schema}.item where id = any($1)
         union all
         select id, queue, type, group_id, priority, attempt, queue_at, start_at, input, rest, run_at, lapses, crashes,
                case when is_success then 'success' else 'dead' end, null, null, null, null, null, ending, class, outcome,
                end_at
           from ${this.#schema}.finished
          where id = any($1) and gone_at > ${NOW}
       ) x`,
      [ids, this.#now()],
    )
    const found = new Map(rows.map(({ row, now }) => [row.id, viewFrom(storedItem(row), Number(now))]))
    return ids.map((id) => found.get(id))
  }

  async groups(ids: readonly string[]): Promise<readonly ((GroupValue & { readonly open: number }) | undefined)[]> {
    const { rows } = await this.#client.query<GroupRow>(
      `select id, open, value, final, version from ${this.#schema}.item_group
        where id = any($1) and (open > 0 or gone_at is null or gone_at > ${NOW})
       union all select id, 1, null, false, 0 from ${this.#schema}.item where is_alone and id = any($1)
       union all select id, 0, group_value, group_final, group_version from ${this.#schema}.finished
        where is_alone and id = any($1) and gone_at > ${NOW}`,
      [ids, this.#now()],
    )
    const found = new Map(rows.map((row) => [row.id, row]))
    return ids.map((id) => {
      const row = found.get(id)
      if (row === undefined) return undefined
      const { open, value, final, version } = row
      return { ...(value === null ? {} : { value }), open, final, version }
    })
  }

  async close(): Promise<void> {
    await this.#client.end()
  }
}

/** The columns of `claim_ready`, in its order. 64-bit numbers come as text. */
type ClaimRow = [
  id: string,
  queue: string,
  type: string,
  groupId: string,
  priority: number,
  attempt: number,
  queueAt: string,
  startAt: string | null,
  input: string,
  rest: string | null,
  fence: number,
  lapses: number,
  crashes: number,
  deliveries: number,
  gateMet: boolean | null,
  started: boolean,
]

interface GroupRow {
  readonly id: string
  readonly open: number
  readonly value: string | null
  readonly final: boolean
  readonly version: number
}

interface CommitReply {
  readonly kinds: string
  readonly closed: readonly [s: number, groupId: string, value: string | null][] | null
  readonly conflicts:
    | readonly [s: number, groupId: string, value: string | null, final: boolean, version: number][]
    | null
}

function resultsFrom(text: string, batch: readonly Settlement[], own: EncodedBatch['own']): CommitResult[] {
  const { kinds, closed, conflicts } = JSON.parse(text) as CommitReply
  const results = batch.map((settlement, i): CommitResult => {
    switch (kinds[i]) {
      case 'a':
        return { kind: 'applied', closed: [] }
      case 'o': {
        const ended = own[i]
        if (ended === undefined) return { kind: 'applied', closed: [] }
        const { id: groupId } = tracedGuard(settlement)
        return { kind: 'applied', closed: [ended.value === undefined ? { groupId } : { groupId, value: ended.value }] }
      }
      case 'r':
        return { kind: 'repeated', id: tracedGuard(settlement).id }
      default:
        return { kind: 'stale' }
    }
  })
  for (const [s, groupId, value] of closed ?? []) {
    const before = results[s - 1] as Extract<CommitResult, { kind: 'applied' }>
    const one = value === null ? { groupId } : { groupId, value }
    results[s - 1] = { kind: 'applied', closed: [...before.closed, one] }
  }
  for (const [s, groupId, value, final, version] of conflicts ?? []) {
    results[s - 1] = { kind: 'conflict', groupId, now: { ...(value === null ? {} : { value }), final, version } }
  }
  return results
}

function claimedFrom(row: ClaimRow, token: string, until: At): Claimed {
  const [id, queue, type, groupId, priority, attempt, queueAt, startAt, input, rest, fence] = row
  const times = { queueAt: Number(queueAt), startAt: Number(startAt) }
  const item = {
    lease: { id, queue, token, fence, until },
    envelope: fromColumns({ id, type, groupId, input, ...times, attempt, priority, rest }),
    lapses: row[11],
    crashes: row[12],
    deliveries: row[13],
    started: row[15],
  }
  const met = row[14]
  return met === null ? item : { ...item, gate: { met } }
}

/** A row as `row_to_json` gives it. */
interface StoredRow
  extends Omit<StoredItem, 'groupId' | 'queueAt' | 'startAt' | 'dueAt' | 'leaseUntil' | 'runAt' | 'endAt'> {
  readonly group_id: string
  readonly queue_at: number
  readonly start_at: number
  readonly due_at: number | null
  readonly hold_by: string | null
  readonly hold_key: string | null
  readonly lease_until: number | null
  readonly run_at: number | null
  readonly end_at: number | null
}

function storedItem(row: StoredRow): StoredItem {
  return {
    ...row,
    groupId: row.group_id,
    queueAt: row.queue_at,
    startAt: row.start_at,
    dueAt: row.due_at,
    holdBy: row.hold_by,
    holdKey: row.hold_key,
    leaseUntil: row.lease_until,
    runAt: row.run_at,
    endAt: row.end_at,
  }
}
