import { integerOption } from '../../core/options.js'
import type { At } from '../../core/time/time.js'
import type { ScheduleRecord } from '../../ports/ledger.js'
import { NotSupportedError } from '../../work/control/pause.js'
import { NEVER } from '../../work/schedule/config.js'
import { nextAfter } from '../../work/schedule/next-after.js'
import { zoneOf } from '../../work/schedule/zone.js'
import type { ScheduleReport } from '../api.js'
import type { OpsContext } from '../context.js'
import { zoneChanges } from './zone-changes.js'

const FIRES = 5
const MOST_FIRES = 1_000

/** Every stored schedule, the next to fire first. */
export async function readSchedules(
  context: OpsContext,
  fires: number | undefined,
): Promise<readonly ScheduleReport[]> {
  const wanted = integerOption('schedules(fires)', fires, { min: 1, max: MOST_FIRES, default: FIRES })
  const inspect = context.inspect('schedules')
  if (inspect.schedules === undefined) throw new NotSupportedError('answer ops.schedules()', 'inspect.schedules')
  const [now, records] = await Promise.all([context.now(), inspect.schedules()])
  return records
    .map((record) => scheduleReport(record, now, wanted))
    .sort((a, b) => a.nextAt - b.nextAt || (a.name < b.name ? -1 : 1))
}

export function scheduleReport(
  { name, spec, nextAt }: ScheduleRecord & { readonly name: string },
  now: At,
  wanted: number,
): ScheduleReport {
  const { cron, timeZone } = readSpec(spec)
  const fires = nextAt >= NEVER ? [] : (cronFires(cron, timeZone, nextAt, now, wanted) ?? [nextAt])
  const last = fires.at(-1)
  const isKnown = cron !== undefined && fires.length > 0 && last !== undefined && isZone(timeZone)
  return {
    name,
    spec,
    ...(cron === undefined ? {} : { cron }),
    nextAt,
    fires,
    ...(timeZone === undefined ? {} : { timeZone }),
    changes: isKnown ? zoneChanges(zoneOf(timeZone), Math.min(now, nextAt), last) : [],
  }
}

/** The rule as `schedule` stores it: `TZ=Europe/Berlin 0 3 * * *`, `0 3 * * *` in local time, or `next()` for a function. */
function readSpec(spec: string): { readonly cron?: string; readonly timeZone?: string } {
  if (spec === 'next()') return {}
  const { zone, cron } = /^TZ=(?<zone>\S+) (?<cron>.+)$/s.exec(spec)?.groups ?? {}
  return zone === undefined || cron === undefined ? { cron: spec } : { cron, timeZone: zone }
}

/** Undefined if the rule cannot be evaluated here. */
function cronFires(
  cron: string | undefined,
  timeZone: string | undefined,
  nextAt: At,
  now: At,
  wanted: number,
): At[] | undefined {
  if (cron === undefined) return undefined
  try {
    // Local time is that of the scheduling processes, which may be in another zone or have other zone tables. If the rule does
    // not give the stored time here, it says nothing about the times after it.
    if (nextAfter(cron, nextAt - 1, timeZone) !== nextAt) return undefined
    const fires = [nextAt]
    // After an overdue occurrence comes the next one from now on, not the missed ones.
    for (let from = Math.max(nextAt, now); fires.length < wanted; ) {
      const next = nextAfter(cron, from, timeZone)
      if (next === undefined) break
      fires.push(next)
      from = next
    }
    return fires
  } catch {
    // A rule of a newer version, or an unknown zone.
    return undefined
  }
}

function isZone(timeZone: string | undefined): boolean {
  try {
    zoneOf(timeZone)
    return true
  } catch {
    return false
  }
}
