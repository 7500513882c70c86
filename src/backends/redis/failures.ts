import { listedError } from '../../core/error-text.js'
import type { FailureClass } from '../../core/failure.js'
import type { FailureGroup } from '../../ports/ledger.js'
import { attemptsFrom } from './attempt-text.js'
import type { Desk } from './desk.js'

/** So many groups of one size are compared by time, to tell which of them are still among those asked for. */
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
export async function failuresOn(desk: Desk, limit: number): Promise<FailureGroup[]> {
  if (!(limit >= 1)) return []
  const rows = (await desk.run('failures', [Math.min(MAX_GROUPS, Math.floor(limit)), TIES])) as readonly Row[]
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

/** More groups than anybody reads: one call shows no more. */
const MAX_GROUPS = 2_000
