import type { WritDoc } from '../../clerk/writs/writ.js'
import { shortWritId } from '../../clerk/writs/writ-ids.js'
import type { RigTemplateEngine } from '../../fabricator/engine-design.js'
import { isVeto } from '../../stacks/transaction/veto.js'
import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import { dropFlag, queuedAs, waitFor } from '../dispatch/dispatch-queue.js'
import { completeWithRig } from '../dispatch/families.js'
import { linkGateOf } from '../dispatch/link-gate.js'
import { queueMissedWrits } from '../dispatch/open-writs.js'
import type { SpiderWritStatus } from '../dispatch/writ-status.js'
import { withCarriedOver } from './carry-over.js'
import { refusedStatus, type WriteRefusal, writeRefusalOf } from './end-rig.js'
import { compileGivens, compileWhen, resolveAtSpawn } from './expression.js'
import { newestRig } from './newest-rig.js'
import { type EngineRow, isSettled } from './rig.js'
import { RigTransaction } from './rig-transaction.js'

/** Gives the oldest writ that may have one a rig. Writs whose gate is shut on the way are held or stuck, which is no action. */
export async function spawnNext(context: SpiderContext): Promise<CrawlResult | null> {
  await queueMissedWrits(context)
  await releaseDelayed(context)
  for (;;) {
    if ((await context.slots.count()) >= context.config.maxConcurrentEngines) return null
    const ready = { where: [['state', '=', 'ready']], orderBy: ['at', 'asc'], limit: context.width } as const
    const first = context.pick(await context.dispatch.find(ready))
    if (first === undefined) return null
    const result = await context
      .change(() => decide(context, first.id))
      .catch((error: unknown) => {
        if (!isVeto(error)) throw error
        return context.change(() => refused(context, first.id, writeRefusalOf(error)))
      })
    if (result !== null) return result
  }
}

/** A watcher refused to let the writ have a rig, or end with the one it had: without this it would be asked again and again. */
async function refused(context: SpiderContext, writId: string, refusal: WriteRefusal): Promise<null> {
  const writ = await context.writs.get(writId)
  if (writ?.phase !== 'open') return null
  const rig = await newestRig(context, writId)
  const status = { ...refusedStatus(context, refusal), ...(rig === undefined ? {} : { rigId: rig.id }) }
  await stick(context, writId, refusal.text, status)
  return null
}

/** A writ whose work is done, and whose end could not be recorded when its rig came to it. Undefined: it needs a rig. */
async function endNow(context: SpiderContext, writ: WritDoc): Promise<CrawlResult | null | undefined> {
  const rig = await newestRig(context, writ.id)
  const ended: CrawlResult = { action: 'rig-completed', rigId: rig?.id ?? '', writId: writ.id, outcome: 'completed' }
  if (rig?.status === 'completed') return (await completeWithRig(context, writ.id)) ? ended : null
  if (rig?.status !== 'stuck' || rig.refusal === undefined) return undefined
  const tx = await RigTransaction.load(context, rig.id)
  if (tx === undefined || !tx.engines.every(({ status }) => isSettled(status))) return undefined
  tx.setRig({ status: 'running', refusal: undefined, terminalAt: undefined })
  await tx.save()
  return (await context.writs.get(writ.id))?.phase === 'open' ? null : ended
}

/** How many writs are made ready in one transaction. */
const BATCH = 200

/** Puts writs in line whose time has come. */
async function releaseDelayed(context: SpiderContext): Promise<void> {
  const where = [
    ['state', '=', 'delayed'],
    ['dueAt', '<=', context.now()],
  ] as const
  const due = await context.dispatch.find({ where: [...where], orderBy: ['dueAt', 'asc'], limit: BATCH })
  if (due.length === 0) return
  await context.change(async () => {
    for (const { id } of due)
      if ((await context.dispatch.get(id))?.state === 'delayed')
        await context.dispatch.patch(id, { state: 'ready', dueAt: undefined })
  })
}

async function decide(context: SpiderContext, writId: string): Promise<CrawlResult | null> {
  const row = await context.dispatch.get(writId)
  if (row?.state !== 'ready') return null
  const writ = await context.writs.get(writId)
  const mapping = writ === null ? undefined : context.templates.mappings.get(writ.type)
  if (writ === null || writ.phase !== 'open' || mapping === undefined) {
    await context.dispatch.delete(writId)
    return null
  }
  const ended = await endNow(context, writ)
  if (ended !== undefined) return ended
  const gate = await linkGateOf(context, writ)
  const observedAt = context.now()
  switch (gate.kind) {
    case 'free': {
      const queued = queuedAs(context, writ)
      if (queued.state === 'delayed') {
        await context.dispatch.patch(writId, queued)
        return null
      }
      return spawn(context, writ, mapping.templateName)
    }
    case 'held':
      await waitFor(context, row, 'held', gate.blockerIds)
      return null
    case 'failed': {
      const named = gate.blockerIds.map(shortWritId).join(', ')
      const resolution = `Blocked by failed ${gate.blockerIds.length === 1 ? 'dependency' : 'dependencies'}: ${named}`
      await stick(context, writ.id, resolution, {
        stuckCause: 'failed-blocker',
        blockerIds: gate.blockerIds,
        observedAt,
      })
      return null
    }
    case 'cycle': {
      const kinds = context.config.gateKinds.join(', ')
      for (const id of gate.memberIds) {
        const member = await context.writs.get(id)
        if (member?.phase !== 'open' || !canBeStuck(context, member)) continue
        const status: SpiderWritStatus = { stuckCause: 'cycle', blockerIds: gate.memberIds, observedAt }
        await stick(context, id, `Cycle detected in ${kinds} graph`, status)
      }
      // A writ that only reaches the circle waits for it.
      const left = await context.dispatch.get(writId)
      if (left?.state === 'ready') await waitFor(context, left, 'held', gate.memberIds)
      return null
    }
  }
}

/** A circle may lead over writs of types that Spider does not dispatch, which may know no such phase. */
function canBeStuck(context: SpiderContext, { type, phase }: WritDoc): boolean {
  const state = context.clerk.getWritTypeConfig(type).states.find(({ name }) => name === phase)
  return state?.allowedTransitions.includes('stuck') === true
}

/** Stuck, and why, in one transaction: no reader sees one without the other. Never retryable: a new attempt changes nothing. */
async function stick(context: SpiderContext, id: string, resolution: string, status: SpiderWritStatus): Promise<void> {
  await context.clerk.transition(id, 'stuck', { resolution })
  await context.clerk.setWritStatus(id, 'spider', status)
}

async function spawn(context: SpiderContext, writ: WritDoc, templateName: string): Promise<CrawlResult> {
  const info = context.templates.templates.get(templateName)
  if (info === undefined) throw new Error(`The rig template "${templateName}" is gone.`)
  const { template } = info
  const id = context.newRigId()
  const createdAt = context.now()
  const attempt = (await context.rigs.count([['writId', '=', writ.id]])) + 1
  const resolution = template.resolutionEngine === undefined ? {} : { resolutionEngineId: template.resolutionEngine }
  const fresh = template.engines.map((engine, place) => engineRow(context, id, place, engine, writ))
  const engines = await withCarriedOver(context, writ.id, fresh)
  await context.dispatch.patch(writ.id, { state: 'active', rigId: id, isOpen: true, dueAt: undefined })
  await RigTransaction.fresh(
    context,
    { id, writId: writ.id, status: 'running', createdAt, attempt, step: 0, ...resolution },
    engines,
  ).save()
  await dropFlag(context, writ)
  return { action: 'rig-spawned', rigId: id, writId: writ.id }
}

/** An engine as it enters its rig: what it takes from the writ is filled in now. */
export function engineRow(
  context: SpiderContext,
  rigId: string,
  place: number,
  engine: RigTemplateEngine,
  writ: WritDoc,
): EngineRow {
  const values = { writ, vars: context.config.variables }
  return {
    id: `${rigId}/${engine.id}`,
    rigId,
    engineId: engine.id,
    place,
    designId: engine.designId,
    status: 'pending',
    upstream: [...(engine.upstream ?? [])],
    givensSpec: resolveAtSpawn(compileGivens(engine.givens), values),
    ...(engine.when === undefined ? {} : { when: compileWhen(engine.when) }),
  }
}
