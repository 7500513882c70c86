import { errorMessage } from '../../core/error-text.js'
import type { CrawlResult } from './api.js'
import type { BlockCheck } from './block-types.js'
import { admit, type Claimed, claimedFrom, giveBack, leased, MAX_LAPSES, takenOver } from './claim.js'
import { endBeside, failEngine } from './end-rig.js'
import type { Floor } from './floor.js'
import { graftNext } from './graft.js'
import type { QueueKind, QueueRow } from './rig.js'
import { runEngine } from './run.js'
import { fail, settle } from './settle.js'
import { Sheet } from './sheet.js'
import { spawnNext } from './spawn.js'
import { unstickNext } from './unstick.js'

/** Does the first thing that can be done, in this order, and says what it was. */
export async function crawl(floor: Floor): Promise<CrawlResult | null> {
  for (const step of [collectNext, graftNext, checkNext, runNext, unstickNext, spawnNext]) {
    const result = await step(floor)
    if (result !== null || floor.isStopping) return result
  }
  return null
}

/** Collects an engine whose session has ended. */
export async function collectNext(floor: Floor): Promise<CrawlResult | null> {
  for (;;) {
    const first = await firstOf(floor, 'collect')
    if (first === undefined) return null
    const claimed = await floor.change(async () => {
      const sheet = await Sheet.load(floor, first.rigId)
      const engine = sheet?.engine(first.engineId)
      if (sheet === undefined || engine?.status !== 'running' || engine.isSessionOver !== true) return null
      if (engine.claim !== undefined) return null
      const claim = leased(floor)
      sheet.set(first.engineId, { claim })
      await sheet.save()
      return claimedFrom(sheet, engine, claim.token)
    })
    const result = claimed === null ? null : await runAndSettle(floor, claimed)
    if (result !== null || floor.isStopping) return result
  }
}

/** Looks after blocked engines that are due, until one comes free. */
export async function checkNext(floor: Floor): Promise<CrawlResult | null> {
  for (;;) {
    const first = await firstDue(floor, 'block')
    if (first === undefined) return null
    const result = await check(floor, first)
    if (result !== null) return result
  }
}

async function check(floor: Floor, { rigId, engineId }: QueueRow): Promise<CrawlResult | null> {
  const block = (await floor.engines.get(`${rigId}/${engineId}`))?.block
  const type = block === undefined ? undefined : floor.blockTypes.get(block.type)
  let found: BlockCheck = { status: 'pending' }
  if (block !== undefined && type === undefined) found = { status: 'failed', reason: 'no plugin knows it any more' }
  try {
    if (block !== undefined && type !== undefined) found = checked(await type.check(block.condition))
  } catch (error) {
    // It stays blocked, and the interval counts from now on, so that a broken check is not asked without end.
    const message = `The block "${block?.type}" of engine ${rigId}/${engineId} could not be checked: ${errorMessage(error)}`
    floor.warn({ code: 'BLOCK_CHECK_FAILED', message, error })
  }
  return floor.change(async () => {
    const sheet = await Sheet.load(floor, rigId)
    const engine = sheet?.engine(engineId)
    if (sheet === undefined || engine?.block === undefined || engine.status !== 'blocked') return null
    if (engine.block.blockedAt !== block?.blockedAt || !sheet.isActive) return null
    if (found.status === 'cleared') {
      const resumes = (engine.resumes ?? 0) + 1
      sheet.set(engineId, { status: 'pending', block: undefined, priorBlock: engine.block, resumes })
      await sheet.save()
      return { action: 'engine-unblocked', rigId, engineId }
    }
    if (found.status === 'failed') {
      const error = `Block "${block.type}" ${found.reason === undefined ? 'failed permanently' : `failed: ${found.reason}`}`
      return fail(floor, sheet, engine, { error, retryable: false })
    }
    // A type that may be asked at every crawl is due again at once; within one crawl it is asked once.
    const again = type?.pollIntervalMs ? floor.now() : floor.later(1)
    sheet.set(engineId, { block: { ...engine.block, lastCheckedAt: again } })
    await sheet.save()
    return null
  })
}

/** Plain JavaScript can answer anything at all; one that is taken for no answer must not stop the crawl for everybody else. */
function checked(answer: BlockCheck): BlockCheck {
  if (['cleared', 'pending', 'failed'].includes(answer?.status)) return answer
  throw new TypeError(`check() must answer { status: 'cleared' | 'pending' | 'failed' }, got ${JSON.stringify(answer)}`)
}

/** Runs a ready engine, or one whose runner has been silent for too long. */
async function runNext(floor: Floor): Promise<CrawlResult | null> {
  for (;;) {
    const turn = await nextTurn(floor)
    if (turn === null) return null
    if (turn.kind === 'full') return null
    if (turn.kind === 'acted') return turn.result
    if (turn.kind === 'again') continue
    const result = await runAndSettle(floor, turn.claimed)
    // Somebody ended it meanwhile; there may be something else to do.
    if (result !== null || floor.isStopping) return result
  }
}

/** What a run throws that was told to stop because its guild does is no failure: it is given back, and goes on elsewhere. */
async function runAndSettle(floor: Floor, claimed: Claimed): Promise<CrawlResult | null> {
  const outcome = await runEngine(floor, claimed)
  if (outcome.kind !== 'failed' || !floor.isStopping) return settle(floor, claimed, outcome)
  await giveBack(floor, claimed, true)
  return null
}

/** Why runs are aborted when their guild goes, and perhaps not the work system that gave them. */
export const STOPPING = 'The guild shuts down.'

/** The guild shuts down: what is running is told to stop, and is no longer this process's to answer for. */
export async function stopRuns(floor: Floor): Promise<void> {
  floor.isStopping = true
  const runs = [...floor.runs.values()]
  for (const { controller } of runs) controller.abort(new Error(STOPPING))
  for (const run of runs) void giveBack(floor, run)
  await Promise.all(floor.givingBack)
}

type NextTurn =
  | { readonly kind: 'claimed'; readonly claimed: Claimed }
  | { readonly kind: 'acted'; readonly result: CrawlResult }
  | { readonly kind: 'full' }
  | { readonly kind: 'again' }

async function nextTurn(floor: Floor): Promise<NextTurn | null> {
  const lapsed = await firstDue(floor, 'lease')
  if (lapsed !== undefined) return floor.change(() => takeOver(floor, lapsed))
  const first = await firstReady(floor)
  if (first === undefined) return null
  return floor.change(async () => {
    const sheet = await Sheet.load(floor, first.rigId)
    const engine = sheet?.engine(first.engineId)
    if (sheet === undefined || engine === undefined || !sheet.isActive || !sheet.isReady(engine))
      return { kind: 'again' }
    if (!sheet.hasRoom) {
      await sheet.save()
      return { kind: 'again' }
    }
    const admitted = await admit(floor, sheet, engine)
    if (admitted.kind !== 'admitted') return admitted
    const claim = leased(floor)
    sheet.set(engine.engineId, { claim })
    await sheet.save()
    return { kind: 'claimed', claimed: claimedFrom(sheet, engine, claim.token) }
  })
}

/** The engine that is ready and stands first: by age of the rig, then by place in it. */
export async function firstReady(floor: Floor): Promise<QueueRow | undefined> {
  const ready = await firstOf(floor, 'run')
  const held = await firstDue(floor, 'hold')
  if (ready === undefined || held === undefined) return ready ?? held
  return held.at < ready.at ? held : ready
}

/**
 * A claim that was not renewed: its process is gone, or hangs. The same engine is run again in the same rig, with the same key, so
 * that a crash costs no attempt; the third time it counts as a failure.
 */
async function takeOver(floor: Floor, { rigId, engineId }: QueueRow): Promise<NextTurn> {
  const sheet = await Sheet.load(floor, rigId)
  const engine = sheet?.engine(engineId)
  const leaseUntil = engine?.claim?.leaseUntil
  if (sheet === undefined || engine === undefined || leaseUntil === undefined || leaseUntil > floor.now())
    return { kind: 'again' }
  if (!sheet.isActive && engine.sessionId === undefined)
    return { kind: 'acted', result: await endBeside(floor, sheet, engineId, NOT_AGAIN) }
  const { lapses, ...counted } = takenOver(engine)
  if (lapses >= MAX_LAPSES) return { kind: 'acted', result: await failEngine(floor, sheet, engineId, LEASE_EXPIRED) }
  const claim = { ...leased(floor), ...counted }
  sheet.set(engineId, { claim, lapses })
  await sheet.save()
  return { kind: 'claimed', claimed: claimedFrom(sheet, engine, claim.token) }
}

/** Runs what a crawl left behind and nobody renews. False: there is nothing. */
export async function takeOverLapsed(floor: Floor): Promise<boolean> {
  const lapsed = await firstDue(floor, 'lease')
  if (lapsed === undefined) return false
  const turn = await floor.change(() => takeOver(floor, lapsed))
  if (turn.kind === 'claimed') await runAndSettle(floor, turn.claimed)
  return true
}

/** The end of an engine whose process was gone when its rig was stuck: nothing is begun there, nor begun again. */
export const NOT_AGAIN = {
  status: 'cancelled',
  error: 'Not run again after its process was gone: its rig was stuck',
} as const

/** The failure of an engine whose processes died one after the other. */
export const LEASE_EXPIRED = { error: 'Engine lease expired', retryable: true } as const

async function firstOf(floor: Floor, kind: QueueKind): Promise<QueueRow | undefined> {
  const { queue, width } = floor
  return floor.pick(await queue.find({ where: [['kind', '=', kind]], orderBy: ['at', 'asc'], limit: width }))
}

async function firstDue(floor: Floor, kind: QueueKind): Promise<QueueRow | undefined> {
  const due = {
    where: [
      ['kind', '=', kind],
      ['dueAt', '<=', floor.now()],
    ],
    orderBy: ['dueAt', 'asc'],
    limit: floor.width,
  } as const
  return floor.pick(await floor.queue.find(due))
}
