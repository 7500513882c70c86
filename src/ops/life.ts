import { classLabel } from '../core/failure.js'
import type { At } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'
import type { Attempt, Ending } from '../ports/item.js'
import type { ItemSummary } from '../ports/ledger.js'
import { cancelReason } from '../work/cancel-text.js'
import type { Moment } from './api.js'
import { durationText, instantText } from './duration-text.js'
import { hasBegunAnew, type ItemAct } from './item-acts.js'
import { stateOf } from './item-line.js'

/** What the life of an item is told from. */
export interface LifeFacts {
  readonly view: ItemSummary
  /** The oldest first. A backend keeps the last ones only. */
  readonly attempts: readonly Attempt[]
  /** What its gate still waits for. */
  readonly waitsFor: readonly string[] | undefined
  /** What people and tools did to it. */
  readonly acts: readonly ItemAct[]
  readonly now: At
}

/** The life of an item, in order, as far as it can be told from what is kept. */
export function lifeOf(facts: LifeFacts): readonly Moment[] {
  const redrives = redrivesOf(facts)
  const moments = [
    enqueued(facts, redrives),
    ...redrives,
    ...runs(facts, redrives),
    ...cancelCalls(facts),
    ...asides(facts),
    ...present(facts),
  ]
  // What happened at one instant stays in the order of the telling, but nothing comes before it was enqueued.
  return moments
    .map((moment, place) => ({ moment, place }))
    .sort((a, b) => a.moment.at - b.moment.at || a.place - b.place)
    .map(({ moment }) => moment)
}

function enqueued({ view, attempts }: LifeFacts, redrives: readonly Moment[]): Moment {
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
  // A redrive counts as enqueued anew, and the first time is not kept: at the latest it was when anything else is known.
  const at = Math.min(timeInId(envelope.id) ?? queueAt, attempts[0]?.startedAt ?? queueAt, redrives[0]?.at ?? queueAt)
  return { at, what: 'enqueued', text: `${text}; this is when it was at the latest.` }
}

/** The instant in an id that we made: the first 48 bits of a UUIDv7. */
function timeInId(id: string): At | undefined {
  const { high, low } =
    /^(?<high>[0-9a-f]{8})-(?<low>[0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.exec(id)?.groups ?? {}
  return high === undefined || low === undefined ? undefined : Number.parseInt(`${high}${low}`, 16)
}

/**
 * The times at which it went back to work, as they are on record; the last one is also the time of its enqueue. Of those that
 * neither tells, the attempts do: their count began anew.
 */
function redrivesOf({ view, attempts, acts }: LifeFacts): readonly Moment[] {
  const { queueAt, redrives = 0 } = view.envelope
  if (redrives === 0) return []
  const found: Moment[] = acts
    .filter(({ verb }) => verb === 'redrive')
    .map((act) => ({ at: act.at, what: 'redriven', text: `Redriven by ${byText(act)}.` }))
  if (!found.some(({ at }) => at === queueAt)) found.push({ at: queueAt, what: 'redriven', text: 'Redriven.' })
  for (const [i, next] of attempts.entries()) {
    const last = attempts[i - 1]
    if (last === undefined || !hasBegunAnew(last, next)) continue
    if (found.some(({ at }) => at >= last.endedAt && at <= next.startedAt)) continue
    found.push({ at: next.startedAt, what: 'redriven', text: 'Redriven before this; when is not kept.' })
  }
  return found.sort((a, b) => a.at - b.at)
}

function runs({ view, attempts }: LifeFacts, redrives: readonly Moment[]): Moment[] {
  return attempts.flatMap((attempt, i) => {
    const next = attempts[i + 1]
    const until = next?.startedAt ?? Number.POSITIVE_INFINITY
    // One at the very instant of a run that took no time came before it, unless the count tells otherwise.
    const wasRedriven =
      (next !== undefined && hasBegunAnew(attempt, next)) ||
      redrives.some(({ at }) => at >= attempt.endedAt && at > attempt.startedAt && at <= until)
    return [
      started(attempt),
      ...(attempt.class === undefined ? [] : [failed(attempt)]),
      ...after(view, attempt, next, wasRedriven),
    ]
  })
}

function started({ attempt, startedAt, worker }: Attempt): Moment {
  return { at: startedAt, what: 'started', text: `Attempt ${attempt} started on ${worker}.` }
}

function failed({ attempt, startedAt, endedAt, class: of, rule, error }: Attempt): Moment {
  const known = `${classLabel(of ?? 'unclassified')}${rule === undefined ? '' : `, rule ${rule}`}`
  return {
    at: endedAt,
    what: 'failed',
    text: `Attempt ${attempt} failed after ${durationText(endedAt - startedAt)} (${known}): ${error ?? 'no error was kept'}`,
  }
}

/** What became of it after a run that was not its last word, or none: its end is told with its present. */
function after(view: ItemSummary, attempt: Attempt, next: Attempt | undefined, wasRedriven: boolean): Moment[] {
  const at = attempt.endedAt
  const hasFailed = attempt.class !== undefined
  if (wasRedriven)
    return [{ at, what: 'died', text: hasFailed ? 'It was parked as dead.' : 'It ended without a success.' }]
  if (next !== undefined) {
    const then = `attempt ${next.attempt} started at ${instantText(next.startedAt)}`
    return [
      hasFailed
        ? { at, what: 'retried', text: `It was to be tried again: ${then}.` }
        : { at, what: 'deferred', text: `It asked to run later, which spends no attempt: ${then}.` },
    ]
  }
  if (view.status !== 'pending' && view.status !== 'running') return []
  const due = view.status === 'pending' && view.dueAt !== undefined ? ` at ${instantText(view.dueAt)}` : ''
  return [
    hasFailed
      ? { at, what: 'retried', text: `It is to be tried again as attempt ${view.envelope.attempt}${due}.` }
      : { at, what: 'deferred', text: `It asked to run later${due}, which spends no attempt.` },
  ]
}

/** Calls to cancel it, which took effect at once or are on their way to whoever runs it. */
function cancelCalls({ view, acts }: LifeFacts): Moment[] {
  if (view.status === 'dead' && view.ending === 'cancelled') return []
  return acts
    .filter(({ verb }) => verb === 'cancel')
    .map((act) => ({
      at: act.at,
      what: 'cancelled',
      text: `${nameText(act)} asked for it to stop${reasonText(act.why)}.`,
    }))
}

/** What moved it without ending it. */
function asides({ acts }: LifeFacts): Moment[] {
  return acts.flatMap((act): Moment[] => {
    if (act.verb === 'runNow')
      return [
        { at: act.at, what: 'hastened', text: `${nameText(act)} let it run without waiting${reasonText(act.why)}.` },
      ]
    if (act.verb === 'repair')
      return [{ at: act.at, what: 'repaired', text: `An audit by ${byText(act)} put it right.` }]
    return []
  })
}

/** Where it stands, as the last moment. */
function present({ view, waitsFor, acts, now }: LifeFacts): Moment[] {
  const { envelope, endAt = now, error, ending, class: of } = view
  const word = stateOf(view, now)
  switch (word) {
    case 'completed':
      return [{ at: endAt, what: 'succeeded', text: view.ending === 'dropped' ? 'It was dropped.' : 'It succeeded.' }]
    case 'cancelled': {
      // One of a life before its last redrive is another one.
      const call = acts.find(({ verb, at }) => verb === 'cancel' && at >= envelope.queueAt)
      const by = call === undefined ? '' : ` by ${nameText(call)}`
      return [{ at: endAt, what: 'cancelled', text: `It was cancelled${by}${reasonText(cancelReason(error))}.` }]
    }
    case 'dead':
      return [
        {
          at: endAt,
          what: 'died',
          text: `It died: ${endingText(ending)} (${classLabel(of ?? 'unclassified')})${error === undefined ? '' : `: ${error}`}`,
        },
      ]
    case 'active':
      return [running(view, now)]
    case 'blocked':
      return [
        {
          at: now,
          what: 'waits',
          text: waitsFor === undefined ? 'It is held back.' : `It waits for ${waitsFor.join(', ') || 'its gate'}.`,
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

function running(view: ItemSummary, now: At): Moment {
  const { holder = '(unknown)', runAt = now, envelope } = view
  return view.running === false
    ? {
        at: now,
        what: 'waits',
        text: `It was taken by ${holder}, whose last heartbeat did not report it as running${cutOffText(view)}.`,
      }
    : {
        at: runAt,
        what: 'started',
        text: `Attempt ${envelope.attempt} started on ${holder} and runs${cutOffText(view)}.`,
      }
}

/** Runs whose process ended in the middle leave no record but their number. */
function cutOffText({ crashes = 0 }: ItemSummary): string {
  if (crashes === 0) return ''
  return crashes === 1 ? ', after a run that was cut off' : `, after ${crashes} runs that were cut off`
}

function endingText(ending: Ending | undefined): string {
  switch (ending) {
    case 'exhausted':
      return 'its attempts were used up'
    case 'aborted':
      return 'to try again would have been pointless'
    case 'expired':
      return 'its deadline passed'
    case 'crashed':
      return 'its runs were cut off too often'
    case 'unroutable':
      return 'no worker knew its type'
    case 'cancelled':
      return 'it was cancelled'
    case 'done':
    case 'dropped':
    case undefined:
      return 'it ended'
    default:
      return unreachable(ending)
  }
}

/** `ana`, or `ana in bulk (action 0198…)`. */
function nameText({ who, action }: ItemAct): string {
  return action === undefined ? who : `${who} in bulk (action ${action})`
}

function byText(act: ItemAct): string {
  return `${nameText(act)}${reasonText(act.why)}`
}

function reasonText(why: string): string {
  return why === '' ? '' : `: ${why}`
}
