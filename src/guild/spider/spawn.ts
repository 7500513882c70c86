import type { WritDoc } from '../clerk/writ.js'
import { shortWritId } from '../clerk/writ-ids.js'
import type { RigTemplateEngine } from '../fabricator/engine-design.js'
import type { CrawlResult } from './api.js'
import { compileGivens, compileWhen, resolveAtSpawn } from './expression.js'
import type { Floor } from './floor.js'
import { gateOf } from './gate.js'
import { dropFlag, waitFor } from './line.js'
import type { EngineRow } from './rig.js'
import { Sheet } from './sheet.js'
import type { SpiderWritStatus } from './writ-status.js'

/** Gives the oldest writ that may have one a rig. Writs whose gate is shut on the way are held or stuck, which is no action. */
export async function spawnNext(floor: Floor): Promise<CrawlResult | null> {
  for (;;) {
    if ((await floor.slots.count()) >= floor.config.maxConcurrentEngines) return null
    const ready = { where: [['state', '=', 'ready']], orderBy: ['at', 'asc'], limit: floor.width } as const
    const first = floor.pick(await floor.dispatch.find(ready))
    if (first === undefined) return null
    const result = await floor.change(() => decide(floor, first.id))
    if (result !== null) return result
  }
}

async function decide(floor: Floor, writId: string): Promise<CrawlResult | null> {
  const row = await floor.dispatch.get(writId)
  if (row?.state !== 'ready') return null
  const writ = await floor.writs.get(writId)
  const mapping = writ === null ? undefined : floor.templates.mappings.get(writ.type)
  if (writ === null || writ.phase !== 'open' || mapping === undefined) {
    await floor.dispatch.delete(writId)
    return null
  }
  const gate = await gateOf(floor, writ)
  const observedAt = floor.now()
  switch (gate.kind) {
    case 'free':
      return spawn(floor, writ, mapping.templateName)
    case 'held':
      await waitFor(floor, row, 'held', gate.blockerIds)
      return null
    case 'failed': {
      const named = gate.blockerIds.map(shortWritId).join(', ')
      const resolution = `Blocked by failed ${gate.blockerIds.length === 1 ? 'dependency' : 'dependencies'}: ${named}`
      await stick(floor, writ.id, resolution, { stuckCause: 'failed-blocker', blockerIds: gate.blockerIds, observedAt })
      return null
    }
    case 'cycle': {
      const kinds = floor.config.gateKinds.join(', ')
      for (const id of gate.memberIds) {
        const member = await floor.writs.get(id)
        if (member?.phase !== 'open' || !canBeStuck(floor, member)) continue
        const status: SpiderWritStatus = { stuckCause: 'cycle', blockerIds: gate.memberIds, observedAt }
        await stick(floor, id, `Cycle detected in ${kinds} graph`, status)
      }
      // Who only reaches the circle waits for it.
      const left = await floor.dispatch.get(writId)
      if (left?.state === 'ready') await waitFor(floor, left, 'held', gate.memberIds)
      return null
    }
  }
}

/** A circle may lead over writs of types that Spider does not dispatch, which may know no such phase. */
function canBeStuck(floor: Floor, { type, phase }: WritDoc): boolean {
  const state = floor.clerk.getWritTypeConfig(type).states.find(({ name }) => name === phase)
  return state?.allowedTransitions.includes('stuck') === true
}

/** Stuck, and why, in one transaction: nobody sees the one without the other. Never retryable: a fresh try changes nothing. */
async function stick(floor: Floor, id: string, resolution: string, status: SpiderWritStatus): Promise<void> {
  await floor.clerk.transition(id, 'stuck', { resolution })
  await floor.clerk.setWritStatus(id, 'spider', status)
}

async function spawn(floor: Floor, writ: WritDoc, templateName: string): Promise<CrawlResult> {
  const info = floor.templates.templates.get(templateName)
  if (info === undefined) throw new Error(`The rig template "${templateName}" is gone.`)
  const { template } = info
  const id = floor.newRigId()
  const createdAt = floor.now()
  const attempt = (await floor.rigs.count([['writId', '=', writ.id]])) + 1
  const resolution = template.resolutionEngine === undefined ? {} : { resolutionEngineId: template.resolutionEngine }
  const engines = template.engines.map((engine, place) => engineRow(floor, id, place, engine, writ))
  await floor.dispatch.patch(writ.id, { state: 'active', rigId: id })
  await Sheet.fresh(
    floor,
    { id, writId: writ.id, status: 'running', createdAt, attempt, step: 0, ...resolution },
    engines,
  ).save()
  await dropFlag(floor, writ)
  return { action: 'rig-spawned', rigId: id, writId: writ.id }
}

/** An engine as it enters its rig: what it takes from the writ is filled in now. */
export function engineRow(
  floor: Floor,
  rigId: string,
  place: number,
  engine: RigTemplateEngine,
  writ: WritDoc,
): EngineRow {
  const values = { writ, vars: floor.config.variables }
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
