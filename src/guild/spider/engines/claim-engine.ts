import { newToken } from '../../../core/ids.js'
import { stringOption } from '../../../core/options.js'
import type { EngineRunContext } from '../../fabricator/engine-design.js'
import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import { endBeside, failEngine } from '../rigs/end-rig.js'
import { isMet, resolveAtRun } from '../rigs/expression.js'
import type { EngineClaim, EngineRow } from '../rigs/rig.js'
import { RigTransaction } from '../rigs/rig-transaction.js'

/** An engine that the holder of this claim may run now. */
export interface ClaimedEngine {
  readonly rigId: string
  readonly engineId: string
  readonly designId: string
  readonly token: string
  readonly givens: Readonly<Record<string, unknown>>
  readonly context: Omit<EngineRunContext, 'signal'>
  readonly sessionId?: string
}

/** What became of a ready engine when its turn came. */
export type AdmitResult =
  /** It has a slot; the caller says which process runs it. */
  | { readonly kind: 'admitted' }
  | { readonly kind: 'acted'; readonly result: CrawlResult }
  /** No slot is free. */
  | { readonly kind: 'full' }

/** A claim of `crawl()`: it lapses when it is not renewed. */
export function leased(context: SpiderContext): EngineClaim {
  return { owner: context.owner, token: newToken(), leaseUntil: context.later(context.config.engineLeaseMs) }
}

/** How many claims of one attempt may lapse before the engine counts as failed. */
const MAX_LAPSES = 3

/** The end of an engine whose process was gone when its rig was stuck: nothing is begun there, nor begun again. */
const NOT_AGAIN = {
  status: 'cancelled',
  error: 'Not run again after its process was gone: its rig was stuck',
} as const

/** The failure of an engine whose processes died one after the other. */
const LEASE_EXPIRED = { error: 'Engine lease expired', retryable: true } as const

/**
 * A claim that was not renewed: its process is gone, or hangs. The same engine is run again in the same rig, with the same key, so
 * a crash costs no attempt; the third time it counts as a failure.
 */
export async function takeOver(
  context: SpiderContext,
  tx: RigTransaction,
  engine: EngineRow,
  claim: EngineClaim,
): Promise<Takeover> {
  const { engineId, claim: before, lapses: counted = 0 } = engine
  if (!tx.isActive && engine.sessionId === undefined)
    return { kind: 'acted', result: await endBeside(context, tx, engineId, NOT_AGAIN) }
  // A holder that lived to give it back did not lapse. `lapsed` is the claim that was counted, so its holder can take that back.
  const hasLapsed = before !== undefined && before.isGivenBack !== true
  const lapses = hasLapsed ? counted + 1 : counted
  if (lapses >= MAX_LAPSES) return { kind: 'acted', result: await failEngine(context, tx, engineId, LEASE_EXPIRED) }
  tx.set(engineId, { claim: { ...claim, ...(hasLapsed && { lapsed: before.token }) }, lapses })
  await tx.save()
  return { kind: 'claimed', claimed: claimedFrom(tx, engine, claim.token) }
}

type Takeover =
  | { readonly kind: 'claimed'; readonly claimed: ClaimedEngine }
  | { readonly kind: 'acted'; readonly result: CrawlResult }

/**
 * Stores that the holder of a claim is alive, also when another process has taken the claim over meanwhile and counted a lapse.
 * `isOver`: it no longer runs the engine either, so the lease ends now. Never rejects: at worst one lapse too many is counted.
 */
export function giveBack(
  context: SpiderContext,
  { rigId, engineId, token }: { readonly rigId: string; readonly engineId: string; readonly token: string },
  isOver = false,
): Promise<void> {
  const given = context
    .change(async () => {
      const tx = await RigTransaction.load(context, rigId)
      const { claim, lapses = 0 } = tx?.engine(engineId) ?? {}
      if (tx === undefined || claim === undefined) return
      const { lapsed, ...rest } = claim
      const lease = isOver && claim.leaseUntil !== undefined ? { leaseUntil: context.now() } : {}
      if (claim.token === token) tx.set(engineId, { claim: { ...claim, ...lease, isGivenBack: true } })
      else if (lapsed === token) tx.set(engineId, { claim: rest, lapses: lapses - 1 })
      else return
      await tx.save()
    })
    .catch(() => undefined)
    .finally(() => context.givingBack.delete(given))
  context.givingBack.add(given)
  return given
}

/**
 * Takes a slot for a running engine. Slots are documents, so the limit holds for the whole guild. Engines that launch sessions take the
 * first few only; the others take these last.
 */
async function takeSlot(context: SpiderContext, { rigId, engineId, designId }: EngineRow): Promise<string | undefined> {
  const { maxConcurrentEngines, maxConcurrentSessions } = context.config
  const taken = new Set((await context.slots.list()).map(({ id }) => id))
  const free = (from: number, to: number) =>
    Array.from({ length: Math.max(0, to - from) }, (_, k) => `slot-${from + k}`).filter((one) => !taken.has(one))
  const shared = free(0, maxConcurrentSessions)
  const own = free(maxConcurrentSessions, maxConcurrentEngines)
  const id = context.pick(context.isLimited(designId) || own.length === 0 ? shared : own)
  if (id !== undefined) await context.slots.put({ id, rigId, engineId })
  return id
}

/** Decides about an engine that is ready: it is skipped, it cannot be run, or it gets a slot. Then the caller claims it. */
export async function admit(context: SpiderContext, tx: RigTransaction, engine: EngineRow): Promise<AdmitResult> {
  const { engineId, designId } = engine
  const skipped = skipFrom(tx, engine)
  if (skipped !== undefined) {
    await tx.save()
    const { id: rigId } = tx.rig
    const cascade = skipped.length === 0 ? {} : { cascadeSkipped: skipped }
    return { kind: 'acted', result: endedOr(tx, { action: 'engine-skipped', rigId, engineId, ...cascade }) }
  }
  if (context.design(designId) === undefined) {
    const error = `No engine design found for "${designId}"`
    return { kind: 'acted', result: await failEngine(context, tx, engineId, { error, retryable: false }) }
  }
  const slot = await takeSlot(context, engine)
  if (slot === undefined) return { kind: 'full' }
  tx.set(engineId, {
    status: 'running',
    startedAt: context.now(),
    slot,
    holdUntil: undefined,
    lapses: 0,
    item: undefined,
  })
  return { kind: 'admitted' }
}

/** What a run is given. The same engine has the same key in every run of one try. */
export function claimedFrom(tx: RigTransaction, engine: EngineRow, token: string): ClaimedEngine {
  const { engineId, designId, priorBlock, sessionId } = engine
  const { id: rigId, writId, attempt: rigAttempt } = tx.rig
  const upstream = tx.yields()
  const attempt = (engine.attemptCount ?? 0) + 1
  return {
    rigId,
    engineId,
    designId,
    token,
    givens: resolveAtRun(engine.givensSpec, upstream),
    context: {
      writId,
      rigId,
      rigAttempt,
      engineId,
      upstream,
      attempt,
      idempotencyKey: idempotencyKey(rigId, engineId, attempt),
      writKey: (step = engineId) => `${writId}/${stringOption('writKey(step)', step)}`,
      ...(priorBlock === undefined ? {} : { priorBlock }),
    },
    ...(sessionId === undefined ? {} : { sessionId }),
  }
}

const idempotencyKey = (rigId: string, engineId: string, attempt: number): string => `${rigId}/${engineId}/${attempt}`

/** What to report: the end of the rig when that is what happened, else the step. */
export function endedOr(tx: RigTransaction, step?: CrawlResult): CrawlResult {
  const { id: rigId, writId, status } = tx.rig
  if (status === 'running' || status === 'blocked') {
    if (step === undefined) throw new Error(`Rig ${rigId} has not ended.`)
    return step
  }
  return { action: 'rig-completed', rigId, writId, outcome: status }
}

/**
 * Skips an engine whose condition is false, and then every conditional engine that is ready and whose condition is false, until
 * there is none. Unconditional ones are never skipped. Undefined: its condition holds.
 */
function skipFrom(tx: RigTransaction, { engineId, when }: EngineRow): string[] | undefined {
  if (when === undefined || isMet(when, tx.yields())) return undefined
  tx.set(engineId, { status: 'skipped' })
  const skipped: string[] = []
  for (;;) {
    const yields = tx.yields()
    const next = tx.engines.find(
      (engine) => engine.when !== undefined && tx.isReady(engine) && !isMet(engine.when, yields),
    )
    if (next === undefined) return skipped
    tx.set(next.engineId, { status: 'skipped' })
    skipped.push(next.engineId)
  }
}
