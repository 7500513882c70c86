import type { ChaosReport } from './chaos.js'

/** The report for people. */
export function tableOf(report: ChaosReport): string {
  const rows: readonly (readonly [string, number])[] = [
    ['accepted', report.accepted],
    ['not known to be accepted', report.unsure],
    ['succeeded, children included', report.succeeded],
    ['parked as poison', report.parked],
    ['groups counted', report.groups],
    ['lost', report.unfinished.length],
    ['lost as `everysec` may lose', report.lostAsPromised],
    ['ended wrongly', report.wrong.length],
    ['doubled effects, wrong counts', report.doubled.length],
    ['leases held twice', report.sharedLeases.length],
    ['runs', report.runs],
    ['runs repeated after a kill', report.repeatedRuns],
    ['processes killed', report.kills],
    ['server restarts', report.serverRestarts],
    ['ms until all had ended, after the last fault', report.drainMs],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${String(value).padStart(8)}`).join('\n')
}

/** Every promise that was broken, in words. */
export function faultsOf(report: ChaosReport): string[] {
  const some = (what: string, list: readonly string[]) =>
    list.length === 0 ? [] : [`${list.length} ${what}: ${list.slice(0, 5).join('; ')}`]
  return [
    ...some(
      'lost',
      report.unfinished.map(({ text }) => text),
    ),
    ...some('ended wrongly', report.wrong),
    ...some('doubled', report.doubled),
    ...some('leases held twice', report.sharedLeases),
    ...some('processes did not end with 0 when told to', report.badExits),
    ...some('processes ended by themselves', report.diedAlone),
    ...(report.accepted === 0 ? ['nothing was accepted: nothing was tested'] : []),
  ]
}
