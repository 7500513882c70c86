import { isWellFormed } from '../../core/well-formed.js'
import type { Inspect, LogEntry } from '../../ports/ledger.js'
import { attemptsFrom } from './attempt-text.js'
import { inputFrom } from './body-text.js'
import { countOn } from './count.js'
import { countedFrom } from './counts.js'
import { scheduleFrom, summaryFrom } from './decode.js'
import type { Desk } from './desk.js'
import { failuresOn } from './failures.js'
import { flowOn } from './flow.js'
import { inSteps } from './in-steps.js'
import { namesIllFormed, queryWords } from './query-words.js'
import { straysOn } from './strays.js'
import { workerFrom } from './worker-text.js'

/** A page looks at no more than this many items beyond those it returns, when filters have no index of their own. */
const MAX_SCANNED = 1_000
/** So many items one call brings up to date. */
const STEP = 1_000

/** What people can ask, in whichever mode the namespace is. The newest of a list come first. */
export function inspectOn(desk: Desk, swept: (removed: number) => void): Inspect {
  /** What is due is waiting, what has expired is gone: in steps, so that nobody else waits long. */
  const upToDate = async (): Promise<void> => {
    for (let more = 1; more === 1; ) {
      const [isMore, removed] = (await desk.run('promote', [STEP])) as [number, number]
      swept(removed)
      more = isMore
    }
  }
  /** What older code wrote is filed as it would be now, once. */
  let isUpgraded = false
  const upgraded = async (): Promise<void> => {
    while (!isUpgraded) isUpgraded = (await desk.run('upgrade', [STEP])) === 0
  }
  return {
    list: async (query) => {
      const words = queryWords(query, MAX_SCANNED)
      if (namesIllFormed(query)) return { items: [] }
      if (query.after !== undefined) await upgraded()
      await upToDate()
      const [next, ...rows] = (await desk.run('list', words)) as [string | null, ...(readonly string[] | null)[]]
      const items = rows.flatMap((row) => (row === null ? [] : [summaryFrom(row)]))
      return next === null ? { items } : { items, next }
    },
    summaries: async (ids) => {
      const rows = await inSteps(ids, (some) => desk.run('read', [0, ...some]))
      return rows.map((row, i) => (row === null || !isWellFormed(ids[i]!) ? undefined : summaryFrom(row as never)))
    },
    openCounts: async (ids) => {
      const rows = await inSteps(ids, (some) => desk.run('groups-read', [0, ...some]))
      return rows.map((row, i) =>
        row === null || !isWellFormed(ids[i]!) ? undefined : Number((row as readonly unknown[])[0]),
      )
    },
    attempts: async (id) => {
      if (!isWellFormed(id)) return []
      const text = (await desk.run('facts', ['attempts', id])) as string | null
      return text === null ? [] : attemptsFrom(text)
    },
    input: async (id) => {
      if (!isWellFormed(id)) return undefined
      const body = (await desk.run('facts', ['input', id])) as string | null
      return body === null ? undefined : inputFrom(body)
    },
    gate: async (key) => {
      if (!isWellFormed(key)) return undefined
      const found = (await desk.run('facts', ['gate', key])) as [string, number, 'done' | 'success', string[]] | null
      if (found === null) return undefined
      const [holds, need, of, waiting] = found
      return { key, holds, need, of, waiting }
    },
    schedules: async () => {
      const flat = (await desk.run('facts', ['schedules'])) as readonly string[]
      return flat.flatMap((name, i) => {
        const record = i % 2 === 0 ? scheduleFrom(flat[i + 1]) : undefined
        return record === undefined ? [] : [{ name, ...record }]
      })
    },
    log: async (limit) => {
      const lines = (await desk.run('facts', ['log', Math.max(1, Math.floor(limit))])) as readonly string[]
      return lines.map((line) => {
        const cut = line.indexOf('\n')
        return { at: Number(line.slice(0, cut)), ...(JSON.parse(line.slice(cut + 1)) as Omit<LogEntry, 'at'>) }
      })
    },
    counts: async () => {
      await upToDate()
      return countedFrom((await desk.run('facts', ['counts'])) as readonly string[])
    },
    count: async (query) => {
      if (namesIllFormed(query)) return 0
      if (query.before !== undefined || query.after !== undefined) await upgraded()
      await upToDate()
      return countOn(desk, query)
    },
    flow: async (windowMs) => {
      await upgraded()
      await upToDate()
      return flowOn(desk, windowMs)
    },
    failures: async (limit) => {
      await upgraded()
      await upToDate()
      return failuresOn(desk, limit)
    },
    strays: (ask) => straysOn(desk, ask),
    workers: async () => {
      const told = (await desk.run('facts', ['workers'])) as readonly string[]
      return told.flatMap((text, i) =>
        i % 2 === 0 && text !== null ? [{ ...workerFrom(text), seenAt: Number(told[i + 1]) }] : [],
      )
    },
  }
}
