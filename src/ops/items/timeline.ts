import { classLabel } from '../../core/failure/failure.js'
import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { Attempt, Ending } from '../../ports/item.js'
import { cancelReason } from '../../work/control/item-actions.js'
import type { TimelineEntry } from '../api.js'
import { durationText, instantText } from '../duration-text.js'
import { endOfRun, hasStartedOver, type ItemAction } from './action-history.js'
import { stateOf } from './listed-item.js'

/** What a timeline is derived from. */
export interface TimelineFacts {
  readonly view: ItemSummary
  /** Oldest first. A backend keeps only the latest. */
  readonly attempts: readonly Attempt[]
  /** What its gate still waits for. */
  readonly waitsFor: readonly string[] | undefined
  /** What people and tools did to it. */
  readonly actions: readonly ItemAction[]
  readonly now: At
}

/** What happened to an item, in order, as far as it is still stored. */
export function timelineOf(facts: TimelineFacts): readonly TimelineEntry[] {
  const redrives = redrivesOf(facts)
  const ran = runs(facts, redrives)
  const last = present(facts)
  // A worker's estimate of the store's time may be a little ahead: what the item is now still comes after its runs.
  const lastRun = ran.reduce((latest, { at }) => Math.max(latest, at), 0)
  const orderOf = (entry: TimelineEntry): At => (last.includes(entry) ? Math.max(entry.at, lastRun) : entry.at)
  // Entries of the same instant keep this order.
  return [enqueued(facts, redrives), ...redrives, ...ran, ...cancelCalls(facts), ...moves(facts), ...last].sort(
    (a, b) => orderOf(a) - orderOf(b),
  )
}

function enqueued({ view, attempts }: TimelineFacts, redrives: readonly TimelineEntry[]): TimelineEntry {
  const { envelope, queue = 'default' } = view
  const { parent, dependents = [], priority, startAt, queueAt, redrives: count = 0 } = envelope
  const by =
    parent === undefined
      ? ''
      : dependents.length === 0
        ? ` by ${parent}`
        : ` by the gate ${parent}, which waited for ${dependents.join(', ')}`
  const ahead = priority === 0 ? '' : ` with priority ${priority}`
  const text = `Enqueued${by} on queue "${queue}"${ahead}`
  if (count === 0) {
    const later = envelope.attempt === 1 && startAt > queueAt ? `, to start at ${instantText(startAt)}` : ''
    return { at: queueAt, what: 'enqueued', text: `${text}${later}.` }
  }
  // A redrive resets the enqueue time, so the first one is lost: the earliest known event is its latest possible value.
  const at = Math.min(timeInId(envelope.id) ?? queueAt, attempts[0]?.startedAt ?? queueAt, redrives[0]?.at ?? queueAt)
  return { at, what: 'enqueued', text: `${text}, at this time or earlier.` }
}

/** The instant in an id that Millrace generated: the first 48 bits of a UUIDv7. */
function timeInId(id: string): At | undefined {
  const { high, low } =
    /^(?<high>[0-9a-f]{8})-(?<low>[0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.exec(id)?.groups ?? {}
  return high === undefined || low === undefined ? undefined : Number.parseInt(`${high}${low}`, 16)
}

/**
 * The redrives, from the log and the bulk actions; the last one is also the enqueue time. Others show in the attempts, whose
 * numbers start over.
 */
function redrivesOf({ view, attempts, actions }: TimelineFacts): readonly TimelineEntry[] {
  const { queueAt, redrives = 0 } = view.envelope
  if (redrives === 0) return []
  const found: TimelineEntry[] = actions
    .filter(({ verb }) => verb === 'redrive')
    .map((action) => ({ at: action.at, what: 'redriven', text: `Redriven by ${byText(action)}.` }))
  if (!found.some(({ at }) => at === queueAt)) found.push({ at: queueAt, what: 'redriven', text: 'Redriven.' })
  for (const [i, next] of attempts.entries()) {
    const last = attempts[i - 1]
    if (last === undefined || !hasStartedOver(last, next)) continue
    if (found.some(({ at }) => at >= last.endedAt && at <= next.startedAt)) continue
    found.push({ at: next.startedAt, what: 'redriven', text: 'Redriven before this; the time is not stored.' })
  }
  return found.sort((a, b) => a.at - b.at)
}

function runs({ view, attempts }: TimelineFacts, redrives: readonly TimelineEntry[]): TimelineEntry[] {
  return attempts.flatMap((attempt, i) => {
    const next = attempts[i + 1]
    const until = next?.startedAt ?? Number.POSITIVE_INFINITY
    // A redrive at the instant of a run without duration came before it, unless the numbers show otherwise.
    const wasRedriven =
      (next !== undefined && hasStartedOver(attempt, next)) ||
      redrives.some(({ at }) => at >= attempt.endedAt && at > attempt.startedAt && at <= until)
    return [
      started(attempt),
      ...(attempt.class === undefined ? [] : [failed(attempt)]),
      ...after(view, attempt, next, wasRedriven),
    ]
  })
}

function started({ attempt, startedAt, worker }: Attempt): TimelineEntry {
  return { at: startedAt, what: 'started', text: `Attempt ${attempt} started on ${worker}.` }
}

function failed({ attempt, startedAt, endedAt, class: of, rule, error }: Attempt): TimelineEntry {
  const known = `${classLabel(of ?? 'unclassified')}${rule === undefined ? '' : `, rule ${rule}`}`
  return {
    at: endedAt,
    what: 'failed',
    text: `Attempt ${attempt} failed after ${durationText(endedAt - startedAt)} (${known}): ${error ?? 'no error was stored'}`,
  }
}

/** What followed a run that did not end the item. Its end is part of `present`. */
function after(view: ItemSummary, attempt: Attempt, next: Attempt | undefined, wasRedriven: boolean): TimelineEntry[] {
  const at = attempt.endedAt
  const hasFailed = attempt.class !== undefined
  if (wasRedriven) return [endedBefore(attempt)]
  if (next !== undefined) {
    const then = `attempt ${next.attempt} started at ${instantText(next.startedAt)}`
    return [
      hasFailed
        ? { at, what: 'retried', text: `It was retried: ${then}.` }
        : { at, what: 'deferred', text: `It asked to run later, which uses no attempt: ${then}.` },
    ]
  }
  if (view.status !== 'pending' && view.status !== 'running') return []
  const due = view.status === 'pending' && view.dueAt !== undefined ? ` at ${instantText(view.dueAt)}` : ''
  return [
    hasFailed
      ? { at, what: 'retried', text: `It is retried as attempt ${view.envelope.attempt}${due}.` }
      : { at, what: 'deferred', text: `It asked to run later${due}, which uses no attempt.` },
  ]
}

/** How an item ended that was redriven later. */
function endedBefore(attempt: Attempt): TimelineEntry {
  const at = attempt.endedAt
  const end = endOfRun(attempt)
  if (end === 'cancelled') return { at, what: 'cancelled', text: 'It was cancelled.' }
  if (end === 'expired') return { at, what: 'died', text: 'It died: its deadline passed.' }
  return { at, what: 'died', text: attempt.class === undefined ? 'It ended without success.' : 'It was dead-lettered.' }
}

/** Cancel requests that have not ended the item, or not yet. */
function cancelCalls({ view, actions }: TimelineFacts): TimelineEntry[] {
  if (view.status === 'dead' && view.ending === 'cancelled') return []
  return actions
    .filter(({ verb }) => verb === 'cancel')
    .map((action) => ({
      at: action.at,
      what: 'cancelled',
      text: `${nameText(action)} asked to cancel it${reasonText(action.why)}.`,
    }))
}

/** Actions that moved it without ending it. */
function moves({ actions }: TimelineFacts): TimelineEntry[] {
  return actions.flatMap((action): TimelineEntry[] => {
    if (action.verb === 'runNow')
      return [
        {
          at: action.at,
          what: 'hastened',
          text: `${nameText(action)} made it ready to run now${reasonText(action.why)}.`,
        },
      ]
    if (action.verb === 'repair')
      return [{ at: action.at, what: 'repaired', text: `An audit by ${byText(action)} repaired it.` }]
    return []
  })
}

/** Its current state, as the last entry. */
function present({ view, waitsFor, actions, now }: TimelineFacts): TimelineEntry[] {
  const { envelope, endAt = now, error, ending, class: of } = view
  const word = stateOf(view, now)
  switch (word) {
    case 'completed':
      return [{ at: endAt, what: 'succeeded', text: view.ending === 'dropped' ? 'It was dropped.' : 'It succeeded.' }]
    case 'cancelled': {
      // A cancel before its last redrive is a different one.
      const call = actions.find(({ verb, at }) => verb === 'cancel' && at >= envelope.queueAt)
      const by = call === undefined ? '' : ` by ${nameText(call)}`
      return [{ at: endAt, what: 'cancelled', text: `It was cancelled${by}${reasonText(cancelReason(error))}.` }]
    }
    case 'dead':
      return [
        {
          at: endAt,
          what: 'died',
          text: `It died: ${ENDINGS[ending ?? 'completed'] ?? 'it ended'} (${classLabel(of ?? 'unclassified')})${error === undefined ? '' : `: ${error}`}`,
        },
      ]
    case 'active':
      return [running(view, now)]
    case 'blocked':
      return [
        {
          at: now,
          what: 'waits',
          text: waitsFor === undefined ? 'It is held.' : `It waits for ${waitsFor.join(', ') || 'its gate'}.`,
        },
      ]
    case 'scheduled':
    case 'retrying':
      return [{ at: now, what: 'waits', text: `It waits until ${instantText(view.dueAt ?? now)}${cutOffText(view)}.` }]
    case 'waiting':
      return [{ at: now, what: 'waits', text: `It waits for a worker${cutOffText(view)}.` }]
    default:
      return unreachable(word)
  }
}

function running(view: ItemSummary, now: At): TimelineEntry {
  const { worker = '(unknown)', runAt = now, envelope } = view
  return view.running === false
    ? {
        at: now,
        what: 'waits',
        text: `It was taken by ${worker}, whose last heartbeat did not report it as running${cutOffText(view)}.`,
      }
    : {
        at: runAt,
        what: 'started',
        text: `Attempt ${envelope.attempt} started on ${worker} and is running${cutOffText(view)}.`,
      }
}

/** Runs whose process died leave only their number. */
function cutOffText({ crashes = 0 }: ItemSummary): string {
  if (crashes === 0) return ''
  return crashes === 1 ? ', after a run that was cut off' : `, after ${crashes} runs that were cut off`
}

const ENDINGS: Readonly<Partial<Record<Ending, string>>> = {
  exhausted: 'its attempts were used up',
  aborted: 'a retry could not have helped',
  expired: 'its deadline passed',
  crashed: 'its runs were cut off too often',
  unroutable: 'no worker handled its type',
  cancelled: 'it was cancelled',
}

/** `ana`, or `ana in bulk (action 0198…)`. */
function nameText({ who, action }: ItemAction): string {
  return action === undefined ? who : `${who} in bulk (action ${action})`
}

function byText(action: ItemAction): string {
  return `${nameText(action)}${reasonText(action.why)}`
}

function reasonText(why: string): string {
  return why === '' ? '' : `: ${why}`
}
