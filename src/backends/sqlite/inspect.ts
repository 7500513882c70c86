import { readEndless } from '../../core/endless-json.js'
import { MillraceError } from '../../core/error.js'
import type { FailureClass } from '../../core/failure.js'
import type { At, Ms } from '../../core/time.js'
import type { SqliteConnection } from '../../drivers/sqlite/connection.js'
import type { Attempt } from '../../ports/item.js'
import type { Counted, Inspect, ItemQuery, ItemSummary, WorkerSettings } from '../../ports/ledger.js'
import { ITEM_STATE_WORDS, type ItemStateWord } from '../../ports/words.js'
import { countOf } from './count.js'
import { failuresOf } from './failures.js'
import { flowOf } from './flow.js'
import { homesOf } from './homes.js'
import type { Leases } from './leases.js'
import type { AttemptRow, Statements } from './sql.js'
import { HAS_ATTEMPTS } from './states.js'
import { straysOf } from './strays.js'
import { promote } from './tags.js'
import { summaryOf } from './view.js'

/** A page looks at no more than this many items beyond those it returns, when filters have no index of their own. */
const MAX_SCANNED = 1_000
/** How many items that have fallen due are brought up to date before people look. */
const PROMOTED = 5_000
/** A worker that was not heard of for this long is forgotten. */
const FORGOTTEN_AFTER = 3_600_000

/** What people can ask. The newest arrivals of a list come first. */
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
      const cursor = cursorOf(query)
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
    openCounts: (ids) =>
      connection.readTogether((sql, now) =>
        ids.map((id) => (sql.openOfGroup.get(id, now) ?? sql.openOfAlone.get(id, now))?.[0]),
      ),
    async count(query) {
      await upToDate(Number.POSITIVE_INFINITY)
      return connection.readTogether((sql, now) => countOf(sql, query, now))
    },
    async flow(windowMs) {
      await upToDate()
      return connection.readTogether((sql, now) => flowOf(sql, now - windowMs, now))
    },
    async failures(limit) {
      await upToDate()
      return connection.readTogether((sql, now) => failuresOf(sql, limit, now))
    },
    strays(ask) {
      const cursor = cursorOf(ask)
      return connection.readTogether((sql, now) => straysOf(sql, cursor, ask.limit, now, leases))
    },
    attempts: (id) => connection.readTogether((sql, now) => attemptsOf(sql, id, now)),
    async counts() {
      await upToDate()
      return connection.readTogether(countsOf)
    },
    input: (id) =>
      connection.read((sql, now) => {
        const [input, goneAt] = sql.input.get(id) ?? []
        return goneAt != null && goneAt <= now ? undefined : input
      }),
    gate: (key) =>
      connection.readTogether((sql) => {
        const found = sql.gate.get(key)
        if (found === undefined) return undefined
        const [holds, need, left, of] = found
        // Decided, and waiting only for the item that it is to free.
        if (need <= 0 || need > left) return undefined
        return { key, holds, need, of, waiting: sql.membersOf.all(key).map(([member]) => member) }
      }),
    log: (limit) =>
      connection.read((sql) => sql.log.all(limit).map(([at, who, why, what]) => ({ at, who, why, what }))),
    schedules: () =>
      connection.read((sql) => sql.schedules.all().map(([name, nextAt, spec]) => ({ name, spec, nextAt }))),
    workers: () =>
      connection.read((sql, now) =>
        sql.workers.all(now - FORGOTTEN_AFTER).map(([id, host, version, types, queues, settings, seenAt]) => ({
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
      const view = fitting(sql, query, seq, now, leaseEnd)
      if (view === undefined) scanned += 1
      else items.push(view)
    }
    if (seqs.length < chunk) return { items }
  }
}

/** The newest items below the cursor that the index for this query knows. */
function candidates(sql: Statements, query: ItemQuery, below: number, limit: number): number[] {
  const found: (readonly [number])[] = []
  const states = query.state === undefined ? ITEM_STATE_WORDS.keys() : [ITEM_STATE_WORDS.indexOf(query.state)]
  const { fingerprint, tag, class: of, groupId } = query
  if (groupId !== undefined) {
    const root = sql.rootOfGroup.get(groupId, groupId)
    if (root !== undefined && root[0] < below) found.push(root)
    found.push(...sql.listedByGroup.all(groupId, below, limit))
  } else
    for (const state of states) {
      if (fingerprint !== undefined) found.push(...sql.listedByFingerprint.all(fingerprint, state, below, limit))
      else if (tag !== undefined) found.push(...sql.listedByTag.all(tag, state, below, limit))
      else if (of !== undefined) found.push(...sql.listedByClass.all(of, state, below, limit))
      else found.push(...listedIn(sql, query, state, below, limit))
    }
  return found
    .map(([seq]) => seq)
    .sort((a, b) => b - a)
    .slice(0, limit)
}

function listedIn(
  sql: Statements,
  query: ItemQuery,
  state: number,
  below: number,
  limit: number,
): (readonly [number])[] {
  const found: (readonly [number])[] = []
  for (const [queue, type] of homesOf(sql, state)) {
    if (query.queue !== undefined && query.queue !== queue) continue
    if (query.type !== undefined && query.type !== type) continue
    found.push(...sql.listed.all(state, queue, type, below, limit))
  }
  return found
}

function fitting(
  sql: Statements,
  query: ItemQuery,
  seq: number,
  now: At,
  leaseEnd: (until: Ms) => At,
): ItemSummary | undefined {
  const row = sql.summaryBySeq.get(seq)
  const view = row === undefined ? undefined : summaryOf(row, now, leaseEnd)
  if (row === undefined || view === undefined) return undefined
  const { envelope } = view
  const fits =
    (query.state === undefined || ITEM_STATE_WORDS[row[10]] === query.state) &&
    (query.type === undefined || envelope.type === query.type) &&
    (query.queue === undefined || view.queue === query.queue) &&
    (query.groupId === undefined || envelope.groupId === query.groupId) &&
    (query.tag === undefined || envelope.tags?.includes(query.tag) === true) &&
    (query.class === undefined || view.class === query.class) &&
    (query.fingerprint === undefined || row[25] === query.fingerprint) &&
    (query.before === undefined || (view.endAt ?? envelope.queueAt) < query.before) &&
    (query.after === undefined || (view.endAt ?? envelope.queueAt) >= query.after)
  return fits ? view : undefined
}

function cursorOf({ cursor }: { readonly cursor?: string }): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER
  const at = Number(cursor)
  if (cursor.trim() !== '' && Number.isFinite(at)) return at
  throw new MillraceError(
    'BAD_CURSOR',
    `list({ cursor }): "${cursor}" is not a cursor. Give back \`next\` of the last page.`,
  )
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

function attemptOf([attempt, startedAt, endedAt, worker, klass, rule, error, fingerprint]: AttemptRow): Attempt {
  return {
    attempt,
    startedAt,
    endedAt,
    worker,
    ...(klass === null ? {} : { class: klass as FailureClass }),
    ...(rule === null ? {} : { rule }),
    ...(error === null ? {} : { error }),
    ...(fingerprint === null ? {} : { fingerprint }),
  }
}

function countsOf(sql: Statements, now: At): Counted[] {
  const homes = new Map<string, { queue: string; type: string; counts: Partial<Record<ItemStateWord, number>> }>()
  const add = (rows: ReturnType<typeof sql.counts.all>, sign: 1 | -1): void => {
    for (const [state, queue, type, count] of rows) {
      const word = ITEM_STATE_WORDS[state]
      if (word === undefined) continue
      const key = JSON.stringify([queue, type])
      const home = homes.get(key) ?? { queue, type, counts: {} }
      const sum = (home.counts[word] ?? 0) + sign * count
      if (sum === 0) delete home.counts[word]
      else home.counts[word] = sum
      homes.set(key, home)
    }
  }
  add(sql.counts.all(), 1)
  // What is over and not yet swept.
  add(sql.goneCounts.all(now), -1)
  return [...homes.values()].filter(({ counts }) => Object.keys(counts).length > 0)
}
