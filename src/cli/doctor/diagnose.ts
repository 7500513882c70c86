import { preview } from '../../core/preview.js'
import type { RetryPolicy } from '../../core/retry-policy.js'
import type { Ms } from '../../core/time.js'
import type { OverviewRow, WorkerReport } from '../../ops/api.js'
import { durationText } from '../../ops/duration-text.js'
import { aliveText, unhandledRemedy } from '../../ops/unhandled.js'
import type { ServerFacts } from '../reach/reached.js'
import { counted } from '../terminal/bar.js'

/** Everything that a diagnosis is made from, read at one time. */
export interface DoctorFacts {
  readonly server: ServerFacts
  /** Undefined: the tables are not there, so nobody could be asked. */
  readonly rows: readonly OverviewRow[] | undefined
  readonly workers: readonly WorkerReport[] | undefined
  readonly paused: { readonly queues: readonly string[]; readonly types: readonly string[] }
}

/** Something that is wrong, or will be. */
export interface Diagnosis {
  readonly code: string
  readonly text: string
  readonly remedy: string
  /** The command that does it, or leads on, word by word. */
  readonly command?: readonly string[]
}

/** One thing that was looked at: sound when nothing was found. */
export interface Check {
  readonly name: string
  /** What was seen, in a few words. */
  readonly seen: string
  readonly findings: readonly Diagnosis[]
}

/** A difference this large moves deadlines and schedules visibly; smaller ones are corrected by the workers themselves. */
const SKEW_MS: Ms = 1_000
/** What a policy without an end is counted up to. */
const COUNTED_ATTEMPTS = 1_000
/** Engines of a guild are handed over until their outcome is written; nobody waits for the result of that item. */
const ENGINES = 'spider.engine'

/** Everything that doctor looks at, in the order in which one would mend it. */
export function diagnose(facts: DoctorFacts): Check[] {
  const checks = [server(facts), storage(facts), clocks(facts)]
  const { rows, workers } = facts
  if (rows === undefined || workers === undefined) return checks
  const alive = workers.filter(({ isAlive }) => isAlive)
  return [...checks, versions(alive), handled(rows, alive), leases(alive), horizons(alive), pauses(facts)]
}

function server({ server: { server: seen, dangers } }: DoctorFacts): Check {
  return { name: 'server', seen, findings: dangers }
}

function storage({ server: { storage: parts } }: DoctorFacts): Check {
  const findings = parts.flatMap(({ part, version, latest, minReader }): Diagnosis[] => {
    // A guild makes its tables itself; without one there are none.
    if (version === 0 && part === 'guild') return []
    if (version === 0)
      return [
        {
          code: 'no-tables',
          text: `There are no tables of Millrace here, or under another schema or prefix.`,
          remedy: 'Check --schema and --prefix; if they are right, run `millrace migrate`, or start a worker.',
          command: ['migrate'],
        },
      ]
    if (minReader > latest)
      return [
        {
          code: 'tables-too-new',
          text: `The tables of ${part} have version ${version}, and this program (version ${latest}) cannot read them.`,
          remedy: 'Update the package.',
        },
      ]
    if (version >= latest) return []
    return [
      {
        code: 'pending-migrations',
        text: `The tables of ${part} have version ${version}; this program has ${latest}.`,
        remedy: 'Run `millrace migrate`. Older workers go on while and after it runs.',
        command: ['migrate'],
      },
    ]
  })
  const there = parts.filter(({ version }) => version > 0).map(({ part, version }) => `${part} version ${version}`)
  return { name: 'storage', seen: there.join(', ') || (parts.length === 0 ? 'no versions' : 'no tables'), findings }
}

function clocks({ server: { at, askedAt, tookMs }, workers = [] }: DoctorFacts): Check {
  const findings: Diagnosis[] = clocksOfWorkers(workers)
  if (at === undefined) return { name: 'clocks', seen: 'one machine, one clock', findings }
  // It answered somewhere between question and answer.
  const skewMs = at - (askedAt + tookMs / 2)
  const surelyMs = Math.max(0, Math.abs(skewMs) - tookMs / 2)
  if (surelyMs > SKEW_MS)
    findings.unshift({
      code: 'clock-skew',
      text: `The backend's clock is ${durationText(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} the clock of this machine.`,
      remedy:
        'Run a time service (chrony, systemd-timesyncd) on both. Work is not endangered: the backend decides what is due.',
    })
  const seen = `backend ${signed(skewMs)} from here${tookMs >= 1 ? `, give or take ${durationText(tookMs / 2)}` : ''}`
  return { name: 'clocks', seen, findings }
}

/** Each live worker measures its clock against the backend's and tells; all of one machine have the same. */
function clocksOfWorkers(workers: readonly WorkerReport[]): Diagnosis[] {
  const alive = workers.filter(({ isAlive }) => isAlive)
  return [...new Set(alive.map(({ host }) => host))].flatMap((host): Diagnosis[] => {
    const there = alive.filter((worker) => worker.host === host)
    const told = there.flatMap(({ id, settings }) => (settings?.clock === undefined ? [] : [{ id, ...settings.clock }]))
    // Who measured most exactly speaks for the machine.
    const [best] = told.toSorted((a, b) => a.giveOrTakeMs - b.giveOrTakeMs)
    if (best === undefined || Math.abs(best.aheadMs) - best.giveOrTakeMs <= SKEW_MS) return []
    const { id, aheadMs } = best
    const others = there.length === 1 ? '' : ` and ${counted(there.length - 1, 'more worker')}`
    return [
      {
        code: 'worker-clock-skew',
        text: `The clock of ${host} (worker ${id}${others}) is ${durationText(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the backend's.`,
        remedy: `Run a time service (chrony, systemd-timesyncd) on ${host}. Work is not endangered: the backend decides what is due. What handlers and logs there say of the time is wrong.`,
        command: ['workers'],
      },
    ]
  })
}

function versions(alive: readonly WorkerReport[]): Check {
  const found = [...new Set(alive.map(({ version }) => version))].sort()
  const findings: Diagnosis[] =
    found.length <= 1
      ? []
      : [
          {
            code: 'mixed-versions',
            text: `Live workers have different versions of Millrace: ${found.map((one) => `${one} (${alive.filter(({ version }) => version === one).length})`).join(', ')}.`,
            remedy:
              'Fine during a deploy. If none is under way, find the old ones with `millrace workers` and update them.',
            command: ['workers'],
          },
        ]
  const seen = alive.length === 0 ? 'none is alive' : `${alive.length} alive, ${found.join(', ')}`
  return { name: 'workers', seen, findings }
}

function handled(rows: readonly OverviewRow[], alive: readonly WorkerReport[]): Check {
  const owed = rows.filter(({ counts }) => counts.waiting + counts.retrying + counts.scheduled + counts.blocked > 0)
  const findings = owed.flatMap(({ queue, type, counts, oldestWaitMs }): Diagnosis[] => {
    const serving = alive.filter(({ queues }) => queues.includes(queue))
    const open = counts.waiting + counts.retrying + counts.scheduled + counts.blocked
    if (serving.length === 0)
      return [
        {
          code: 'queue-unserved',
          text: `${counted(open, 'open item')} of type "${type}" on queue "${queue}", which no live worker serves.`,
          remedy: `Start a worker that serves queue "${queue}".`,
          command: ['workers'],
        },
      ]
    // Gates are known to every worker and listed by none.
    if (type.startsWith('@work/') || serving.some(({ types }) => types.includes(type))) return []
    return [
      {
        code: 'type-unhandled',
        text: `${counted(open, 'open item')} of type "${type}" on queue "${queue}"${oldestText(oldestWaitMs, open)}, and no live worker there handles that type. ${aliveText(serving)}`,
        remedy: unhandledRemedy(type, open === 1 ? 'it' : 'them'),
        command: ['cancel', `type:${type}`, `queue:${queue}`, '--dry-run'],
      },
    ]
  })
  return {
    name: 'handlers',
    seen: owed.length === 0 ? 'no open work' : `open work of ${counted(owed.length, 'type')}`,
    findings,
  }
}

/** For how long the oldest of them could have run. */
function oldestText(oldestWaitMs: Ms | undefined, open: number): string {
  return oldestWaitMs === undefined
    ? ''
    : ` (${open === 1 ? '' : 'the oldest '}ready for ${durationText(oldestWaitMs)})`
}

/** What several workers say alike is told once. */
function once(findings: readonly Diagnosis[]): Diagnosis[] {
  return [...new Map(findings.map((finding) => [finding.text, finding])).values()]
}

function leases(alive: readonly WorkerReport[]): Check {
  const findings = alive.flatMap(({ settings }): Diagnosis[] =>
    settings === undefined
      ? []
      : Object.entries(settings.types).flatMap(([type, { runTimeoutMs }]) =>
          runTimeoutMs === undefined || runTimeoutMs <= settings.leaseMs
            ? []
            : [
                {
                  code: 'lease-shorter-than-run',
                  text: `Runs of "${type}" may take ${durationText(runTimeoutMs)}, and a lease lasts ${durationText(settings.leaseMs)}: a handler that blocks its event loop for longer than that is started a second time while the first still runs.`,
                  remedy: `Raise visibility to ${durationText(runTimeoutMs)} or more, lower runTimeout, or make sure that "${type}" never blocks the event loop.`,
                },
              ],
        ),
  )
  return { name: 'leases', seen: settingsSeen(alive), findings: once(findings) }
}

function horizons(alive: readonly WorkerReport[]): Check {
  const findings = alive.flatMap(({ settings }): Diagnosis[] =>
    settings === undefined
      ? []
      : Object.entries(settings.types).flatMap(([type, { retry }]) => {
          if (type === ENGINES) return []
          const horizonMs = retryHorizonMs(retry)
          const keptMs = Math.min(settings.keepMs.done, settings.keepMs.dead)
          if (horizonMs <= keptMs) return []
          return [
            {
              code: 'horizon-beyond-retention',
              text: `Retries of "${type}" may go on for ${durationText(horizonMs)}, and ended items are kept for ${durationText(keptMs)}: results of its group may be gone before its last attempt.`,
              remedy: `Raise ${settings.keepMs.done <= settings.keepMs.dead ? 'keepSuccess' : 'keepDead'} beyond that, or give "${type}" fewer attempts or a lower max.`,
            },
          ]
        }),
  )
  return { name: 'retries', seen: settingsSeen(alive), findings: once(findings) }
}

function settingsSeen(alive: readonly WorkerReport[]): string {
  const telling = alive.filter(({ settings }) => settings !== undefined).length
  return `${telling} of ${alive.length} live workers tell their settings`
}

/** How long the last attempt of a policy may come after the first. */
export function retryHorizonMs(retry: RetryPolicy): Ms {
  const counted = preview(
    { ...retry, attempts: Math.min(retry.attempts, COUNTED_ATTEMPTS) },
    { limit: COUNTED_ATTEMPTS },
  )
  const last = counted.at(-1)
  if (last === undefined) return 0
  return last.sinceStartMs.maxMs + (retry.attempts - last.attempt) * last.waitMs.maxMs
}

function pauses({ paused, rows = [] }: DoctorFacts): Check {
  const waits = (of: 'queue' | 'type', name: string): number =>
    rows.filter((row) => row[of] === name).reduce((sum, { counts }) => sum + counts.waiting + counts.blocked, 0)
  const held = (of: 'queue' | 'type', name: string): Diagnosis[] => {
    const count = waits(of, name)
    if (count === 0) return []
    return [
      {
        code: 'paused-with-work',
        text: `The ${of} "${name}" is paused, and ${counted(count, 'item')} stand there.`,
        remedy: `If that is not meant any more, resume the ${of} "${name}".`,
        command: ['resume', of, name],
      },
    ]
  }
  const { queues, types } = paused
  return {
    name: 'pauses',
    seen: queues.length + types.length === 0 ? 'nothing is paused' : `${queues.length + types.length} paused`,
    findings: [...queues.flatMap((name) => held('queue', name)), ...types.flatMap((name) => held('type', name))],
  }
}

function signed(ms: Ms): string {
  return `${ms < 0 ? '−' : '+'}${durationText(Math.abs(ms))}`
}
