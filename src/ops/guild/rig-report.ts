import { defined } from '../../core/defined.js'
import type { EngineRow, RigRow } from '../../guild/spider/rigs/rig.js'
import type { RigReport } from '../api.js'
import { findByPrefix, type GuildBooks } from './books.js'

/** A rig with its engines, as stored. */
export interface Rig {
  readonly row: RigRow
  /** In the order of the template. */
  readonly engines: readonly EngineRow[]
}

/** The rigs of a writ, oldest first: one query for the rigs, one for all their engines. */
export async function rigsOfWrit({ rigs, engines }: GuildBooks, writId: string, most: number): Promise<Rig[]> {
  const rows = await rigs.find({ where: [['writId', '=', writId]], orderBy: ['attempt', 'desc'], limit: most })
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const found = await engines.find({ where: [['rigId', 'IN', ids]], orderBy: ['place', 'asc'] })
  return rows.reverse().map((row) => ({ row, engines: found.filter(({ rigId }) => rigId === row.id) }))
}

export async function rigOf({ rigs, engines }: GuildBooks, idOrPrefix: string): Promise<Rig | undefined> {
  const row = await findByPrefix('rig', rigs, idOrPrefix)
  if (row === undefined) return undefined
  return { row, engines: await engines.find({ where: [['rigId', '=', row.id]], orderBy: ['place', 'asc'] }) }
}

export function rigReport({ row, engines }: Rig): RigReport {
  const { id, writId, status, attempt, createdAt, terminalAt } = row
  return {
    id,
    writId,
    status,
    attempt,
    createdAt,
    ...defined({ endedAt: terminalAt }),
    engines: engines.map(engineReport),
  }
}

function engineReport(engine: EngineRow): RigReport['engines'][number] {
  const { engineId, designId, status, upstream, startedAt, completedAt, error, block, attemptCount, holdUntil } = engine
  const { carriedFrom } = engine
  const blockedBy = block?.message === undefined ? block?.type : `${block.type}: ${block.message}`
  return {
    id: engineId,
    designId,
    status,
    upstream,
    ...defined({
      startedAt,
      completedAt,
      error,
      blockedBy,
      retries: attemptCount,
      heldUntil: holdUntil,
      carriedFrom,
    }),
  }
}
