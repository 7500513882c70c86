import type { FailureClass } from '../../core/failure/failure.js'
import type { Mutable } from '../../core/mutable.js'
import { listedError } from '../../core/text/error-text.js'
import { nextTry, redrivenEnvelope } from '../../ports/envelope.js'
import type { ItemSummary, ItemView } from '../../ports/inspect.js'
import type { Ending, Envelope, EnvelopeHead, Hold, ItemStatus } from '../../ports/item.js'
import type { ScheduleRecord } from '../../ports/ledger.js'
import type { GroupValue } from '../../ports/settlement.js'
import { envelopeFromTexts } from './stored-texts.js'

export type Cell = string | number | null

/** Where an envelope was kept: id, body, head, type, group. */
type Kept = readonly [id: Cell, body: Cell, head: Cell, type: Cell, group: Cell]
const textOf = (cell: Cell): string | null => (cell === null ? null : String(cell))

/** What retries and redrives changed, put over the envelope as it was pushed. */
export function envelopeFrom(kept: Kept, attempt: Cell, startAt: Cell, queueAt: Cell, redrives: Cell): Envelope {
  const [id, body, head, type, group] = kept
  const name = String(id)
  let envelope = envelopeFromTexts(name, String(type), textOf(group) ?? name, textOf(head), textOf(body)) ?? lost(name)
  if (queueAt !== null) {
    for (let n = 0; n < Number(redrives ?? 1); n += 1)
      envelope = redrivenEnvelope(envelope, Number(queueAt), Number(queueAt))
    envelope = { ...envelope, startAt: Number(startAt ?? queueAt) }
    return attempt === null ? envelope : { ...envelope, attempt: Number(attempt) }
  }
  return startAt === null ? envelope : nextTry(envelope, Number(attempt ?? envelope.attempt), Number(startAt))
}

/** Its text is gone, removed by hand. What is known of it is still shown. */
const lost = (id: string): Envelope => ({
  id,
  type: '',
  groupId: id,
  input: '',
  queueAt: 0,
  startAt: 0,
  attempt: 1,
  priority: 0,
})

/** A row of view.lua. */
export function viewFrom(row: readonly Cell[]): ItemView {
  const [id, body, head, type, group, status, queue, ending, kind, holdBy, holdKey, dueAt, holder] = row
  const [until, runAt, result, error, endAt, progress, lapses, crashes, ...changed] = row.slice(13)
  const [attempt, startAt, queueAt, redrives, cancelled, running] = changed
  const kept: Kept = [id!, body!, head!, type!, group!]
  const { input: _, ...envelope } = envelopeFrom(kept, attempt!, startAt!, queueAt!, redrives!)
  const view: Mutable<ItemView> = {
    // The rest of an index signature loses the named fields in its type; they are all there.
    envelope: envelope as unknown as EnvelopeHead,
    queue: String(queue),
    status: status as ItemStatus,
    lapses: Number(lapses),
    crashes: Number(crashes),
  }
  if (ending !== null) view.ending = ending as Ending
  if (kind !== null) view.class = kind as FailureClass
  if (holdBy !== null) view.hold = { by: holdBy as Hold['by'], key: String(holdKey) }
  if (dueAt !== null) view.dueAt = Number(dueAt)
  if (holder !== null) view.worker = String(holder)
  if (until !== null) view.leaseUntil = Number(until)
  if (runAt !== null) view.runAt = Number(runAt)
  if (running != null) view.running = running === 1
  if (result !== null) view.result = String(result)
  if (error !== null) view.error = String(error)
  if (endAt !== null) view.endAt = Number(endAt)
  if (cancelled != null) view.cancelReason = String(cancelled)
  if (progress !== null) view.progress = String(progress)
  return view
}

/** A row of view.lua without payloads. */
export function summaryFrom(row: readonly Cell[]): ItemSummary {
  const view = viewFrom(row)
  return view.error === undefined ? view : { ...view, error: listedError(view.error) }
}

/** A row of groups-read.lua. */
export function groupFrom(row: readonly Cell[] | null): (GroupValue & { readonly open: number }) | undefined {
  if (row === null) return undefined
  const [open, value, final, version] = row
  return {
    ...(value === null || value === undefined ? undefined : { value: String(value) }),
    final: final === 1,
    version: Number(version),
    open: Number(open),
  }
}

/** A record of commit.lua's `schedule`. */
export function scheduleFrom(text: string | null | undefined): ScheduleRecord | undefined {
  if (text === null || text === undefined) return undefined
  const cut = text.indexOf('\n')
  return { spec: text.slice(cut + 1), nextAt: Number(text.slice(0, cut)) }
}

/** Most ids in one read. */
const MAX_READ = 1_000

/** Asks about many ids, so many of them with one script. */
export async function inSteps(
  ids: readonly string[],
  ask: (some: readonly string[]) => Promise<unknown>,
): Promise<readonly unknown[]> {
  if (ids.length === 0) return []
  if (ids.length <= MAX_READ) return listOf(await ask(ids))
  const all: unknown[] = []
  for (let from = 0; from < ids.length; from += MAX_READ)
    all.push(...listOf(await ask(ids.slice(from, from + MAX_READ))))
  return all
}

const listOf = (reply: unknown): readonly unknown[] => (Array.isArray(reply) ? reply : [])
