import type { At, Ms } from '../../core/time/time.js'
import type { ClaimedItem, Envelope, Lease } from '../../ports/item.js'
import type { EffectOf, Settlement } from '../../ports/settlement.js'
import { attemptText, bodyText, inputFrom } from './stored-texts.js'

/** Between the fields of a text of records.lua. */
const SEPARATOR = '\x1e'
/**
 * Behind each text of a list that is sent as one word: that is written several times as fast as a word for each. Replies are not joined: a
 * part of a text keeps all of it in memory, for as long as one item of a claim runs.
 */
const END_OF_TEXT = '\x1d'
/** Where the server's own fields end: 'h', the arrival and the due time. */
const AFTER_DUE = 26
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
  /** The inbox that is notified of its end. */
  readonly waiter: string | undefined

  constructor(id: string, token: string, fence: number, until: At, claim: LightClaim, waiter: string | undefined) {
    this.id = id
    this.queue = claim.queue
    this.token = token
    this.fence = fence
    this.until = until
    this.claim = claim
    this.waiter = waiter
  }
}

/** Texts as one word. */
export function joined(texts: readonly string[]): string {
  return `${texts.join(END_OF_TEXT)}${END_OF_TEXT}`
}

/** An enqueue of a light item, at a place in its batch. */
export interface LightEnqueue {
  readonly i: number
  readonly enqueue: EffectOf<'enqueue'>
  /** Without what the server puts before it. */
  readonly text: string
  /** Its input, if it is kept apart. */
  readonly longInput: string | undefined
}

/** An input of more characters is kept apart from its text, so that a list does not load it. */
const LONG_INPUT = 1_000

/** An item that is enqueued alone in its group and has nothing beside it; undefined for all others. */
export function lightEnqueue({ guard, effects }: Settlement, i: number): LightEnqueue | undefined {
  if (guard.by !== 'absent' || effects.length !== 2) return undefined
  const [join, enqueue] = effects
  if (join?.do !== 'joinGroup' || join.count !== 1 || join.groupId !== guard.id || enqueue?.do !== 'enqueue')
    return undefined
  const { item, queue, delayMs, hold, leasedTo } = enqueue
  const isAlone = item.id === guard.id && item.groupId === guard.id && hold === undefined && leasedTo === undefined
  if (!isAlone || delayMs !== 0 || typeof item.input !== 'string') return undefined
  const { id, type, input, queueAt, startAt, attempt, priority } = item
  if (attempt !== 1 || item.deadline !== undefined || item.tags !== undefined) return undefined
  // An inbox is sent in a list of its own when the item ends.
  if (item.waiter?.includes(END_OF_TEXT) === true || item.waiter === '') return undefined
  if (!isInstant(queueAt) || !isInstant(startAt)) return undefined
  if (!Number.isSafeInteger(priority) || Math.abs(priority) > MAX_PRIORITY) return undefined
  const longInput = input.length > LONG_INPUT ? bodyText(input) : undefined
  const head = `${queue}${SEPARATOR}${type}${SEPARATOR}`
  const body = longInput === undefined ? bodyText(input) : ''
  if (queue.includes(SEPARATOR) || type.includes(SEPARATOR)) return undefined
  if (id.includes(END_OF_TEXT) || head.includes(END_OF_TEXT) || body.includes(END_OF_TEXT)) return undefined
  const times = `${priority + 0}${SEPARATOR}${instantText(queueAt)}${SEPARATOR}${startAt === queueAt ? '' : instantText(startAt)}${SEPARATOR}`
  return { i, enqueue, text: `${head}${times}${restText(item)}${SEPARATOR}${body}`, longInput }
}

const isInstant = (at: number): boolean => Number.isSafeInteger(at) && at >= 0
/** Eight letters instead of thirteen digits. */
const BASE = 36
const instantText = (at: At): string => at.toString(BASE)
const instantFrom = (text: string): At => Number.parseInt(text, BASE)

/** The fields of a retry policy, in the order of its short text. records.lua reads it, too. */
const POLICY = ['attempts', 'base', 'factor', 'max', 'jitter'] as const
const restTexts = new WeakMap<object, string>()

/**
 * What else is in the envelope, as JSON. Of most items that is the version and a retry policy, which are five numbers: a quarter of the
 * memory of an item is not spent on their names.
 */
function restText(item: Envelope): string {
  const { v, retry } = item
  if (v !== 1 || typeof retry !== 'object' || retry === null) return restJson(item)
  // A copy of the rest would cost as much as all else that is written of an item.
  for (const name in item) if (!FIELDS.has(name)) return restJson(item)
  let text = restTexts.get(retry)
  if (text === undefined) {
    text = policyText(retry as Readonly<Record<string, unknown>>) ?? restJson(item)
    restTexts.set(retry, text)
  }
  return text
}

const FIELDS: ReadonlySet<string> = new Set([
  ...['v', 'retry', 'id', 'groupId', 'type', 'input', 'queueAt', 'startAt', 'attempt', 'priority'],
])

function restJson(item: Envelope): string {
  const {
    id: _i,
    groupId: _g,
    type: _t,
    input: _in,
    queueAt: _q,
    startAt: _s,
    attempt: _a,
    priority: _p,
    ...rest
  } = item
  return JSON.stringify(rest)
}

function policyText(retry: Readonly<Record<string, unknown>>): string | undefined {
  const numbers = POLICY.map((name) => retry[name])
  const isShort = Object.keys(retry).length === POLICY.length && numbers.every(Number.isFinite)
  return isShort ? numbers.join(',') : undefined
}

function readRest(text: string): object {
  if (text.startsWith('{')) return JSON.parse(text) as object
  const numbers = text.split(',').map(Number)
  return { v: 1, retry: Object.fromEntries(POLICY.map((name, i) => [name, numbers[i]])) }
}

/** What many items share is read once. */
const MOST_SHARED = 1_000
const shared = new Map<string, object>()

function restFrom(text: string): object {
  let rest = shared.get(text)
  if (rest === undefined) {
    // Only lightText wrote it.
    rest = deepFrozen(readRest(text))
    if (shared.size >= MOST_SHARED) shared.clear()
    // A copy: a part of a text keeps the whole of it in memory, with its input.
    shared.set(Buffer.from(text).toString(), rest)
  }
  return rest
}

function deepFrozen<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFrozen(part)
  return Object.freeze(value)
}

/** Light items of a row of claim.lua, or of a reply of light-claim.lua. */
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
    const queued = instantFrom(text.slice(queueAt, startAt - 1))
    const bodyAt = text.indexOf(SEPARATOR, restAt) + 1
    const envelope: Envelope = {
      ...restFrom(text.slice(restAt, bodyAt - 1)),
      id,
      type,
      groupId: id,
      input: inputFrom(text.slice(bodyAt)) ?? '',
      queueAt: queued,
      startAt: startAt === restAt - 1 ? queued : instantFrom(text.slice(startAt, restAt - 1)),
      attempt: 1,
      priority: Number(text.slice(priorityAt, queueAt - 1)),
    }
    return {
      lease: new LightLease(id, token, fence, until, claim, envelope.waiter),
      envelope,
      lapses: 0,
      crashes: 0,
      deliveries: 1,
    }
  })
}

/** The end of a light item, at a place in its batch. */
export interface LightEnd {
  readonly i: number
  readonly lease: LightLease
  readonly keepMs: Ms
  /** Its fields from the ending on. */
  readonly text: string
  /** It has no text that could be refused. */
  readonly isChecked: boolean
}

/** A settlement that completes a light item and does nothing else; undefined for all others. */
export function lightEnd({ guard, effects }: Settlement, i: number): LightEnd | undefined {
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
  const { ending, result, keepMs } = complete
  if (result?.includes(END_OF_TEXT) === true) return undefined
  const line = was === undefined ? '' : attemptText(was)
  const text = `${ending}${SEPARATOR}${line}${SEPARATOR}${result === undefined ? '' : `=${result}`}`
  return { i, lease, keepMs, text, isChecked: result === undefined }
}
