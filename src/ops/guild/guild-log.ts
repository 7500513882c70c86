import type { LogEntry } from '../../ports/inspect.js'
import type { GuildStacks } from './books.js'
import type { WritLogDoc } from './writ-log.js'

/** What people did to writs, the newest first. */
export async function readGuildLog(stacks: GuildStacks, limit: number): Promise<LogEntry[]> {
  const lines = await stacks.transaction(
    (tx) => tx.readBook<WritLogDoc>('clerk', 'log').find({ where: [], orderBy: ['at', 'desc'], limit }),
    { readOnly: true },
  )
  return lines.map(({ at, who, why, what }) => ({ at: Date.parse(at), who, why, what }))
}

/** Both logs as one, the newest first. */
export function mergedLog(a: readonly LogEntry[], b: readonly LogEntry[], limit: number): LogEntry[] {
  return [...a, ...b].sort((one, other) => other.at - one.at).slice(0, limit)
}
