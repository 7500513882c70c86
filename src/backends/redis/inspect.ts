import type { FailureClass } from '../../core/failure/failure.js'
import { listedError } from '../../core/text/error-text.js'
import { isWellFormed } from '../../core/text/well-formed.js'
import type { Ms } from '../../core/time/time.js'
import type { FailureGroup, Inspect, ItemSummary, LogEntry, Throughput } from '../../ports/inspect.js'
import { MAX_SCANNED } from '../../ports/limits.js'
import { readCursor } from '../shared/cursor.js'
import type { RedisContext } from './context.js'
import { queueTypeFrom } from './keys.js'
import { count, countsFrom, namesIllFormed, queryWords } from './query.js'
import { inSteps, scheduleFrom, summaryFrom } from './read.js'
import { attemptsFrom, inputFrom, workerFrom } from './stored-texts.js'
import { msWord } from './time.js'

/** How many items one call brings up to date. */
const STEP = 1_000

/** What people can query, in either mode of the namespace. The newest of a list come first. */
export function inspectOn(context: RedisContext, swept: (removed: number) => void): Inspect {
  /** Promotes due items and removes expired ones: in steps, so that other callers do not wait long. */
  const upToDate = async (): Promise<void> => {
    for (let more = 1; more === 1; ) {
      const [isMore, removed] = (await context.run('promote', [STEP])) as [number, number]
      swept(removed)
      more = isMore
    }
  }
  return {
    list: async (query) => {
      const words = queryWords(query, MAX_SCANNED)
      if (namesIllFormed(query)) return { items: [] }
      await upToDate()
      const [next, ...rows] = (await context.run('list', words)) as [string | null, ...(readonly string[] | null)[]]
      const items = rows.flatMap((row) => (row === null ? [] : [summaryFrom(row)]))
      return next === null ? { items } : { items, next }
    },
    summaries: async (ids) => {
      const rows = await inSteps(ids, (some) => context.run('read', [0, ...some]))
      return rows.map((row, i) => (row === null || !isWellFormed(ids[i]!) ? undefined : summaryFrom(row as never)))
    },
    idsStartingWith: (prefix, limit) => idsStartingWith(context, prefix, limit),
    openCounts: async (ids) => {
      const rows = await inSteps(ids, (some) => context.run('groups-read', [0, ...some]))
      return rows.map((row, i) =>
        row === null || !isWellFormed(ids[i]!) ? undefined : Number((row as readonly unknown[])[0]),
      )
    },
    attempts: async (id) => {
      if (!isWellFormed(id)) return []
      const text = (await context.run('facts', ['attempts', id])) as string | null
      return text === null ? [] : attemptsFrom(text)
    },
    input: async (id) => {
      if (!isWellFormed(id)) return undefined
      const body = (await context.run('facts', ['input', id])) as string | null
      return body === null ? undefined : inputFrom(body)
    },
    gate: async (key) => {
      if (!isWellFormed(key)) return undefined
      const found = (await context.run('facts', ['gate', key])) as [string, number, 'done' | 'success', string[]] | null
      if (found === null) return undefined
      const [heldId, need, of, waiting] = found
      return { key, heldId, need, of, waiting }
    },
    schedules: async () => {
      const flat = (await context.run('facts', ['schedules'])) as readonly string[]
      return flat.flatMap((name, i) => {
        const record = i % 2 === 0 ? scheduleFrom(flat[i + 1]) : undefined
        return record === undefined ? [] : [{ name, ...record }]
      })
    },
    log: async (limit) => {
      const lines = (await context.run('facts', ['log', Math.max(1, Math.floor(limit))])) as readonly string[]
      return lines.map((line) => {
        const cut = line.indexOf('\n')
        return { at: Number(line.slice(0, cut)), ...(JSON.parse(line.slice(cut + 1)) as Omit<LogEntry, 'at'>) }
      })
    },
    counts: async () => {
      await upToDate()
      return countsFrom((await context.run('facts', ['counts'])) as readonly string[])
    },
    count: async (query) => {
      if (namesIllFormed(query)) return 0
      await upToDate()
      return count(context, query)
    },
    throughput: async (windowMs) => {
      await upToDate()
      return throughput(context, windowMs)
    },
    failures: async (limit) => {
      await upToDate()
      return failures(context, limit)
    },
    stuckItems: (ask) => stuckItems(context, ask),
    workers: async () => {
      const records = (await context.run('facts', ['workers'])) as readonly string[]
      return records.flatMap((text, i) =>
        i % 2 === 0 && text !== null ? [{ ...workerFrom(text), seenAt: Number(records[i + 1]) }] : [],
      )
    },
  }
}

/** How many ids one call looks at, and how many are looked at for one question: no index is in their order. */
const IDS_STEP = 5_000
const MOST_IDS = 1_000_000

async function idsStartingWith(
  context: RedisContext,
  prefix: string,
  limit: number,
): ReturnType<Inspect['idsStartingWith']> {
  if (!isWellFormed(prefix)) return { ids: [], isComplete: true }
  const pattern = `${prefix.replaceAll(/[\\*?[\]]/g, '\\$&')}*`
  // A hash that grows meanwhile may give an id twice.
  const ids = new Set<string>()
  let cursor = '0'
  for (let seen = 0; seen < MOST_IDS && ids.size < limit; seen += IDS_STEP) {
    const [next, ...found] = (await context.run('ids', [cursor, pattern, IDS_STEP])) as [string, ...string[]]
    for (const id of found) ids.add(id)
    cursor = next
    if (cursor === '0') break
  }
  return { ids: [...ids].slice(0, limit), isComplete: cursor === '0' || ids.size >= limit }
}

type Cells = readonly (string | number | null)[]

/** How many items ended within the window, for each queue and type, and since when the oldest waits. */
async function throughput(context: RedisContext, windowMs: Ms): Promise<Throughput[]> {
  const flat = (await context.run('throughput', [msWord(windowMs)])) as Cells
  const rows: Throughput[] = []
  for (let i = 0; i < flat.length; i += 4) {
    const [queueType, completed, failed, oldest] = flat.slice(i, i + 4) as [string, number, number, number | null]
    const oldestDueAt = oldest === null ? undefined : { oldestDueAt: oldest }
    rows.push({ ...queueTypeFrom(queueType), completed, failed, ...oldestDueAt })
  }
  return rows
}

/** How many groups of one size are compared by time, to choose which of them to show. */
const TIES = 1_000

type Row = readonly [
  fingerprint: string,
  kind: string,
  type: string,
  dead: number,
  retrying: number,
  firstAt: string,
  lastAt: string,
  id: string,
  isDead: number,
  text: string | null,
]

/** Dead and retrying items that failed alike, the largest groups first. */
async function failures(context: RedisContext, limit: number): Promise<FailureGroup[]> {
  if (!(limit >= 1)) return []
  const rows = (await context.run('failures', [Math.min(MAX_GROUPS, Math.floor(limit)), TIES])) as readonly Row[]
  return rows.map(([fingerprint, kind, type, dead, retrying, firstAt, lastAt, id, isDead, text]) => ({
    fingerprint,
    ...(kind === '' ? undefined : { class: kind as FailureClass }),
    type,
    dead,
    retrying,
    firstAt: Number(firstAt),
    lastAt: Number(lastAt),
    sample: {
      id,
      error: listedError(text === null ? '' : isDead === 1 ? text : (attemptsFrom(text)[0]?.error ?? '')),
    },
  }))
}

/** One call shows at most this many groups. */
const MAX_GROUPS = 2_000

type Ask = Parameters<NonNullable<Inspect['stuckItems']>>[0]
type Page = Awaited<ReturnType<NonNullable<Inspect['stuckItems']>>>

/** About how many items one script reads: the server decides. */
const WALK_STEP = 500
/** The most scripts that one call runs, also for an empty page. */
const MAX_STEPS = 20
/** Where in the hash of items to go on, and behind which id of those found there. */
const CURSOR = /^(\d+)(?::(.*))?$/s

/** Unfinished items that no claim will ever find: reads the hash of all items, whose cursor survives any change. */
async function stuckItems(context: RedisContext, ask: Ask): Promise<Page> {
  const limit = Math.max(1, Math.floor(ask.limit))
  const cursor = readCursor('stuckItems', ask.cursor, CURSOR)
  let at = cursor?.[1] ?? '0'
  let behind = cursor?.[2]
  const items: ItemSummary[] = []
  for (let steps = 0; steps < MAX_STEPS; steps += 1) {
    const [next, ...rows] = (await context.run('stuck-items', [at, WALK_STEP])) as [
      string,
      ...(readonly string[] | null)[],
    ]
    const views = rows.flatMap((row) => (row === null ? [] : [summaryFrom(row)]))
    const found = views.filter((view) => behind === undefined || idOf(view) > behind)
    const room = limit - items.length
    const taken = found.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1)).slice(0, room)
    items.push(...taken)
    if (found.length > room) return { items, next: `${at}:${idOf(items.at(-1)!)}` }
    if (next === '0') return { items }
    at = next
    behind = undefined
    if (items.length >= limit) break
  }
  return { items, next: at }
}

const idOf = (view: ItemSummary): string => view.envelope.id
