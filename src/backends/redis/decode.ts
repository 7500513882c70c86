import { listedError } from '../../core/error-text.js'
import type { FailureClass } from '../../core/failure.js'
import type { At } from '../../core/time.js'
import { nextTry, redriven } from '../../ports/envelope.js'
import type { Claimed, Ending, Envelope, EnvelopeHead, Hold, Status } from '../../ports/item.js'
import type { ClaimReply, ItemSummary, ItemView, ScheduleRecord } from '../../ports/ledger.js'
import type { CommitResult, GroupValue, Settlement } from '../../ports/settlement.js'
import { envelopeFromTexts } from './body-text.js'

type Cell = string | number | null
type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Where an envelope was kept: id, body, head, type, group. */
type Kept = readonly [id: Cell, body: Cell, head: Cell, type: Cell, group: Cell]
const textOf = (cell: Cell): string | null => (cell === null ? null : String(cell))

/** What retries and redrives changed, put over the envelope as it was pushed. */
function envelopeFrom(kept: Kept, attempt: Cell, startAt: Cell, queueAt: Cell, redrives: Cell): Envelope {
  const [id, body, head, type, group] = kept
  const name = String(id)
  let envelope = envelopeFromTexts(name, String(type), textOf(group) ?? name, textOf(head), textOf(body)) ?? lost(name)
  if (queueAt !== null) {
    for (let n = 0; n < Number(redrives ?? 1); n += 1) envelope = redriven(envelope, Number(queueAt), Number(queueAt))
    envelope = { ...envelope, startAt: Number(startAt ?? queueAt) }
    return attempt === null ? envelope : { ...envelope, attempt: Number(attempt) }
  }
  return startAt === null ? envelope : nextTry(envelope, Number(attempt ?? envelope.attempt), Number(startAt))
}

/** Its text is gone: somebody removed it by hand. What is known of it is shown all the same. */
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

/** The reply of claim.lua. */
export function claimReplyFrom(
  reply: unknown,
  token: string,
  leaseMs: number,
): { readonly claimed: ClaimReply; readonly hasExpired: boolean; readonly removed: number } {
  const [at, more, due, expired, removed, unreadable, crashed, ...rows] = reply as [
    number,
    number,
    number | null,
    number,
    number,
    string[],
    string[],
    ...Cell[][],
  ]
  const bodies: { queue: string; body: string }[] = []
  for (let i = 0; i < unreadable.length; i += 2) bodies.push({ queue: unreadable[i]!, body: unreadable[i + 1]! })
  return {
    claimed: {
      items: rows.map((row, i) => claimedFrom(row, `${token}.${i}`, at + leaseMs)),
      more: more === 1,
      ...(due === null ? undefined : { nextDueAt: due }),
      at,
      ...(bodies.length === 0 ? undefined : { unreadable: bodies }),
      ...(crashed.length === 0 ? undefined : { crashed }),
    },
    hasExpired: expired === 1,
    removed,
  }
}

function claimedFrom(row: readonly Cell[], token: string, until: At): Claimed {
  const [
    id,
    queue,
    body,
    head,
    type,
    group,
    attempt,
    startAt,
    queueAt,
    redrives,
    fence,
    lapses,
    crashes,
    deliveries,
    met,
    cancelled,
  ] = row
  const claimed = {
    lease: { id: String(id), queue: String(queue), token, fence: Number(fence), until },
    envelope: envelopeFrom([id!, body!, head!, type!, group!], attempt!, startAt!, queueAt!, redrives!),
    lapses: Number(lapses),
    crashes: Number(crashes),
    deliveries: Number(deliveries),
  }
  return {
    ...claimed,
    ...(met === null ? undefined : { gate: { met: met === '1' } }),
    ...(cancelled === null ? undefined : { cancelled: String(cancelled) }),
  }
}

/** A row of view.lua. */
export function viewFrom(row: readonly Cell[]): ItemView {
  const [id, body, head, type, group, status, queue, ending, kind, holdBy, holdKey, dueAt, holder] = row
  const [until, runAt, result, error, endAt, progress, lapses, crashes, ...changed] = row.slice(13)
  const [attempt, startAt, queueAt, redrives, cancelled, running] = changed
  const kept: Kept = [id!, body!, head!, type!, group!]
  const { input: _, ...envelope } = envelopeFrom(kept, attempt!, startAt!, queueAt!, redrives!)
  const view: Writable<ItemView> = {
    // The rest of an index signature loses the named fields in its type; they are all there.
    envelope: envelope as unknown as EnvelopeHead,
    queue: String(queue),
    status: status as Status,
    lapses: Number(lapses),
    crashes: Number(crashes),
  }
  if (ending !== null) view.ending = ending as Ending
  if (kind !== null) view.class = kind as FailureClass
  if (holdBy !== null) view.hold = { by: holdBy as Hold['by'], key: String(holdKey) }
  if (dueAt !== null) view.dueAt = Number(dueAt)
  if (holder !== null) view.holder = String(holder)
  if (until !== null) view.leaseUntil = Number(until)
  if (runAt !== null) view.runAt = Number(runAt)
  if (running != null) view.running = running === 1
  if (result !== null) view.result = String(result)
  if (error !== null) view.error = String(error)
  if (endAt !== null) view.endAt = Number(endAt)
  if (cancelled != null) view.cancelled = String(cancelled)
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

/** The reply of commit.lua, for the settlements that were sent. */
export function resultsFrom(reply: unknown, sent: readonly Settlement[]): CommitResult[] {
  const [kinds, closed, conflicts] = reply as [string, Cell[], Cell[]]
  const results = sent.map((settlement, i): CommitResult => {
    switch (kinds[i]) {
      case 'a':
        return { kind: 'applied', closed: [] }
      case 'r':
        return { kind: 'repeated', id: idOf(settlement) }
      default:
        return { kind: 'stale' }
    }
  })
  for (let i = 0; i < closed.length; i += 4) {
    const at = Number(closed[i]) - 1
    const value = closed[i + 2] ?? null
    const one = {
      groupId: String(closed[i + 1]),
      ...(value === null ? undefined : { value: String(value) }),
      ...(closed[i + 3] === 1 ? { watched: true } : undefined),
    }
    const known = results[at]
    results[at] = { kind: 'applied', closed: [...(known?.kind === 'applied' ? known.closed : []), one] }
  }
  for (let i = 0; i < conflicts.length; i += 5) {
    const value = conflicts[i + 2] ?? null
    const now = {
      ...(value === null ? undefined : { value: String(value) }),
      final: conflicts[i + 3] === 1,
      version: Number(conflicts[i + 4]),
    }
    results[Number(conflicts[i]) - 1] = { kind: 'conflict', groupId: String(conflicts[i + 1]), now }
  }
  return results
}

function idOf({ guard }: Settlement): string {
  if (guard.by === 'lease') return guard.lease.id
  return guard.by === 'absent' || guard.by === 'status' ? guard.id : ''
}
