import { errorMessage } from '../../../core/text/error-text.js'
import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import { expireNext } from '../dispatch/deadlines.js'
import { unstickNext } from '../dispatch/unstick.js'
import { changeRig } from '../rigs/change-rig.js'
import { graftNext } from '../rigs/graft.js'
import type { EngineRow, QueueKind, QueueRow } from '../rigs/rig.js'
import { RigTransaction } from '../rigs/rig-transaction.js'
import { spawnNext } from '../rigs/spawn.js'
import type { BlockCheck } from './block-types.js'
import {
  type AdmitResult,
  admit as admitEngine,
  type ClaimedEngine,
  claimedFrom,
  giveBack,
  leased,
  takeOver,
} from './claim-engine.js'
import { runEngine } from './run-engine.js'
import { fail, settleHeld } from './settle-engine.js'

/** Does the first thing that can be done, in this order, and returns what it was. */
export async function crawl(context: SpiderContext): Promise<CrawlResult | null> {
  for (const step of [expireNext, collectNext, graftNext, checkNext, runNext, unstickNext, spawnNext]) {
    const result = await step(context)
    if (result !== null || context.isStopping) return result
  }
  return null
}

/** Collects an engine whose session has ended. */
export async function collectNext(context: SpiderContext): Promise<CrawlResult | null> {
  for (;;) {
    const first = await firstOf(context, 'collect')
    if (first === undefined) return null
    const claimed = await context.change(async () => {
      const tx = await RigTransaction.load(context, first.rigId)
      const engine = tx?.engine(first.engineId)
      if (tx === undefined || engine?.status !== 'running' || engine.isSessionOver !== true) return null
      if (engine.claim !== undefined) return null
      const claim = leased(context)
      tx.set(first.engineId, { claim })
      await tx.save()
      return claimedFrom(tx, engine, claim.token)
    })
    const result = claimed === null ? null : await runAndSettle(context, claimed)
    if (result !== null || context.isStopping) return result
  }
}

/** Checks blocked engines that are due, until one comes free. */
export async function checkNext(context: SpiderContext): Promise<CrawlResult | null> {
  for (;;) {
    const first = await firstDue(context, 'block')
    if (first === undefined) return null
    const result = await check(context, first)
    if (result !== null) return result
  }
}

async function check(context: SpiderContext, { rigId, engineId }: QueueRow): Promise<CrawlResult | null> {
  const block = (await context.engines.get(`${rigId}/${engineId}`))?.block
  const type = block === undefined ? undefined : context.blockTypes.get(block.type)
  let found: BlockCheck = { status: 'pending' }
  if (block !== undefined && type === undefined) found = { status: 'failed', reason: 'no plugin knows it any more' }
  try {
    if (block !== undefined && type !== undefined) found = checked(await type.check(block.condition))
  } catch (error) {
    // It stays blocked, and the interval counts from now on, so a broken check is not called in a loop.
    const message = `The block "${block?.type}" of engine ${rigId}/${engineId} could not be checked: ${errorMessage(error)}`
    context.warn({ code: 'BLOCK_CHECK_FAILED', message, error })
  }
  const change = async (): Promise<CrawlResult | null> => {
    const tx = await RigTransaction.load(context, rigId)
    const engine = tx?.engine(engineId)
    if (tx === undefined || engine?.block === undefined || engine.status !== 'blocked') return null
    if (engine.block.blockedAt !== block?.blockedAt || !tx.isActive) return null
    if (found.status === 'cleared') {
      const resumes = (engine.resumes ?? 0) + 1
      tx.set(engineId, { status: 'pending', block: undefined, priorBlock: engine.block, resumes })
      await tx.save()
      return { action: 'engine-unblocked', rigId, engineId }
    }
    if (found.status === 'failed') {
      const error = `Block "${block.type}" ${found.reason === undefined ? 'failed permanently' : `failed: ${found.reason}`}`
      return fail(context, tx, engine, { error, retryable: false })
    }
    // A type that may be checked at every crawl is due again immediately; within one crawl it is checked once.
    const again = type?.pollIntervalMs ? context.now() : context.later(1)
    tx.set(engineId, { block: { ...engine.block, lastCheckedAt: again } })
    await tx.save()
    return null
  }
  return changeRig(context, rigId, change, (result) => result)
}

/** Plain JavaScript can return anything; a check that returns nonsense must not stop the crawl for other engines. */
function checked(answer: BlockCheck): BlockCheck {
  if (['cleared', 'pending', 'failed'].includes(answer?.status)) return answer
  throw new TypeError(`check() must answer { status: 'cleared' | 'pending' | 'failed' }, got ${JSON.stringify(answer)}`)
}

/** Runs a ready engine, or one whose runner has been silent for too long. */
async function runNext(context: SpiderContext): Promise<CrawlResult | null> {
  for (;;) {
    const turn = await nextTurn(context)
    if (turn === null) return null
    if (turn.kind === 'full') return null
    if (turn.kind === 'acted') return turn.result
    if (turn.kind === 'again') continue
    const result = await runAndSettle(context, turn.claimed)
    // The engine was ended meanwhile; there may be something else to do.
    if (result !== null || context.isStopping) return result
  }
}

/** What an aborted run throws while its guild shuts down is no failure: the engine is given back, and goes on elsewhere. */
async function runAndSettle(context: SpiderContext, claimed: ClaimedEngine): Promise<CrawlResult | null> {
  const outcome = await runEngine(context, claimed)
  if (outcome.kind !== 'failed' || !context.isStopping) return settleHeld(context, claimed, outcome)
  await giveBack(context, claimed, true)
  return null
}

/** Why runs are aborted when their guild goes, and perhaps not the work system that gave them. */
export const STOPPING = 'The guild shuts down.'

/** The guild shuts down: aborts what is running and gives the claims back. */
export async function stopRuns(context: SpiderContext): Promise<void> {
  context.isStopping = true
  const runs = [...context.runs.values()]
  for (const { controller } of runs) controller.abort(new Error(STOPPING))
  for (const run of runs) void giveBack(context, run)
  await Promise.all(context.givingBack)
}

type NextTurn = { readonly kind: 'claimed'; readonly claimed: ClaimedEngine } | NotAdmitted

/** `again`: the candidate changed meanwhile, and there may be another. */
type NotAdmitted = Exclude<AdmitResult, { kind: 'admitted' }> | { readonly kind: 'again' }

async function nextTurn(context: SpiderContext): Promise<NextTurn | null> {
  const lapsed = await firstDue(context, 'lease')
  if (lapsed !== undefined) return context.change(() => claimLapsed(context, lapsed))
  return admitNext(context, (tx, engine) => {
    const claim = leased(context)
    tx.set(engine.engineId, { claim })
    return { kind: 'claimed', claimed: claimedFrom(tx, engine, claim.token) }
  })
}

/** Gives the first engine that is ready a slot; `begin` decides how it is run. Null: none is ready. */
export async function admitNext<T>(
  context: SpiderContext,
  begin: (tx: RigTransaction, engine: EngineRow) => T,
): Promise<T | NotAdmitted | null> {
  const first = await firstReady(context, true)
  if (first === undefined) return null
  const turn = await admitFirst(context, first, begin)
  // Sessions hold all the places that they may have; other engines have more.
  const isLaunch = first.kind === 'launch' || first.kind === 'launch-hold'
  if (!isLaunch || (turn as NotAdmitted).kind !== 'full') return turn
  const other = await firstReady(context, false)
  return other === undefined ? turn : admitFirst(context, other, begin)
}

async function admitFirst<T>(
  context: SpiderContext,
  first: QueueRow,
  begin: (tx: RigTransaction, engine: EngineRow) => T,
): Promise<T | NotAdmitted> {
  const admit = async (): Promise<T | NotAdmitted> => {
    const tx = await RigTransaction.load(context, first.rigId)
    const engine = tx?.engine(first.engineId)
    if (tx === undefined || engine === undefined || !tx.isActive || !tx.isReady(engine)) return { kind: 'again' }
    if (!tx.hasRoom) {
      await tx.save()
      return { kind: 'again' }
    }
    const admitted = await admitEngine(context, tx, engine)
    if (admitted.kind !== 'admitted') return admitted
    const begun = begin(tx, engine)
    await tx.save()
    return begun
  }
  const ended = (result: CrawlResult | null): NotAdmitted =>
    result === null ? { kind: 'again' } : { kind: 'acted', result }
  return changeRig<T | NotAdmitted>(context, first.rigId, admit, ended)
}

/** The first engine that is ready: by age of the rig, then by place in it. */
async function firstReady(context: SpiderContext, mayLaunch: boolean): Promise<QueueRow | undefined> {
  const { maxConcurrentSessions, maxConcurrentEngines } = context.config
  // Without a limit of their own, those that launch sessions are among the others.
  const isLimited = mayLaunch && maxConcurrentSessions < maxConcurrentEngines
  const found = [
    await firstOf(context, 'run'),
    await firstDue(context, 'hold'),
    ...(isLimited ? [await firstOf(context, 'launch'), await firstDue(context, 'launch-hold')] : []),
  ]
  return found.reduce((first, row) => (first === undefined || (row !== undefined && row.at < first.at) ? row : first))
}

/** Claims an engine whose lease has lapsed. */
async function claimLapsed(context: SpiderContext, { rigId, engineId }: QueueRow): Promise<NextTurn> {
  const tx = await RigTransaction.load(context, rigId)
  const engine = tx?.engine(engineId)
  const leaseUntil = engine?.claim?.leaseUntil
  if (tx === undefined || engine === undefined || leaseUntil === undefined || leaseUntil > context.now())
    return { kind: 'again' }
  return takeOver(context, tx, engine, leased(context))
}

/** Runs an engine whose lease of a crawl has lapsed. False: there is none. */
export async function takeOverLapsed(context: SpiderContext): Promise<boolean> {
  const lapsed = await firstDue(context, 'lease')
  if (lapsed === undefined) return false
  const turn = await context.change(() => claimLapsed(context, lapsed))
  if (turn.kind === 'claimed') await runAndSettle(context, turn.claimed)
  return true
}

async function firstOf(context: SpiderContext, kind: QueueKind): Promise<QueueRow | undefined> {
  const { queue, width } = context
  return context.pick(await queue.find({ where: [['kind', '=', kind]], orderBy: ['at', 'asc'], limit: width }))
}

async function firstDue(context: SpiderContext, kind: QueueKind): Promise<QueueRow | undefined> {
  const due = {
    where: [
      ['kind', '=', kind],
      ['dueAt', '<=', context.now()],
    ],
    orderBy: ['dueAt', 'asc'],
    limit: context.width,
  } as const
  return context.pick(await context.queue.find(due))
}
