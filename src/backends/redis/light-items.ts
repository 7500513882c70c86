import type { At } from '../../core/time/time.js'
import type { ClaimedItem, Envelope, Lease } from '../../ports/item.js'
import type { EffectOf, Settlement } from '../../ports/settlement.js'
import { bodyText, inputFrom } from './stored-texts.js'

/** Between the fields of a text of records.lua. */
const SEPARATOR = '\x1e'
/** Where the server's own fields end: 'h', the arrival and the due time. */
const AFTER_ARRIVAL = 13
const AFTER_DUE = 26
const PLACES = 2_048
/** Priorities beyond this are not written as plain digits. */
const MAX_PRIORITY = 1e9

/** The items of one queue and type that were claimed together. */
export interface LightClaim {
  readonly no: string
  readonly key: string
  readonly queue: string
  readonly type: string
}

/** The lease of a light item: its end is written without reading anything of the item. */
export class LightLease implements Lease {
  readonly id: string
  readonly queue: string
  readonly token: string
  readonly fence: number
  readonly until: At
  readonly claim: LightClaim
  /** Its place among what ends in the same millisecond. */
  readonly place: number

  constructor(id: string, token: string, fence: number, until: At, claim: LightClaim, place: number) {
    this.id = id
    this.queue = claim.queue
    this.token = token
    this.fence = fence
    this.until = until
    this.claim = claim
    this.place = place
  }
}

/** An item that is enqueued alone in its group and has nothing beside it: what is to be enqueued, or undefined for all others. */
export function lightEnqueue({ guard, effects }: Settlement): EffectOf<'enqueue'> | undefined {
  if (guard.by !== 'absent' || effects.length !== 2) return undefined
  const [join, enqueue] = effects
  if (join?.do !== 'joinGroup' || join.count !== 1 || join.groupId !== guard.id || enqueue?.do !== 'enqueue')
    return undefined
  const { item, queue, delayMs, hold, leasedTo } = enqueue
  const isAlone = item.id === guard.id && item.groupId === guard.id && hold === undefined && leasedTo === undefined
  if (!isAlone || delayMs !== 0 || item.attempt !== 1 || typeof item.input !== 'string') return undefined
  if (item.deadline !== undefined || item.tags !== undefined || item.waiter !== undefined) return undefined
  if (!Number.isSafeInteger(item.queueAt) || !Number.isSafeInteger(item.startAt)) return undefined
  if (!Number.isSafeInteger(item.priority) || Math.abs(item.priority) > MAX_PRIORITY) return undefined
  return item.type.includes(SEPARATOR) || queue.includes(SEPARATOR) ? undefined : enqueue
}

/** An input of more characters is kept apart from its text, so that a list does not load it. */
const LONG_INPUT = 1_000

/** The input of a light item, if it is kept apart. */
export function longInput({ item: { input } }: EffectOf<'enqueue'>): string | undefined {
  return input.length > LONG_INPUT ? bodyText(input) : undefined
}

/** The text of a light item, without what the server puts before it. */
export function lightText({ item, queue }: EffectOf<'enqueue'>): string {
  const { id: _id, groupId: _group, attempt: _attempt, type, input, queueAt, startAt, priority, ...rest } = item
  const head = `${queue}${SEPARATOR}${type}${SEPARATOR}${priority + 0}${SEPARATOR}${queueAt}${SEPARATOR}${startAt}${SEPARATOR}`
  return `${head}${restText(rest)}${SEPARATOR}${input.length > LONG_INPUT ? '' : bodyText(input)}`
}

const restTexts = new WeakMap<object, string>()

/** Most items have nothing but the version and the retry policy of their type. */
function restText(rest: Record<string, unknown>): string {
  const { retry } = rest
  if (typeof retry !== 'object' || retry === null || rest['v'] !== 1) return JSON.stringify(rest)
  for (const name in rest) if (name !== 'retry' && name !== 'v') return JSON.stringify(rest)
  let text = restTexts.get(retry)
  if (text === undefined) {
    text = JSON.stringify(rest)
    restTexts.set(retry, text)
  }
  return text
}

/** What many items share is read once. */
const MOST_SHARED = 1_000
const shared = new Map<string, object>()

function restFrom(text: string): object {
  let rest = shared.get(text)
  if (rest === undefined) {
    // Only lightText wrote it.
    rest = deepFrozen(JSON.parse(text) as object)
    if (shared.size >= MOST_SHARED) shared.clear()
    shared.set(text, rest)
  }
  return rest
}

function deepFrozen<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFrozen(part)
  return Object.freeze(value)
}

/** Light items of a reply of claim.lua. */
export function lightItems(row: readonly unknown[], key: string, until: At): ClaimedItem[] {
  const [, queue, no, ids, texts] = row as [number, string, string, readonly string[], readonly string[]]
  const typeAt = texts[0]!.indexOf(SEPARATOR, AFTER_DUE) + 1
  const type = texts[0]!.slice(typeAt, texts[0]!.indexOf(SEPARATOR, typeAt))
  const claim: LightClaim = { no, key, queue, type }
  const token = `${no}.${key}`
  const fence = Number(no)
  // The queue and the type are as long in all of them.
  const priorityAt = typeAt + type.length + 1
  return ids.map((id, i) => {
    const text = texts[i]!
    const queueAt = text.indexOf(SEPARATOR, priorityAt) + 1
    const startAt = text.indexOf(SEPARATOR, queueAt) + 1
    const restAt = text.indexOf(SEPARATOR, startAt) + 1
    const bodyAt = text.indexOf(SEPARATOR, restAt) + 1
    const envelope: Envelope = {
      ...restFrom(text.slice(restAt, bodyAt - 1)),
      id,
      type,
      groupId: id,
      input: inputFrom(text.slice(bodyAt)) ?? '',
      queueAt: Number(text.slice(queueAt, startAt - 1)),
      startAt: Number(text.slice(startAt, restAt - 1)),
      attempt: 1,
      priority: Number(text.slice(priorityAt, queueAt - 1)),
    }
    const place = Number(text.slice(1, AFTER_ARRIVAL)) % PLACES
    return {
      lease: new LightLease(id, token, fence, until, claim, place),
      envelope,
      lapses: 0,
      crashes: 0,
      deliveries: 1,
    }
  })
}

/** The end of a light item, as its settlement says it. */
export interface LightEnd {
  readonly lease: LightLease
  readonly was: EffectOf<'recordAttempt'>['was'] | undefined
  readonly complete: EffectOf<'complete'>
}

/** A settlement that completes a light item and does nothing else; undefined for all others. */
export function lightEnd({ guard, effects }: Settlement): LightEnd | undefined {
  if (guard.by !== 'lease' || !(guard.lease instanceof LightLease)) return undefined
  const { lease } = guard
  const record = effects[0]
  const was = record?.do === 'recordAttempt' && record.id === lease.id ? record.was : undefined
  const from = was === undefined ? 0 : 1
  if (effects.length !== from + 2) return undefined
  const complete = effects[from]
  const leave = effects[from + 1]
  if (complete?.do !== 'complete' || complete.id !== lease.id) return undefined
  if (leave?.do !== 'leaveGroup' || leave.groupId !== lease.id || leave.count !== 1) return undefined
  // A run that failed puts its item among those that failed alike.
  if (was !== undefined && (was.fingerprint !== undefined || was.class !== undefined)) return undefined
  return { lease, was, complete }
}

/** The fields of an end, from the ending on. */
export function endText(ending: string, line: string, result: string | undefined): string {
  return `${ending}${SEPARATOR}${line}${SEPARATOR}${result === undefined ? '' : `=${result}`}`
}
