import type { ChaosReport } from './chaos.js'
import { mb } from './check-health.js'
import { FAULTS } from './options.js'

/** The report for people. */
export function tableOf(report: ChaosReport): string {
  const { faults } = report
  const rows: readonly (readonly [string, number])[] = [
    ['accepted', report.accepted],
    ['not known to be accepted', report.unsure],
    ['succeeded, children included', report.succeeded],
    ['dead-lettered as poison', report.deadLettered],
    ['groups counted', report.groups],
    ['gates', report.gates],
    ['waits', report.waits],
    ['lost', report.unfinished.length],
    ['lost as `everysec` may lose', report.lostAsPromised],
    ['ended wrongly', report.wrong.length],
    ['doubled effects, wrong counts', report.doubled.length],
    ['more or less than one run took effect', report.mixedRuns.length],
    ['rolled back, and there all the same', report.undoneButThere.length],
    ['waits that never ended', report.endlessWaits.length],
    ['waits that got another outcome', report.wrongOutcomes.length],
    ['healthy items dead-lettered as crashed', report.falselyCrashed.length],
    ['dead-lettered as crashed, and really killed so often', report.unlucky],
    ['work that took too many processes along', report.deadly.length],
    ['runs', report.runs],
    ['runs made again after a fault', report.repeatedRuns - report.baseless.length],
    ['runs made again without a fault', report.baseless.length],
    ['live runs of one item at the same time, after a fault', report.excusedOverlaps],
    ['live runs of one item at the same time, without a fault', report.overlaps.length],
    ['leases held twice', report.sharedLeases.length],
    ['results and children of refused runs', report.refusedRuns],
    ['largest heap of a process, MB', mb(report.peakHeapBytes)],
    ['longest stall of an event loop, ms', report.longestStallMs],
    ['stalls by computing', report.hogs.length],
    ...Object.entries(report.errors)
      .toSorted(([, a], [, b]) => b - a)
      .map(([code, n]) => [`onError: ${code}`, n] as const),
    ['processes that called onError too often', report.floods.length],
    ...Object.entries(FAULTS).map(([fault, what]) => [`fault: ${what}`, faults[fault as keyof typeof faults]] as const),
    ['write lock of SQLite held for a quarter of a lease', report.longWriteLocks],
    ['server stalled for a quarter of a lease', report.serverStalls],
    ['ms until all had ended, after the last fault', report.drainMs],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${String(value).padStart(8)}`).join('\n')
}

/** Every promise that was broken, in words. */
export function brokenIn(report: ChaosReport): string[] {
  const some = (what: string, list: readonly string[]) =>
    list.length === 0 ? [] : [`${list.length} ${what}: ${list.slice(0, 5).join('; ')}`]
  return [
    ...some(
      'lost',
      report.unfinished.map(({ text }) => text),
    ),
    ...some('ended wrongly', report.wrong),
    ...some('doubled', report.doubled),
    ...some('of which more or less than one run took effect', report.mixedRuns),
    ...some('rolled back, and there all the same', report.undoneButThere),
    ...some('waits never ended', report.endlessWaits),
    ...some('waits got another outcome than what is stored', report.wrongOutcomes),
    ...some('healthy items dead-lettered as crashed', report.falselyCrashed),
    ...some('took too many processes along', report.deadly),
    ...some('runs made again without a fault', report.baseless),
    ...some('live runs of one item at the same time, without a fault', report.overlaps),
    ...some('leases held twice', report.sharedLeases),
    ...some('processes with too large a heap', report.overHeap),
    ...some('processes kept their event loop to themselves', report.hogs),
    ...some('processes called onError too often', report.floods),
    ...some('processes did not exit with 0 after SIGTERM', report.badExits),
    ...some('processes ended by themselves', report.endedUnasked),
    ...(report.accepted === 0 ? ['nothing was accepted: nothing was tested'] : []),
  ]
}
