import { spiderStatusOf } from '../../guild/spider/dispatch/writ-status.js'
import { type EngineRow, isActive } from '../../guild/spider/rigs/rig.js'
import { durationText, instantText } from '../duration-text.js'
import { CRAWL, engineReasons, runningText } from './engine-reasons.js'
import type { Rig } from './rig-report.js'
import { engineName, hasEnded, namedTexts, sinceText, type WritFacts, type WritReason } from './writ-facts.js'

/** Why a writ has not ended, the deciding reason first. Empty once it has ended. */
export function writReasons(facts: WritFacts): readonly WritReason[] {
  const { writ, rigs } = facts
  if (hasEnded(writ)) return []
  const newest = rigs.at(-1)
  const active = newest !== undefined && isActive(newest.row.status) ? newest : undefined
  // A rig continues whatever happens to its writ, and its end decides about the writ.
  if (active !== undefined) return [...engineReasons(facts, active), ...children(facts)]
  switch (writ.phase) {
    case 'stuck':
      return [stuck(facts), ...children(facts)]
    case 'open':
      return newest?.row.status === 'stuck' && newest.engines.some(isRunning)
        ? [...ending(newest), ...engineReasons(facts, newest), ...children(facts)]
        : open(facts)
    default:
      return [waitsInPhase(facts), ...children(facts)]
  }
}

const isRunning = ({ status }: EngineRow): boolean => status === 'running'

/** The writ was opened again while engines of the previous rig still run. */
function ending({ row, engines }: Rig): WritReason[] {
  const named = engines.filter(isRunning).map((engine) => `"${engine.engineId}"`)
  const verb = named.length === 1 ? 'has' : 'have'
  return [
    {
      code: 'rig-ending',
      text: `It gets its next rig when ${named.join(', ')}, which ran beside the engine that failed in rig ${row.id}, ${verb} ended.`,
      remedy: `Wait; or cancel that rig, and this writ with it: spider.cancel("${row.id}").`,
    },
  ]
}

function waitsInPhase({ writ, rigs }: WritFacts): WritReason {
  const since = `${writ.id} since ${writ.updatedAt}`
  return writ.phase === 'new' && rigs.length === 0
    ? {
        code: 'draft',
        text: `It is a draft (${since}) and has not been opened.`,
        remedy: `Open it: ops.openWrit("${writ.id}", { who }).`,
      }
    : {
        code: 'phase',
        text: `It is in phase "${writ.phase}" (${since}), and Spider gives rigs to open writs only.`,
        remedy: `The plugin or person in charge of that phase of "${writ.type}" has to move it on: clerk.transition("${writ.id}", …).`,
      }
}

function open(facts: WritFacts): readonly WritReason[] {
  const { writ, dispatch, running } = facts
  const unfinished = children(facts)
  // Its own work is done.
  if (dispatch?.state === 'children' && unfinished.length > 0) return unfinished
  switch (dispatch?.state) {
    case undefined: {
      const why: WritReason = {
        code: 'not-dispatched',
        text: `Spider does not know it: no rig template is mapped to "${writ.type}", or no guild with Spider has run since it was posted.`,
        remedy:
          unfinished.length > 0
            ? 'Nothing, if its children fulfil it.'
            : `Map a template in guild.json: spider.rigTemplateMappings["${writ.type}"]; or complete it by hand.`,
      }
      // A parent without its own rig ends with its children, so these decide.
      return [...unfinished, why]
    }
    case 'held':
      return [held(facts), ...unfinished]
    case 'delayed':
      return [delayed(facts, dispatch.dueAt), ...unfinished]
    case 'cancelling':
      // It is open no longer: nothing is read in between, because both are written at once.
      return unfinished
    case 'ready':
    case 'children':
    case 'active':
    case 'stuck':
    case 'recheck': {
      const blockers = facts.blockerIds.filter((id) => isInTheWay(facts, id))
      if (blockers.length > 0) return [held(facts), ...unfinished]
      return [
        {
          code: 'queued',
          text: `It is in line for a rig${sinceText(writ.updatedAt, facts.now)}, and no crawl has reached it (${runningText(running)}).`,
          remedy: `${CRAWL} If one does, all slots are in use: wait, or raise maxConcurrentEngines.`,
        },
        ...unfinished,
      ]
    }
  }
}

function delayed({ writ, rigs, now }: WritFacts, dueAt: string | undefined): WritReason {
  const at = Date.parse(dueAt ?? writ.runAt ?? '')
  const left = at > now ? `, in ${durationText(at - now)}` : ', which has come: the next crawl sees it'
  const asked = spiderStatusOf(writ).retryAt === dueAt ? ' What failed asked to be left alone until then.' : ''
  return {
    code: 'delayed',
    text: `It gets its ${rigs.length === 0 ? 'first' : 'next'} rig at ${instantText(at)}${left}.${asked}`,
    remedy: `Wait, or give it that rig now: ops.retryWrit("${writ.id}", { who }).`,
  }
}

function isInTheWay({ others }: WritFacts, id: string): boolean {
  const other = others.get(id)
  return other === undefined || !hasEnded(other)
}

function held(facts: WritFacts): WritReason {
  const waiting = facts.blockerIds.filter((id) => isInTheWay(facts, id))
  const [first] = waiting
  if (first === undefined) {
    return {
      code: 'held',
      text: 'Everything that it follows has ended, and no crawl has seen that yet.',
      remedy: CRAWL,
    }
  }
  return {
    code: 'held',
    text: `It follows ${namedTexts(waiting, facts.others)}, and gets a rig when ${waiting.length === 1 ? 'that has' : 'they have'} ended.`,
    remedy: `Find out why ${first} does not end, or remove the link: ${unlinkText(facts, first)}.`,
  }
}

function stuck(facts: WritFacts): WritReason {
  const { writ, now, others, rigs } = facts
  const { stuckCause, detail, blockerIds = [], observedAt, retryable } = spiderStatusOf(writ)
  const since = sinceText(observedAt ?? writ.updatedAt, now)
  const named = namedTexts(blockerIds, others)
  // A cause that is older than its last rig is out of date: the writ was made stuck since.
  const lastRigAt = rigs.at(-1)?.row.createdAt
  const isOlder = observedAt !== undefined && lastRigAt !== undefined && observedAt < lastRigAt
  // So is a failure without its flag: Spider removes the flag when the writ is opened again.
  const isStale = isOlder || (stuckCause === 'engine-failure' && retryable === undefined)
  switch (isStale ? undefined : stuckCause) {
    case 'engine-failure':
      return engineFailure(facts, since, detail ?? writ.resolution ?? 'An engine failed.')
    case 'refused':
      return {
        code: 'stuck-refused',
        text: `It is stuck${since}. ${detail ?? 'A watcher refused to let the end of its rig be recorded.'}`,
        remedy: `Resolve that, then retry it: ops.retryWrit("${writ.id}", { who }) tries to end it once more, and no engine that has completed runs again in that rig.`,
      }
    case 'failed-blocker': {
      const [failed] = blockerIds
      return {
        code: 'stuck-by-blocker',
        text: `It is stuck${since}, because what it follows has failed: ${named}.`,
        remedy: `Remove the link, and the next crawl opens it: ${unlinkText(facts, failed ?? '…')}.`,
      }
    }
    case 'cycle':
      return {
        code: 'stuck-by-cycle',
        text: `It is stuck${since}, because these writs follow each other in a cycle: ${named}.`,
        remedy: `Remove one of their links, and the next crawl opens them: ${unlinkText(facts, blockerIds.find((id) => facts.outbound.some(({ targetId }) => targetId === id)) ?? '…')}.`,
      }
    case undefined:
      return {
        code: 'stuck-by-hand',
        text: `It was made stuck${sinceText(writ.updatedAt, now)}${writ.resolution === undefined ? '' : `: ${writ.resolution}`}.`,
        remedy: `Retry it once the reason is resolved: ops.retryWrit("${writ.id}", { who }).`,
      }
  }
}

function engineFailure(facts: WritFacts, since: string, detail: string): WritReason {
  const { writ, retry, observer } = facts
  const text = `It is stuck${since}, with ${retry.attempts} of ${retry.cap} rigs used. ${failureText(facts, detail)}`
  const byHand = `ops.retryWrit("${writ.id}", { who }) gives it one more rig`
  if (retry.decision === 'requeue') {
    if (observer?.isThere === false) {
      return {
        code: 'stuck-retried',
        text: `${text} Another attempt may succeed, but this guild has no clockworks-retry.`,
        remedy: `Add the plugin "clockworks-retry", or retry it by hand: ${byHand}.`,
      }
    }
    const isIdle = observer !== undefined && observer.holder === null
    const behind = observer === undefined || observer.behind === 0 ? '' : ` (${observer.behind} events wait for it)`
    return {
      code: 'stuck-retried',
      text: `${text} The retry observer opens it again${behind}${isIdle ? ', but no process runs it now' : ''}.`,
      remedy: isIdle
        ? 'Start a process of the guild: its observer opens the writ.'
        : 'Wait. If nothing happens, make sure that a process of the guild with clockworks-retry runs.',
    }
  }
  if (facts.isRetryDead && retry.attempts < retry.cap) {
    return {
      code: 'stuck-retry-failed',
      text: `${text} ${retry.reason}`,
      remedy: `Fix what the observer failed with, then retry it: ${byHand}.`,
    }
  }
  return spiderStatusOf(writ).retryable === true
    ? {
        code: 'stuck-at-cap',
        text: `${text} It has reached its cap and is not retried automatically.`,
        remedy: `Fix what failed, then retry it: ${byHand}.`,
      }
    : {
        code: 'stuck-for-good',
        text: `${text} ${retry.reason}`,
        remedy: `Fix the engine or the writ, then retry it (${byHand}); or cancel it.`,
      }
}

/** The failure as a sentence that names the engine. */
function failureText({ rigs }: WritFacts, detail: string): string {
  const failed = rigs.at(-1)?.engines.find(({ status }) => status === 'failed')
  const named = failed === undefined || detail.includes(`"${failed.engineId}"`)
  const text = named ? detail : `${engineName(failed)} failed: ${detail}`
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

function unlinkText({ writ, outbound }: WritFacts, targetId: string): string {
  const link = outbound.find((one) => one.targetId === targetId && one.kind !== null)
  return `clerk.unlink("${writ.id}", "${targetId}", "${link?.label ?? '…'}")`
}

function children({ openChildren }: WritFacts): WritReason[] {
  const [first] = openChildren
  if (first === undefined) return []
  const ids = openChildren.map(({ id }) => id)
  const named = namedTexts(ids, new Map(openChildren.map((child) => [child.id, child])))
  return [
    {
      code: 'children',
      text: `${openChildren.length} of its children ${openChildren.length === 1 ? 'has' : 'have'} not ended: ${named}.`,
      remedy: `Find out why ${first.id} does not end.`,
    },
  ]
}
