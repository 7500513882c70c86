import { type EngineRow, isActive } from '../../guild/spider/rig.js'
import { CRAWL, engineReasons, runningText } from './engine-reasons.js'
import type { Rig } from './rig-report.js'
import { engineName, hasEnded, namedTexts, sinceText, spiderStatus, type WritFacts } from './writ-facts.js'
import type { WritReason } from './writ-reason.js'

/** Why a writ has not ended, the reason that decides first. Empty once it has. */
export function writReasons(facts: WritFacts): readonly WritReason[] {
  const { writ, rigs } = facts
  if (hasEnded(writ)) return []
  const newest = rigs.at(-1)
  const active = newest !== undefined && isActive(newest.row.status) ? newest : undefined
  // A rig goes on whatever became of its writ meanwhile, and its end decides about the writ.
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

/** Opened again, and engines of the attempt before still run. */
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
        text: `It is a draft (${since}): nobody has opened it.`,
        remedy: `Open it: clerk.transition("${writ.id}", "open").`,
      }
    : {
        code: 'phase',
        text: `It is in phase "${writ.phase}" (${since}), and Spider gives rigs to open writs only.`,
        remedy: `Whoever is in charge of that phase of "${writ.type}" has to move it on: clerk.transition("${writ.id}", …).`,
      }
}

function open(facts: WritFacts): readonly WritReason[] {
  const { writ, dispatch, running } = facts
  const unfinished = children(facts)
  switch (dispatch?.state) {
    case undefined: {
      const why: WritReason = {
        code: 'not-dispatched',
        text: `Spider does not know it: no rig template is mapped to "${writ.type}", or no guild with Spider has run since it was posted.`,
        remedy:
          unfinished.length > 0
            ? 'Nothing, if its children are what fulfils it.'
            : `Map a template in guild.json: spider.rigTemplateMappings["${writ.type}"]; or complete it by hand.`,
      }
      // A parent that has no rig of its own ends with its children: these decide.
      return [...unfinished, why]
    }
    case 'held':
      return [held(facts), ...unfinished]
    case 'ready':
    case 'active':
    case 'stuck':
    case 'recheck': {
      const blockers = facts.blockerIds.filter((id) => isInTheWay(facts, id))
      if (blockers.length > 0) return [held(facts), ...unfinished]
      return [
        {
          code: 'queued',
          text: `It is in line for a rig${sinceText(writ.updatedAt, facts.now)}, and no crawl has come to it (${runningText(running)}).`,
          remedy: `${CRAWL} If one does, all slots are taken: wait, or raise maxConcurrentEngines.`,
        },
        ...unfinished,
      ]
    }
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
      text: 'All that it follows has ended, and no crawl has seen that yet.',
      remedy: CRAWL,
    }
  }
  return {
    code: 'held',
    text: `It follows ${namedTexts(waiting, facts.others)}, and gets a rig when ${waiting.length === 1 ? 'that has' : 'they have'} ended.`,
    remedy: `Ask why ${first} does not end; or take the link away: ${unlinkText(facts, first)}.`,
  }
}

function stuck(facts: WritFacts): WritReason {
  const { writ, now, others, rigs } = facts
  const { stuckCause, detail, blockerIds = [], observedAt, retryable } = spiderStatus(writ)
  const since = sinceText(observedAt ?? writ.updatedAt, now)
  const named = namedTexts(blockerIds, others)
  // A cause that is older than its last rig speaks of an earlier time: somebody has stuck it since.
  const lastRigAt = rigs.at(-1)?.row.createdAt
  const isOlder = observedAt !== undefined && lastRigAt !== undefined && observedAt < lastRigAt
  // So does a failure whose flag is gone: Spider takes that away when the writ was opened again because of it.
  const isStale = isOlder || (stuckCause === 'engine-failure' && retryable === undefined)
  switch (isStale ? undefined : stuckCause) {
    case 'engine-failure':
      return engineFailure(facts, since, detail ?? writ.resolution ?? 'An engine failed.')
    case 'failed-blocker': {
      const [failed] = blockerIds
      return {
        code: 'stuck-by-blocker',
        text: `It is stuck${since}, because what it follows has failed: ${named}.`,
        remedy: `Take the link away, and the next crawl opens it: ${unlinkText(facts, failed ?? '…')}.`,
      }
    }
    case 'cycle':
      return {
        code: 'stuck-by-cycle',
        text: `It is stuck${since}, because these writs follow each other in a circle: ${named}.`,
        remedy: `Take one of their links away, and the next crawl opens them: ${unlinkText(facts, blockerIds.find((id) => facts.outbound.some(({ targetId }) => targetId === id)) ?? '…')}.`,
      }
    case undefined:
      return {
        code: 'stuck-by-hand',
        text: `It was made stuck${sinceText(writ.updatedAt, now)}${writ.resolution === undefined ? '' : `: ${writ.resolution}`}.`,
        remedy: `Open it when its reason is gone: clerk.transition("${writ.id}", "open").`,
      }
  }
}

function engineFailure(facts: WritFacts, since: string, detail: string): WritReason {
  const { writ, retry, observer } = facts
  const text = `It is stuck${since}, with ${retry.attempts} of ${retry.cap} rigs used. ${failureText(facts, detail)}`
  const byHand = `clerk.transition("${writ.id}", "open") gives it one more rig`
  if (retry.decision === 'requeue') {
    if (observer?.isThere === false) {
      return {
        code: 'stuck-retried',
        text: `${text} Another attempt may succeed, but this guild has no clockworks-retry.`,
        remedy: `Add the plugin "clockworks-retry", or open it by hand: ${byHand}.`,
      }
    }
    const isIdle = observer !== undefined && observer.holder === null
    const behind = observer === undefined || observer.behind === 0 ? '' : ` (${observer.behind} events wait for it)`
    return {
      code: 'stuck-retried',
      text: `${text} The retry observer opens it again${behind}${isIdle ? ', but no process runs it now' : ''}.`,
      remedy: isIdle
        ? 'Start a process of the guild: its observer opens the writ by itself.'
        : 'Wait. If nothing happens, see that a process of the guild with clockworks-retry runs.',
    }
  }
  return spiderStatus(writ).retryable === true
    ? {
        code: 'stuck-at-cap',
        text: `${text} It is at its cap: it is not tried again by itself.`,
        remedy: `Mend what failed, then open it: ${byHand}.`,
      }
    : {
        code: 'stuck-for-good',
        text: `${text} ${retry.reason}`,
        remedy: `Mend the engine or the writ, then open it (${byHand}); or cancel it.`,
      }
}

/** What failed, as a sentence that names the engine. */
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
      remedy: `Ask why ${first.id} does not end.`,
    },
  ]
}
