import { preview } from '../../core/retry/preview.js'
import type { RetryPolicy } from '../../core/retry/retry-policy.js'
import type { Ms } from '../../core/time/time.js'
import type { WatcherReport } from '../../guild/stacks/api.js'
import type { OverviewRow, WorkerReport } from '../../ops/api.js'
import { durationText } from '../../ops/duration-text.js'
import { aliveText, unhandledRemedy } from '../../ops/fleet/workers.js'
import type { ServerFacts } from '../connect/connected.js'
import { counted } from '../terminal/bar.js'

/** Everything that a diagnosis is made from. */
export interface DoctorFacts {
  readonly server: ServerFacts
  /** Undefined: the tables do not exist. */
  readonly rows: readonly OverviewRow[] | undefined
  readonly workers: readonly WorkerReport[] | undefined
  readonly paused: { readonly queues: readonly string[]; readonly types: readonly string[] }
  /** The durable watchers of the guild's documents. Undefined: no guild has used this database. */
  readonly watchers?: readonly WatcherReport[] | undefined
}

/** Something that is wrong, or will be. */
export interface Diagnosis {
  readonly code: string
  readonly text: string
  readonly remedy: string
  /** A command that fixes it or shows more, word by word. */
  readonly command?: readonly string[]
}

/** One check: it passed if it has no findings. */
export interface Check {
  readonly name: string
  /** What was seen, in a few words. */
  readonly seen: string
  /** There was nothing to check, so it says nothing about the setup. */
  readonly isSkipped?: boolean
  readonly findings: readonly Diagnosis[]
}

/** A difference this large visibly moves deadlines and schedules; workers correct smaller ones themselves. */
const SKEW_MS: Ms = 1_000
/** How many attempts of an endless policy are counted. */
const COUNTED_ATTEMPTS = 1_000
/** Items of guild engines are enqueued until their outcome is stored; nothing waits for their result. */
const ENGINES = 'spider.engine'

/** All checks of doctor, in the order in which to fix them. */
export function diagnose(facts: DoctorFacts): Check[] {
  const { rows, workers, watchers } = facts
  const guild = watchers === undefined ? [] : [durableWatchers(watchers)]
  const checks = [server(facts), storage(facts), clocks(facts), ...guild]
  if (rows === undefined || workers === undefined) return checks
  const alive = workers.filter(({ isAlive }) => isAlive)
  return [...checks, versions(alive), handled(rows, alive), leases(alive), horizons(alive), pauses(facts)]
}

function server({ server: { server: seen, dangers } }: DoctorFacts): Check {
  return { name: 'server', seen, findings: dangers }
}

function storage({ server: { storage: parts } }: DoctorFacts): Check {
  const findings = parts.flatMap(({ part, version, latest, minReader }): Diagnosis[] => {
    // A guild creates its tables itself; without a guild there are none.
    if (version === 0 && part === 'guild') return []
    if (version === 0)
      return [
        {
          code: 'no-tables',
          text: `There are no Millrace tables here, or they have another schema or prefix.`,
          remedy: 'Check --schema and --prefix. If they are right, run `millrace migrate` or start a worker.',
          command: ['migrate'],
        },
      ]
    if (minReader > latest)
      return [
        {
          code: 'tables-too-new',
          text: `The ${part} tables have version ${version}, which this program (version ${latest}) cannot read.`,
          remedy: 'Update the package.',
        },
      ]
    if (version >= latest) return []
    return [
      {
        code: 'pending-migrations',
        text: `The ${part} tables have version ${version}; this program uses version ${latest}.`,
        remedy: 'Run `millrace migrate`. Older workers keep running during and after it.',
        command: ['migrate'],
      },
    ]
  })
  const there = parts.filter(({ version }) => version > 0).map(({ part, version }) => `${part} version ${version}`)
  return { name: 'storage', seen: there.join(', ') || (parts.length === 0 ? 'no versions' : 'no tables'), findings }
}

/** What a guild decided after a commit, and has not carried out. */
function durableWatchers(watchers: readonly WatcherReport[]): Check {
  const findings = watchers.flatMap(({ name, dead }): Diagnosis[] => {
    const lost: Diagnosis = {
      code: 'dead-events',
      text: `The durable watcher "${name}" could not handle ${counted(dead, 'event')}: what should have followed has not happened.`,
      remedy:
        'Read their errors with stacks.deadEvents(). Fix the cause, then call stacks.redeliver(id) in a process of the guild.',
    }
    return dead > 0 ? [lost] : []
  })
  return { name: 'guild', seen: watchers.map(({ name }) => name).join(', ') || 'no durable watchers', findings }
}

function clocks({ server: { at, askedAt, tookMs }, workers = [] }: DoctorFacts): Check {
  const findings: Diagnosis[] = clocksOfWorkers(workers)
  if (at === undefined) return { name: 'clocks', seen: 'one machine, one clock', findings }
  // It answered somewhere between request and response.
  const skewMs = at - (askedAt + tookMs / 2)
  const surelyMs = Math.max(0, Math.abs(skewMs) - tookMs / 2)
  if (surelyMs > SKEW_MS)
    findings.unshift({
      code: 'clock-skew',
      text: `The backend's clock is ${durationText(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} the clock of this machine.`,
      remedy: 'Run a time service (chrony, systemd-timesyncd) on both. Work is safe: the backend decides what is due.',
    })
  const seen = `backend ${signed(skewMs)} from here${tookMs >= 1 ? `, give or take ${durationText(tookMs / 2)}` : ''}`
  return { name: 'clocks', seen, findings }
}

/** Each live worker reports the offset of its clock from the backend's; all workers of one machine share a clock. */
function clocksOfWorkers(workers: readonly WorkerReport[]): Diagnosis[] {
  const alive = workers.filter(({ isAlive }) => isAlive)
  return [...new Set(alive.map(({ host }) => host))].flatMap((host): Diagnosis[] => {
    const there = alive.filter((worker) => worker.host === host)
    const reported = there.flatMap(({ id, settings }) =>
      settings?.clock === undefined ? [] : [{ id, ...settings.clock }],
    )
    // The most exact measurement counts for the machine.
    const [best] = reported.toSorted((a, b) => a.giveOrTakeMs - b.giveOrTakeMs)
    if (best === undefined || Math.abs(best.aheadMs) - best.giveOrTakeMs <= SKEW_MS) return []
    const { id, aheadMs } = best
    const others = there.length === 1 ? '' : ` and ${counted(there.length - 1, 'more worker')}`
    return [
      {
        code: 'worker-clock-skew',
        text: `The clock of ${host} (worker ${id}${others}) is ${durationText(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the backend's.`,
        remedy: `Run a time service (chrony, systemd-timesyncd) on ${host}. Work is safe: the backend decides what is due. But handlers and logs there have the wrong time.`,
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
              'This is fine during a deploy. Otherwise find the old workers with `millrace workers` and update them.',
            command: ['workers'],
          },
        ]
  return { name: 'workers', ...ofWorkers(alive, `${alive.length} alive, ${found.join(', ')}`), findings }
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
    // Every worker handles gates, and none lists them.
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

/** How long the oldest of them has been ready. */
function oldestText(oldestWaitMs: Ms | undefined, open: number): string {
  return oldestWaitMs === undefined
    ? ''
    : ` (${open === 1 ? '' : 'the oldest '}ready for ${durationText(oldestWaitMs)})`
}

/** Removes duplicate findings of several workers. */
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
                  text: `Runs of "${type}" may take ${durationText(runTimeoutMs)}, and a lease lasts ${durationText(settings.leaseMs)}: a handler that blocks its event loop for longer than that is started a second time while the first run continues.`,
                  remedy: `Raise visibility to ${durationText(runTimeoutMs)} or more, lower runTimeout, or make sure that "${type}" never blocks the event loop.`,
                },
              ],
        ),
  )
  return { name: 'leases', ...ofWorkers(alive, settingsSeen(alive)), findings: once(findings) }
}

function horizons(alive: readonly WorkerReport[]): Check {
  const findings = alive.flatMap(({ settings }): Diagnosis[] =>
    settings === undefined
      ? []
      : Object.entries(settings.types).flatMap(([type, { retry }]) => {
          if (type === ENGINES) return []
          const horizonMs = retryHorizonMs(retry)
          const keptMs = Math.min(settings.keepMs.completed, settings.keepMs.dead)
          if (horizonMs <= keptMs) return []
          return [
            {
              code: 'horizon-beyond-retention',
              text: `Retries of "${type}" may last ${durationText(horizonMs)}, and ended items are kept for ${durationText(keptMs)}: results of its group may be gone before its last attempt.`,
              remedy: `Raise ${settings.keepMs.completed <= settings.keepMs.dead ? 'keepCompleted' : 'keepDead'} beyond that, or give "${type}" fewer attempts or a lower max.`,
            },
          ]
        }),
  )
  return { name: 'retries', ...ofWorkers(alive, settingsSeen(alive)), findings: once(findings) }
}

/** Without a live worker, there is nothing that such a check could find. */
function ofWorkers(alive: readonly WorkerReport[], seen: string): Pick<Check, 'seen' | 'isSkipped'> {
  return alive.length === 0 ? { seen: 'not checked: no worker is alive', isSkipped: true } : { seen }
}

function settingsSeen(alive: readonly WorkerReport[]): string {
  const telling = alive.filter(({ settings }) => settings !== undefined).length
  return `${telling} of ${alive.length} live workers report their settings`
}

/** The longest time between the first and the last attempt of a policy. */
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
        text: `The ${of} "${name}" is paused, and holds ${counted(count, 'item')}.`,
        remedy: `If that is no longer intended, resume the ${of} "${name}".`,
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
