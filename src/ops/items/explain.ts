import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { GateView, ItemSummary } from '../../ports/inspect.js'
import type { Hold } from '../../ports/item.js'
import { cancelReason } from '../../work/control/item-actions.js'
import { isAlive, runs, type SeenWorker } from '../../work/worker/worker-registration.js'
import { durationText, instantText } from '../duration-text.js'
import type { PauseEntry } from '../fleet/pauses.js'
import { aliveText, unhandledRemedy } from '../fleet/workers.js'
import { stateOf } from './listed-item.js'

/** Why an item does not run, as a code that programs can compare. */
export type ReasonCode =
  | 'unknown'
  | 'completed'
  | 'cancelled'
  | 'dead'
  | 'running'
  | 'taken'
  | 'stopping'
  | 'lease-lapsed'
  | 'gate'
  | 'paused'
  | 'limit'
  | 'scheduled'
  | 'retrying'
  | 'deadline'
  | 'no-worker'
  | 'unknown-type'
  | 'waiting'

/** One reason, and what would resolve it. */
export interface Reason {
  readonly code: ReasonCode
  readonly text: string
  readonly remedy: string
}

/** Everything that the reasons are derived from. */
export interface ExplainFacts {
  readonly id: string
  readonly now: At
  readonly view: ItemSummary | undefined
  /** Undefined: this backend does not know its workers. */
  readonly workers: readonly SeenWorker[] | undefined
  /** The gate that holds it, and its unfinished members; `undefined` for one that was never enqueued. */
  readonly gate: GateView | undefined
  readonly members: ReadonlyMap<string, ItemSummary | undefined>
  /** The error of the previous run, for a retry. */
  readonly lastError: string | undefined
  /** Whether its queue or its type is paused, with the log entry if there is one. */
  readonly paused: { readonly queue?: PauseState; readonly type?: PauseState }
}

export interface PauseState {
  readonly entry?: PauseEntry
}

/** How many members of a gate are read and named. */
export const NAMED_MEMBERS = 5

/** The reasons, the deciding one first. Never empty. */
export function explain(facts: ExplainFacts): readonly [Reason, ...Reason[]] {
  const { view, id, now } = facts
  if (view === undefined) {
    return [
      {
        code: 'unknown',
        text: `The backend has no item "${id}".`,
        remedy: 'Check the id, the backend and the prefix. Ended items are removed after their retention time.',
      },
    ]
  }
  const word = stateOf(view, now)
  switch (word) {
    case 'completed':
      return [
        { code: 'completed', text: `It succeeded${sinceText(view.endAt, now)}.`, remedy: 'There is nothing to do.' },
      ]
    case 'cancelled':
      return [
        {
          code: 'cancelled',
          text: `It was cancelled${sinceText(view.endAt, now)} (${cancelReason(view.error) || 'no reason given'}).`,
          remedy: 'Redrive it if it is needed after all: it starts again at attempt 1.',
        },
      ]
    case 'dead':
      return [dead(view, now)]
    case 'active':
      return running(facts, view)
    case 'blocked':
      return [held(facts, view), ...handlers(facts, view)]
    case 'scheduled':
    case 'retrying': {
      if (view.cancelReason !== undefined) return [stopped(view, now)]
      return [later(word, view, facts), ...deadlines(view, now), ...pauses(facts, view), ...handlers(facts, view)]
    }
    case 'waiting': {
      if (view.cancelReason !== undefined) return [stopped(view, now), ...handlers(facts, view)]
      const found = [...pauses(facts, view), ...handlers(facts, view), ...deadlines(view, now)]
      const [first, ...rest] = found
      return first === undefined ? [waiting(view, now)] : [first, ...rest]
    }
    default:
      return unreachable(word)
  }
}

function dead({ ending, class: of, error, endAt, envelope }: ItemSummary, now: At): Reason {
  const text = `It died (${ending ?? 'ended'}, ${of ?? 'unclassified'})${sinceText(endAt, now)}, on attempt ${envelope.attempt}: ${error ?? 'no error was stored'}`
  switch (ending) {
    case 'exhausted':
      return { code: 'dead', text, remedy: 'Fix what it depends on, then redrive it: it starts again at attempt 1.' }
    case 'expired':
      return { code: 'dead', text, remedy: 'Redrive it if it is still needed; its deadline is then dropped.' }
    case 'unroutable':
      return {
        code: 'dead',
        text,
        remedy: `Start a worker that has "${envelope.type}" in its \`work\` list, then redrive it.`,
      }
    case 'crashed':
      return { code: 'dead', text, remedy: 'Its runs crashed their process. Find out why before you redrive it.' }
    default:
      return {
        code: 'dead',
        text,
        remedy: 'It cannot succeed as it is. Fix the handler or its input and redrive it, or discard it.',
      }
  }
}

function running(facts: ExplainFacts, view: ItemSummary): readonly [Reason, ...Reason[]] {
  const { now } = facts
  const holder = facts.workers?.find(({ id }) => id === view.worker)
  const who = holder === undefined ? `worker ${view.worker ?? '(unknown)'}` : `${holder.host} (worker ${holder.id})`
  const until = view.leaseUntil
  if (until !== undefined && until <= now) {
    // Only a run that the last heartbeat reported counts as cut off.
    const what = view.running === false ? 'It was abandoned' : 'Its run was cut off'
    const lapsed: Reason = {
      code: 'lease-lapsed',
      text: `${what}: the lease of ${who} ended ${durationText(now - until)} ago${cutOffText(view)}.`,
      remedy: `The next claim of any worker from queue "${view.queue ?? 'default'}" puts it back to work.`,
    }
    return [lapsed, ...handlers(facts, view)]
  }
  if (view.cancelReason !== undefined) {
    return [
      {
        code: 'stopping',
        text: `It was cancelled (${view.cancelReason === '' ? 'no reason given' : view.cancelReason}) while ${view.running === false ? `${who} held it` : `it runs on ${who}`}.`,
        remedy:
          'Its worker is notified with its next heartbeat at the latest; then its signal fires. It ends as cancelled, unless its handler ignores the signal and succeeds.',
      },
    ]
  }
  const lease = until === undefined ? '' : `lease until ${instantText(until)}`
  const ago = view.runAt === undefined ? undefined : durationText(now - view.runAt)
  if (view.running === false) {
    return [
      {
        code: 'taken',
        text: `It was taken${ago === undefined ? '' : ` ${ago} ago`} by ${who}, whose last heartbeat did not report it as running${lease && `; ${lease}`}.`,
        remedy:
          'Wait, or cancel it. It is running already, is among the next to run there, or has run and its outcome is being stored; heartbeats report every few seconds. If that process dies, it is put back to work when the lease ends.',
      },
    ]
  }
  return [
    {
      code: 'running',
      text: `It has been running on ${who}${ago === undefined ? '' : ` for ${ago}`}, attempt ${view.envelope.attempt}${lease && `, ${lease}`}.`,
      remedy: 'Wait for it, or cancel it. If its process dies, it is put back to work when the lease ends.',
    },
  ]
}

/** It was cancelled while it ran, and that run failed or was cut off before it was notified. */
function stopped({ cancelReason, dueAt = 0 }: ItemSummary, now: At): Reason {
  const when = dueAt > now ? `at ${instantText(dueAt)}, in ${durationText(dueAt - now)}` : 'when a worker claims it'
  return {
    code: 'stopping',
    text: `It was cancelled (${cancelReason === '' ? 'no reason given' : cancelReason}) during its last run: it does not run again, and ends as cancelled ${when}.`,
    remedy: 'There is nothing to do. Cancel it once more to end it now.',
  }
}

/** How often that has happened before. At the limit of its worker (default 3) it is dead-lettered as crashed. */
function cutOffText({ crashes = 0 }: ItemSummary): string {
  return crashes === 0 ? '' : `, and it had been cut off ${crashes === 1 ? 'once' : `${crashes} times`} before`
}

function held(facts: ExplainFacts, view: ItemSummary): Reason {
  const { hold, dueAt } = view
  const atLatest =
    dueAt === undefined || dueAt === Infinity ? '' : ` At the latest it is freed at ${instantText(dueAt)}.`
  switch (hold?.by) {
    case 'gate': {
      const { gate } = facts
      if (gate === undefined) {
        return {
          code: 'gate',
          text: `It waits for a gate ("${hold.key}") that no longer exists.${atLatest}`,
          remedy: 'Run it now, or cancel it.',
        }
      }
      const named = gate.waiting.slice(0, NAMED_MEMBERS)
      const names = named.map((id) => memberText(id, facts.members.get(id), facts.now))
      const more = gate.waiting.length - names.length
      const absent = named.filter((id) => facts.members.get(id) === undefined)
      const verb = gate.of === 'success' ? 'succeed' : 'end'
      const isOne = gate.waiting.length === 1
      const who = isOne ? 'it' : `${gate.need === gate.waiting.length ? 'all' : gate.need} of them`
      return {
        code: 'gate',
        text: `It waits for ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}: ${who} must ${verb}.${atLatest}`,
        remedy:
          absent.length === 0
            ? `It is freed automatically when ${isOne ? 'that has' : 'they have'}. Find out why ${named[0] ?? 'it'} has not ended.`
            : `Enqueue ${absent.join(', ')}, or cancel it. It is then freed automatically.`,
      }
    }
    case 'pause': {
      const { what, name } = pausedBy(hold)
      return paused(what, name, facts.paused[what], facts, 'it returns to its old place')
    }
    case 'limit':
      return {
        code: 'limit',
        text: `It is held because the limit "${hold.key}" is reached.${atLatest}`,
        remedy: 'It is freed automatically when others under that limit have ended.',
      }
    default:
      return { code: 'waiting', text: 'It is held.', remedy: 'Run it now, or cancel it.' }
  }
}

function memberText(id: string, view: ItemSummary | undefined, now: At): string {
  if (view === undefined) return `${id} (not enqueued yet)`
  const word = stateOf(view, now)
  if (word === 'dead') return `${id} (dead: ${view.class ?? view.ending})`
  return word === 'active' || word === 'retrying'
    ? `${id} (${word}, attempt ${view.envelope.attempt})`
    : `${id} (${word})`
}

function later(word: 'scheduled' | 'retrying', view: ItemSummary, { now, lastError: error }: ExplainFacts): Reason {
  const { dueAt = now, envelope } = view
  const at = `${instantText(dueAt)}, in ${durationText(dueAt - now)}`
  return word === 'scheduled'
    ? { code: 'scheduled', text: `It is scheduled for ${at}.`, remedy: 'Wait, or run it now.' }
    : {
        code: 'retrying',
        text: `Attempt ${envelope.attempt} comes at ${at}${error === undefined ? '' : `; the last one failed: ${error}`}.`,
        remedy: 'Wait, or run it now.',
      }
}

function pauses(facts: ExplainFacts, view: ItemSummary): Reason[] {
  const { queue, type } = facts.paused
  return [
    ...(queue === undefined ? [] : [paused('queue', view.queue ?? 'default', queue, facts)]),
    ...(type === undefined ? [] : [paused('type', view.envelope.type, type, facts)]),
  ]
}

function paused(
  what: 'queue' | 'type',
  name: string,
  state: PauseState | undefined,
  { now, workers }: ExplainFacts,
  then = 'what waits there runs again',
): Reason {
  const entry = state?.entry
  // A pause by a program is logged under the id of its worker; its host says more to people.
  const host = workers?.find(({ id }) => id === entry?.who)?.host
  const paused =
    entry === undefined
      ? ''
      : `: ${host ?? entry.who} paused it at ${instantText(entry.at)}, ${durationText(now - entry.at)} ago${entry.why === '' ? '' : ` (${entry.why})`}`
  return {
    code: 'paused',
    text: `The ${what} "${name}" is paused${paused}.`,
    remedy: `Resume the ${what} "${name}": ${then}.`,
  }
}

/** What is paused, read from the key of a hold: `queue:<name>` or `type:<name>`. */
export function pausedBy({ key }: Hold): { readonly what: 'queue' | 'type'; readonly name: string } {
  const at = key.indexOf(':')
  return { what: key.slice(0, at) === 'type' ? 'type' : 'queue', name: key.slice(at + 1) }
}

/** An item whose deadline keeps it from running, although it has not ended yet. */
function deadlines({ envelope: { deadline }, dueAt = 0 }: ItemSummary, now: At): Reason[] {
  if (deadline === undefined || (deadline > now && deadline >= dueAt)) return []
  return [
    {
      code: 'deadline',
      text:
        deadline <= now
          ? `Its deadline passed ${durationText(now - deadline)} ago: it will not run and will end as expired.`
          : `Its deadline, ${instantText(deadline)}, is before its due time: it will not run and will end as expired.`,
      remedy: 'Redrive it once it has expired, if it is still needed: its deadline is then dropped.',
    },
  ]
}

/** Whether a live worker could run it. */
function handlers({ workers, now }: ExplainFacts, view: ItemSummary): Reason[] {
  if (workers === undefined) return []
  const queue = view.queue ?? 'default'
  const alive = workers.filter((worker) => isAlive(worker, now))
  const serving = alive.filter(({ queues }) => queues.includes(queue))
  if (serving.length === 0) {
    const last = workers.filter(({ queues }) => queues.includes(queue)).map(({ seenAt }) => seenAt)
    const seen =
      last.length === 0
        ? 'none was seen within the last hour'
        : `the last was seen ${durationText(now - Math.max(...last))} ago`
    return [
      {
        code: 'no-worker',
        text: `No live worker serves queue "${queue}" (${seen}).`,
        remedy: `Start a process with createWork on this backend that serves queue "${queue}".`,
      },
    ]
  }
  const { type } = view.envelope
  if (serving.some((worker) => runs(worker, queue, type))) return []
  return [
    {
      code: 'unknown-type',
      text: `No live worker of queue "${queue}" handles type "${type}"${readyText(view, now)}. ${aliveText(serving)}`,
      remedy: `${unhandledRemedy(type, 'it')}${endText(view, now)}`,
    },
  ]
}

/** Since when it could have run. */
function readyText({ status, hold, dueAt }: ItemSummary, now: At): string {
  if (status !== 'pending' || hold !== undefined || dueAt === undefined || dueAt > now) return ''
  return `: it has waited since ${instantText(dueAt)}, ${durationText(now - dueAt)} ago, and stays where it is`
}

/** What ends it although no worker handles it. */
function endText({ envelope: { deadline } }: ItemSummary, now: At): string {
  if (deadline === undefined || deadline <= now) return ''
  return ` At its deadline, ${instantText(deadline)}, it ends as expired.`
}

function waiting(view: ItemSummary, now: At): Reason {
  const ago = view.dueAt === undefined ? '' : ` for ${durationText(now - view.dueAt)}`
  return {
    code: 'waiting',
    text: `It has been waiting for its turn${ago}: those before it have a higher priority or were due earlier.`,
    remedy:
      'Wait; or give the workers more room (concurrency or doer), start more of them, or raise the priority of such items.',
  }
}

function sinceText(at: At | undefined, now: At): string {
  return at === undefined ? '' : ` at ${instantText(at)}, ${durationText(now - at)} ago`
}
