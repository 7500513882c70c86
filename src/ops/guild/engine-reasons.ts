import type { At } from '../../core/time/time.js'
import type { EngineRow } from '../../guild/spider/rigs/rig.js'
import { isSettled } from '../../guild/spider/rigs/rig.js'
import { durationText, instantText } from '../duration-text.js'
import type { Rig } from './rig-report.js'
import { engineName, namedText, sinceText, type WritFacts, type WritReason } from './writ-facts.js'

/** What the engines of an active rig do or wait for; blocked ones first. */
export function engineReasons(facts: WritFacts, { row, engines }: Rig): WritReason[] {
  const byId = new Map(engines.map((engine) => [engine.engineId, engine]))
  const isReady = ({ upstream }: EngineRow) => upstream.every((id) => isSettled(byId.get(id)?.status ?? 'pending'))
  const of = (status: EngineRow['status']) => engines.filter((engine) => engine.status === status)
  const grafts = (row.pendingGrafts ?? []).length
  return [
    ...of('blocked').map((engine) => blocked(facts, row.id, engine)),
    ...of('running').map((engine) => running(facts, engine)),
    ...of('pending')
      .filter(isReady)
      .map((engine) => ready(facts, row.id, engine)),
    ...(grafts === 0 ? [] : [graft(row.id, grafts)]),
  ]
}

function running(facts: WritFacts, engine: EngineRow): WritReason {
  const { now } = facts
  const { engineId, claim, sessionId, startedAt, item, isSessionOver } = engine
  const name = engineName(engine)
  const since = sinceText(startedAt, now)
  if (sessionId !== undefined) {
    return isSessionOver === true
      ? {
          code: 'engine-session',
          text: `The session ${sessionId} of engine "${engineId}" has ended, and its result has not been collected.`,
          remedy: CRAWL,
        }
      : {
          code: 'engine-session',
          text: `${name} waits${since} for its session ${sessionId} to end.`,
          remedy: 'Check the session, or cancel the rig.',
        }
  }
  const lapsedMs = claim?.leaseUntil === undefined ? undefined : now - Date.parse(claim.leaseUntil)
  if (lapsedMs !== undefined && lapsedMs >= 0) {
    return {
      code: 'engine-lapsed',
      text: `The run of engine "${engineId}" was cut off: the claim of ${claim?.owner ?? 'its process'} lapsed ${durationText(lapsedMs)} ago.`,
      remedy: `The next crawl takes it over. ${CRAWL}`,
    }
  }
  if (item !== undefined) return asItem(facts, engine, since)
  const owner = claim === undefined ? '' : ` in ${claim.owner}`
  const until = claim?.leaseUntil === undefined ? '' : `, its claim lasts until ${claim.leaseUntil}`
  return {
    code: 'engine-running',
    text: `${name} runs${since}${owner}${until}.`,
    remedy: `Wait for it, or cancel its rig. If its process dies, another one runs "${engineId}" again.`,
  }
}

/** An engine that runs as a work item: the reasons of the item are its reasons. */
function asItem(facts: WritFacts, engine: EngineRow, since: string): WritReason {
  const name = engineName(engine)
  const item = facts.items.get(engine.engineId)
  if (engine.item === 'due') {
    return {
      code: 'engine-ready',
      text: `${name} has its slot${since} and has not been enqueued as work yet.`,
      remedy: 'Start a process whose guild calls spider.start({ work }): it enqueues the engine.',
    }
  }
  if (item === undefined || item.reason.code === 'unknown') {
    return {
      code: 'engine-running',
      text: `${name} was enqueued as work${since}${item === undefined ? '' : ` as item ${item.id}, which is not on this backend`}.`,
      remedy: 'Check its item on the backend of the work system that Spider was started with.',
    }
  }
  return {
    code: item.reason.code === 'running' ? 'engine-running' : 'engine-ready',
    text: `${name} is work item ${item.id}${since}. ${item.reason.text}`,
    remedy: item.reason.remedy,
  }
}

function blocked(facts: WritFacts, rigId: string, engine: EngineRow): WritReason {
  const { block } = engine
  const type = block?.type ?? 'a block'
  const said = block?.message === undefined ? '' : `: ${block.message}`
  const waits = waitText(facts, type, block?.condition)
  const checked = block?.lastCheckedAt === undefined ? '' : ` It was last checked at ${block.lastCheckedAt}.`
  return {
    code: 'engine-blocked',
    text: `${engineName(engine)} is blocked by ${type}${sinceText(block?.blockedAt, facts.now)}${said}.${waits.text}${checked}`,
    remedy: `${waits.remedy} Or resume it now: spider.resume("${rigId}", "${engine.engineId}").`,
  }
}

/** What a built-in block waits for, in words; only the plugin knows for others. */
function waitText(
  facts: WritFacts,
  type: string,
  condition: unknown,
): { readonly text: string; readonly remedy: string } {
  const given = typeof condition === 'object' && condition !== null ? (condition as Record<string, unknown>) : {}
  const field = (name: string) => (typeof given[name] === 'string' ? given[name] : undefined)
  switch (type) {
    case 'writ-phase': {
      const id = field('writId') ?? '(unknown)'
      return {
        text: ` It waits for ${namedText(id, facts.others.get(id))} to be ${field('targetPhase') ?? 'in another phase'}.`,
        remedy: `Find out why ${id} does not continue.`,
      }
    }
    case 'scheduled-time': {
      const at = Date.parse(field('resumeAt') ?? '')
      const left = Number.isNaN(at) ? '' : leftText(at, facts.now)
      return { text: ` It waits until ${field('resumeAt') ?? '(unknown)'}${left}.`, remedy: 'Wait.' }
    }
    case 'patron-input': {
      const id = field('requestId') ?? '(unknown)'
      const status = facts.requests.get(id)?.status
      return {
        text: ` It waits for a person to answer input request ${id} (${status ?? 'which does not exist'}).`,
        remedy:
          status === 'pending'
            ? `Answer input request ${id}: answer("${id}", answers) of guildClient().`
            : 'The next check frees it.',
      }
    }
    case 'book-updated':
      return {
        text: ` It waits for a change of ${field('ownerId') ?? '?'}/${field('book') ?? '?'}${field('documentId') === undefined ? '' : ` ${field('documentId')}`}.`,
        remedy: 'Change that document.',
      }
    default:
      return { text: '', remedy: `Do what "${type}" waits for; its plugin knows what that is.` }
  }
}

function leftText(at: At, now: At): string {
  return at > now ? `, in ${durationText(at - now)}` : ', which has passed: the next check frees it'
}

function ready(facts: WritFacts, rigId: string, engine: EngineRow): WritReason {
  const { holdUntil, attempts = [], attemptCount = 0, engineId } = engine
  const holdAt = Date.parse(holdUntil ?? '')
  if (holdAt > facts.now) {
    const error = attempts.at(-1)?.error
    return {
      code: 'engine-held',
      text: `${engineName(engine)} failed ${attemptCount === 1 ? 'once' : `${attemptCount} times`} in this rig${error === undefined ? '' : ` (${error})`}; it is retried at ${instantText(holdAt)}, in ${durationText(holdAt - facts.now)}.`,
      remedy: `Wait, or run it now: spider.resume("${rigId}", "${engineId}").`,
    }
  }
  return {
    code: 'engine-ready',
    text: `${engineName(engine)} is ready and has not been started (${runningText(facts.running)}).`,
    remedy: `${CRAWL} If one does, all slots are in use: wait, or raise maxConcurrentEngines.`,
  }
}

function graft(rigId: string, count: number): WritReason {
  return {
    code: 'graft',
    text: `${count === 1 ? 'A graft waits' : `${count} grafts wait`} to be added to rig ${rigId}.`,
    remedy: CRAWL,
  }
}

export const CRAWL =
  'Make sure that a process of the guild crawls: spider.start({ work }), or spider.crawl() in a loop.'

export function runningText(running: number): string {
  return running === 1 ? 'one engine runs in the guild' : `${running === 0 ? 'no' : running} engines run in the guild`
}
