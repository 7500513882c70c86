import { integerOption } from '../core/options.js'
import type { At } from '../core/time.js'
import type { ScheduleRecord } from '../ports/ledger.js'
import { NotSupportedError } from '../work/controls/pausing.js'
import { NEVER } from '../work/schedule/config.js'
import { nextAfter } from '../work/schedule/next-after.js'
import { zoneOf } from '../work/schedule/zone.js'
import type { ScheduleReport } from './api.js'
import type { Desk } from './desk.js'
import { zoneChanges } from './zone-changes.js'

const FIRES = 5
const MOST_FIRES = 1_000

/** Every schedule on record, the one that fires next first. */
export async function readSchedules(desk: Desk, fires: number | undefined): Promise<readonly ScheduleReport[]> {
  const wanted = integerOption('schedules(fires)', fires, { min: 1, max: MOST_FIRES, default: FIRES })
  const inspect = desk.inspect('schedules')
  if (inspect.schedules === undefined) throw new NotSupportedError('answer ops.schedules()', 'inspect.schedules')
  const [now, records] = await Promise.all([desk.now(), inspect.schedules()])
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
    nextAt,
    fires,
    ...(timeZone === undefined ? {} : { timeZone }),
    changes: isKnown ? zoneChanges(zoneOf(timeZone), Math.min(now, nextAt), last) : [],
  }
}

/** As `schedule` spells its rule: `TZ=Europe/Berlin 0 3 * * *`, `0 3 * * *` in local time, or `next()` for a function. */
function readSpec(spec: string): { readonly cron?: string; readonly timeZone?: string } {
  if (spec === 'next()') return {}
  const { zone, cron } = /^TZ=(?<zone>\S+) (?<cron>.+)$/s.exec(spec)?.groups ?? {}
  return zone === undefined || cron === undefined ? { cron: spec } : { cron, timeZone: zone }
}

/** Undefined where the rule cannot be followed from here. */
function cronFires(
  cron: string | undefined,
  timeZone: string | undefined,
  nextAt: At,
  now: At,
  wanted: number,
): At[] | undefined {
  if (cron === undefined) return undefined
  try {
    // Local time is that of the processes that schedule, which may be in another zone than this one; and a zone may be
    // another one in their tables. What does not lead to the agreed time says nothing about those after it.
    if (nextAfter(cron, nextAt - 1, timeZone) !== nextAt) return undefined
    const fires = [nextAt]
    // One that is overdue is followed by what comes after the present, not by what was missed.
    for (let from = Math.max(nextAt, now); fires.length < wanted; ) {
      const next = nextAfter(cron, from, timeZone)
      if (next === undefined) break
      fires.push(next)
      from = next
    }
    return fires
  } catch {
    // A rule of a newer version, or a zone that this machine does not know.
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
