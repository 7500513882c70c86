import { readEndless } from '../../core/codec/infinite-json.js'
import type { FailureClass } from '../../core/failure/failure.js'
import { listedError } from '../../core/text/error-text.js'
import { isWellFormed } from '../../core/text/well-formed.js'
import type { At, Ms } from '../../core/time/time.js'
import type { SqliteConnection } from '../../drivers/sqlite/connection.js'
import { gateVerdict } from '../../ports/gate.js'
import type { FailureGroup, Inspect, ItemQuery, ItemSummary, TypeCounts } from '../../ports/inspect.js'
import type { Attempt } from '../../ports/item.js'
import type { WorkerSettings } from '../../ports/ledger.js'
import { MAX_SCANNED, WORKER_FORGOTTEN_MS } from '../../ports/limits.js'
import { ITEM_STATES, type ItemState } from '../../ports/words.js'
import { afterPrefix } from '../shared/after-prefix.js'
import { readNumberCursor } from '../shared/cursor.js'
import { matchesQuery, narrowestIndex } from '../shared/item-query.js'
import { ACTIVE, WAITING } from '../shared/state-codes.js'
import { countOf } from './count.js'
import { HAS_ATTEMPTS } from './item-flags.js'
import type { Leases } from './lease.js'
import { queueTypesOf } from './queue-types.js'
import { summaryOf } from './read.js'
import type { AttemptRow, Statements, ViewRow } from './sql.js'
import { promote } from './tags.js'
import { throughputOf } from './throughput.js'

/** How many items that have fallen due are brought up to date before an operator reads. */
const PROMOTED = 5_000

/** What operators can ask. Lists show the newest first. */
export function inspectOn(connection: SqliteConnection<Statements>, leases: Leases): Inspect {
  /** What is due is waiting, also before a claim has come by. */
  const upToDate = async (steps = 1): Promise<void> => {
    for (let step = 0; step < steps; step += 1) {
      const hasDue = await connection.readTogether((sql, now) =>
        queuesWithLater(sql).some((queue) => isDue(sql, queue, now)),
      )
      if (!hasDue) return
      await connection.write((sql, now) => {
        for (const queue of queuesWithLater(sql)) promote(sql, queue, now, PROMOTED)
      })
    }
  }
  return {
    async list(query) {
      const cursor = readNumberCursor('list', query.cursor)
      await upToDate()
      return connection.readTogether((sql, now) => page(sql, query, cursor, now, leases))
    },
    summaries: (ids) =>
      connection.readTogether((sql, now) => {
        const leaseEnd = leases.reader(sql, now)
        return ids.map((id) => {
          const row = sql.summary.get(id)
          return row === undefined ? undefined : summaryOf(row, now, leaseEnd)
        })
      }),
    async idsStartingWith(prefix, limit) {
      if (!isWellFormed(prefix)) return { ids: [], isComplete: true }
      const rows = await connection.readTogether((sql, now) =>
        sql.idsBetween.all(prefix, afterPrefix(prefix), now, limit),
      )
      return { ids: rows.map(([id]) => id), isComplete: true }
    },
    openCounts: (ids) =>
      connection.readTogether((sql, now) =>
        ids.map((id) => (sql.openOfGroup.get(id, now) ?? sql.openOfSingle.get(id, now))?.[0]),
      ),
    async count(query) {
      await upToDate(Number.POSITIVE_INFINITY)
      return connection.readTogether((sql, now) => countOf(sql, query, now))
    },
    async throughput(windowMs) {
      await upToDate()
      return connection.readTogether((sql, now) => throughputOf(sql, now - windowMs, now))
    },
    async failures(limit) {
      await upToDate()
      return connection.readTogether((sql, now) => failuresOf(sql, limit, now))
    },
    stuckItems(ask) {
      const cursor = readNumberCursor('stuckItems', ask.cursor)
      return connection.readTogether((sql, now) => stuckItemsOf(sql, cursor, ask.limit, now, leases))
    },
    attempts: (id) => connection.readTogether((sql, now) => attemptsOf(sql, id, now)),
    async counts() {
      await upToDate()
      return connection.readTogether(countsOf)
    },
    input: (id) =>
      connection.read((sql, now) => {
        const [input, keepUntil] = sql.input.get(id) ?? []
        return keepUntil != null && keepUntil <= now ? undefined : input
      }),
    gate: (key) =>
      connection.readTogether((sql) => {
        const found = sql.gate.get(key)
        if (found === undefined) return undefined
        const [heldId, need, remaining, of] = found
        // Decided, and waiting only for the item that it is to free.
        if (gateVerdict(need, remaining) !== undefined) return undefined
        return { key, heldId, need, of, waiting: sql.membersOf.all(key).map(([member]) => member) }
      }),
    log: (limit) =>
      connection.read((sql) => sql.log.all(limit).map(([at, who, why, what]) => ({ at, who, why, what }))),
    schedules: () =>
      connection.read((sql) => sql.schedules.all().map(([name, nextAt, spec]) => ({ name, spec, nextAt }))),
    workers: () =>
      connection.read((sql, now) =>
        sql.workers.all(now - WORKER_FORGOTTEN_MS).map(([id, host, version, types, queues, settings, seenAt]) => ({
          id,
          host,
          version,
          types: JSON.parse(types) as string[],
          queues: JSON.parse(queues) as string[],
          ...(settings === null ? {} : { settings: readEndless<WorkerSettings>(settings) }),
          seenAt,
        })),
      ),
  }
}

const isDue = (sql: Statements, queue: string, now: At): boolean => sql.anyDue.get(queue, now)?.[0] === 1

function queuesWithLater(sql: Statements): string[] {
  const queues: string[] = []
  for (let found = sql.queueWithDue.get(''); found !== undefined; found = sql.queueWithDue.get(found[0])) {
    queues.push(found[0])
  }
  return queues
}

function page(
  sql: Statements,
  query: ItemQuery,
  from: number,
  now: At,
  leases: Leases,
): Awaited<ReturnType<Inspect['list']>> {
  const leaseEnd = leases.reader(sql, now)
  const items: ItemSummary[] = []
  const chunk = Math.min(query.limit + 1, MAX_SCANNED)
  let cursor = from
  let scanned = 0
  for (;;) {
    const seqs = candidates(sql, query, cursor, chunk)
    for (const seq of seqs) {
      if (items.length >= query.limit || scanned >= MAX_SCANNED) return { items, next: String(cursor) }
      cursor = seq
      const view = matching(sql, query, seq, now, leaseEnd)
      if (view === undefined) scanned += 1
      else items.push(view)
    }
    if (seqs.length < chunk) return { items }
  }
}

/** The newest items below the cursor that the index for this query knows. */
function candidates(sql: Statements, query: ItemQuery, below: number, limit: number): number[] {
  const found: (readonly [number])[] = []
  const states = query.state === undefined ? ITEM_STATES.keys() : [ITEM_STATES.indexOf(query.state)]
  const index = narrowestIndex(query, ['fingerprint', 'tag', 'class'])
  if (query.groupId !== undefined) {
    const root = sql.rootOfGroup.get(query.groupId)
    if (root !== undefined && root[0] < below) found.push(root)
    found.push(...sql.listedByGroup.all(query.groupId, below, limit))
  } else
    for (const state of states)
      if (index === undefined) found.push(...listedIn(sql, query, state, below, limit))
      else found.push(...listedBy(sql, index, query[index]!, state, below, limit))
  return found
    .map(([seq]) => seq)
    .sort((a, b) => b - a)
    .slice(0, limit)
}

function listedBy(
  sql: Statements,
  index: 'fingerprint' | 'tag' | 'class',
  value: string,
  state: number,
  below: number,
  limit: number,
): (readonly [number])[] {
  if (index === 'tag') return sql.listedByTag.all(value, state, below, limit)
  if (index === 'class') return sql.listedByClass.all(value, state, below, limit)
  return state === WAITING || state === ACTIVE
    ? sql.openByFingerprint.all(value, below, Number(state === ACTIVE), limit)
    : sql.listedByFingerprint.all(value, state, below, limit)
}

function listedIn(
  sql: Statements,
  query: ItemQuery,
  state: number,
  below: number,
  limit: number,
): (readonly [number])[] {
  const found: (readonly [number])[] = []
  for (const [queue, type] of queueTypesOf(sql, state)) {
    if (query.queue !== undefined && query.queue !== queue) continue
    if (query.type !== undefined && query.type !== type) continue
    if (state === WAITING) found.push(...sql.listedReady.all(queue, type, below, limit))
    else if (state === ACTIVE) found.push(...sql.listedHeld.all(queue, type, below, limit))
    else found.push(...sql.listed.all(state, queue, type, below, limit))
  }
  return found
}

function matching(
  sql: Statements,
  query: ItemQuery,
  seq: number,
  now: At,
  leaseEnd: (until: Ms) => At,
): ItemSummary | undefined {
  const row = sql.summaryBySeq.get(seq)
  const view = row === undefined ? undefined : summaryOf(row, now, leaseEnd)
  if (row === undefined || view === undefined) return undefined
  const { envelope, queue, class: failure, endAt } = view
  const item = { envelope, queue, class: failure, fingerprint: row[25], endAt }
  return matchesQuery(item, query, ITEM_STATES[row[10]]) ? view : undefined
}

/** How many rows one look for stuck items passes. */
const LOOKED_THROUGH = 20_000

/** A page of items that no claim will ever find, of the rows below the cursor that one call looks through. */
function stuckItemsOf(
  sql: Statements,
  cursor: number,
  limit: number,
  now: At,
  leases: Leases,
): Awaited<ReturnType<NonNullable<Inspect['stuckItems']>>> {
  const below = Math.min(cursor, (sql.lastSeq.get()?.[0] ?? 0) + 1)
  const from = below - LOOKED_THROUGH
  const rows = sql.stuckItems.all(below, from, limit + 1)
  const shown = rows.slice(0, limit)
  const leaseEnd = leases.reader(sql, now)
  const items = shown.flatMap((row): readonly ItemSummary[] => {
    const view = summaryOf(row.slice(0, -1) as unknown as ViewRow, now, leaseEnd)
    return view === undefined ? [] : [view]
  })
  const last = shown.at(-1)?.at(-1)
  if (rows.length > limit && last !== undefined) return { items, next: String(last) }
  return from > 1 ? { items, next: String(from) } : { items }
}

/** Dead and retrying items that failed alike: one aggregate, and for each group that is shown its last item. */
function failuresOf(sql: Statements, limit: number, now: At): FailureGroup[] {
  return sql.failures.all(now, limit).map(([fingerprint, of, type, dead, retrying, firstAt, lastAt]) => {
    const ofDead = dead > 0 ? sql.deadSample.get(fingerprint, of, type, now) : undefined
    const ofRetrying = retrying > 0 ? sql.retryingSample.get(fingerprint, of, type) : undefined
    const [id, error] = [ofDead, ofRetrying].reduce((a, b) =>
      a === undefined || (b !== undefined && b[2] > a[2]) ? b : a,
    ) ?? ['', '']
    return {
      fingerprint,
      ...(of === null ? {} : { class: of as FailureClass }),
      type,
      dead,
      retrying,
      firstAt,
      lastAt,
      sample: { id, error: listedError(error ?? '') },
    }
  })
}

function attemptsOf(sql: Statements, id: string, now: At): Attempt[] {
  const row = sql.itemRow.get(id)
  if (row === undefined || (row[5] !== null && row[5] <= now)) return []
  const [seq, , , , flags] = row
  const found = flags & HAS_ATTEMPTS ? sql.attempts.all(seq).map(attemptOf) : []
  const folded = sql.foldedAttempt.get(seq)
  if (folded === undefined) return found
  const [attempt, startedAt, endedAt, worker] = folded
  return [...found, { attempt, startedAt, endedAt, worker }]
}

function attemptOf([
  attempt,
  startedAt,
  endedAt,
  worker,
  klass,
  rule,
  error,
  fingerprint,
  detail,
]: AttemptRow): Attempt {
  return {
    attempt,
    startedAt,
    endedAt,
    worker,
    ...(klass === null ? {} : { class: klass as FailureClass }),
    ...(rule === null ? {} : { rule }),
    ...(error === null ? {} : { error }),
    ...(fingerprint === null ? {} : { fingerprint }),
    ...(detail === null ? {} : { detail: JSON.parse(detail) as NonNullable<Attempt['detail']> }),
  }
}

function countsOf(sql: Statements, now: At): TypeCounts[] {
  const queueTypes = new Map<string, { queue: string; type: string; counts: Partial<Record<ItemState, number>> }>()
  const add = (rows: ReturnType<typeof sql.counts.all>, sign: 1 | -1): void => {
    for (const [state, queue, type, count] of rows) {
      const word = ITEM_STATES[state]
      if (word === undefined) continue
      const key = JSON.stringify([queue, type])
      const queueType = queueTypes.get(key) ?? { queue, type, counts: {} }
      const sum = (queueType.counts[word] ?? 0) + sign * count
      if (sum === 0) delete queueType.counts[word]
      else queueType.counts[word] = sum
      queueTypes.set(key, queueType)
    }
  }
  add(sql.counts.all(), 1)
  // What is over and not yet swept.
  add(sql.goneCounts.all(now), -1)
  return [...queueTypes.values()].filter(({ counts }) => Object.keys(counts).length > 0)
}
