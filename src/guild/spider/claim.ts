import { newToken } from '../../core/ids.js'
import type { EngineRunContext } from '../fabricator/engine-design.js'
import type { CrawlResult } from './api.js'
import { failEngine } from './end-rig.js'
import { isMet, resolveAtRun } from './expression.js'
import type { Floor } from './floor.js'
import type { EngineClaim, EngineRow } from './rig.js'
import { Sheet } from './sheet.js'

/** An engine that may be run now by whoever holds this. */
export interface Claimed {
  readonly rigId: string
  readonly engineId: string
  readonly designId: string
  readonly token: string
  readonly givens: Readonly<Record<string, unknown>>
  readonly context: Omit<EngineRunContext, 'signal'>
  readonly sessionId?: string
}

/** What became of a ready engine when its turn came. */
export type Turn =
  | { readonly kind: 'claimed'; readonly claimed: Claimed }
  | { readonly kind: 'acted'; readonly result: CrawlResult }
  /** No slot is free. */
  | { readonly kind: 'full' }

/** A claim of `crawl()`: it lapses when it is not renewed. */
export function leased(floor: Floor): EngineClaim {
  return { owner: floor.owner, token: newToken(), leaseUntil: floor.later(floor.config.engineLeaseMs) }
}

/** How many claims of one try may end without a word before the engine counts as failed. */
export const MAX_LAPSES = 3

/**
 * What taking over a claim means for the count: a holder that lived to give it back did not lapse. `lapsed` is the claim that was
 * counted, so that its holder can take that back.
 */
export function takenOver({ claim, lapses = 0 }: EngineRow): { readonly lapses: number; readonly lapsed?: string } {
  return claim === undefined || claim.isGivenBack === true ? { lapses } : { lapses: lapses + 1, lapsed: claim.token }
}

/**
 * Says of a claim that its holder does not die with it, also when another has taken it over meanwhile and thought so. `isOver`: nor
 * does it run the engine any more, so that nobody need wait. Never rejects: at worst one lapse too many is counted.
 */
export function giveBack(
  floor: Floor,
  { rigId, engineId, token }: { readonly rigId: string; readonly engineId: string; readonly token: string },
  isOver = false,
): Promise<void> {
  const given = floor
    .change(async () => {
      const sheet = await Sheet.load(floor, rigId)
      const { claim, lapses = 0 } = sheet?.engine(engineId) ?? {}
      if (sheet === undefined || claim === undefined) return
      const { lapsed, ...rest } = claim
      const lease = isOver && claim.leaseUntil !== undefined ? { leaseUntil: floor.now() } : {}
      if (claim.token === token) sheet.set(engineId, { claim: { ...claim, ...lease, isGivenBack: true } })
      else if (lapsed === token) sheet.set(engineId, { claim: rest, lapses: lapses - 1 })
      else return
      await sheet.save()
    })
    .catch(() => undefined)
    .finally(() => floor.givingBack.delete(given))
  floor.givingBack.add(given)
  return given
}

/** Takes a slot for a running engine. Slots are documents, so that the limit holds for the whole guild. */
async function takeSlot(floor: Floor, { rigId, engineId }: EngineRow): Promise<string | undefined> {
  const taken = new Set((await floor.slots.list()).map(({ id }) => id))
  const all = Array.from({ length: floor.config.maxConcurrentEngines }, (_, k) => `slot-${k}`)
  const id = floor.pick(all.filter((one) => !taken.has(one)))
  if (id !== undefined) await floor.slots.put({ id, rigId, engineId })
  return id
}

/** Decides about an engine that is ready: it is skipped, it cannot be run, or it gets a slot. Then `begin` says who runs it. */
export async function admit(
  floor: Floor,
  sheet: Sheet,
  engine: EngineRow,
): Promise<{ readonly kind: 'admitted' } | Exclude<Turn, { kind: 'claimed' }>> {
  const { engineId, designId } = engine
  const skipped = skipFrom(sheet, engine)
  if (skipped !== undefined) {
    await sheet.save()
    const { id: rigId } = sheet.rig
    const cascade = skipped.length === 0 ? {} : { cascadeSkipped: skipped }
    return { kind: 'acted', result: endedOr(sheet, { action: 'engine-skipped', rigId, engineId, ...cascade }) }
  }
  if (floor.design(designId) === undefined) {
    const error = `No engine design found for "${designId}"`
    return { kind: 'acted', result: await failEngine(floor, sheet, engineId, { error, retryable: false }) }
  }
  const slot = await takeSlot(floor, engine)
  if (slot === undefined) return { kind: 'full' }
  sheet.set(engineId, {
    status: 'running',
    startedAt: floor.now(),
    slot,
    holdUntil: undefined,
    lapses: 0,
    item: undefined,
  })
  return { kind: 'admitted' }
}

/** What a run is given. The same engine has the same key in every run of one try. */
export function claimedFrom(sheet: Sheet, engine: EngineRow, token: string): Claimed {
  const { engineId, designId, priorBlock, sessionId } = engine
  const { id: rigId } = sheet.rig
  const upstream = sheet.yields()
  const attempt = (engine.attemptCount ?? 0) + 1
  return {
    rigId,
    engineId,
    designId,
    token,
    givens: resolveAtRun(engine.givensSpec, upstream),
    context: {
      rigId,
      engineId,
      upstream,
      attempt,
      idempotencyKey: idempotencyKey(rigId, engineId, attempt),
      ...(priorBlock === undefined ? {} : { priorBlock }),
    },
    ...(sessionId === undefined ? {} : { sessionId }),
  }
}

const idempotencyKey = (rigId: string, engineId: string, attempt: number): string => `${rigId}/${engineId}/${attempt}`

/** What to report: the end of the rig when that is what happened, else the step. */
export function endedOr(sheet: Sheet, step?: CrawlResult): CrawlResult {
  const { id: rigId, writId, status } = sheet.rig
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
function skipFrom(sheet: Sheet, { engineId, when }: EngineRow): string[] | undefined {
  if (when === undefined || isMet(when, sheet.yields())) return undefined
  sheet.set(engineId, { status: 'skipped' })
  const skipped: string[] = []
  for (;;) {
    const yields = sheet.yields()
    const next = sheet.engines.find(
      (engine) => engine.when !== undefined && sheet.isReady(engine) && !isMet(engine.when, yields),
    )
    if (next === undefined) return skipped
    sheet.set(next.engineId, { status: 'skipped' })
    skipped.push(next.engineId)
  }
}
