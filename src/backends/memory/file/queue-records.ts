import type { At } from '../../../core/time/time.js'
import type { Hold } from '../../../ports/item.js'
import { countMember, type GateDecision, type GateRecord } from '../groups/gate-table.js'
import type { LetterFacts } from '../queue/dead-letters.js'
import type { Message } from '../queue/message.js'

/** A message as the file knows it. */
export interface StoredMessage {
  readonly no: number
  readonly queue: string
  readonly body: string
  readonly dedupeKey: string | undefined
  readonly priority: number
  dueAt: At
  deliveries: number
  fence: number
  lapses: number
  crashes: number
  /** Where it is not told by origin and number. */
  id: string | undefined
  /** Deliveries that a plain consumer began to run. */
  starts: number
  /** What a plain consumer keeps with it. */
  note: string | undefined
  /** The process that numbered it. Undefined: a file that does not tell. */
  origin: string | undefined
  lease: 'none' | 'taken' | 'running'
  hold: Hold | undefined
  gate: GateDecision | undefined
}

export interface StoredDeath {
  readonly no: number
  readonly queue: string
  readonly body: string
  readonly error: string
  readonly letter?: LetterFacts | undefined
}

/** What a file holds once its records have been applied one after the other. */
export interface Stored {
  readonly messages: Map<number, StoredMessage>
  readonly dead: Map<number, StoredDeath>
  readonly gates: Map<string, GateRecord>
  /** By `pauseKey`. */
  readonly pauses: Map<string, StoredPause>
  /** That of the messages which follow. */
  origin: string | undefined
}

export interface StoredPause {
  readonly what: 'queue' | 'type'
  readonly name: string
}

/** One change, as the journal stores it: a name and its arguments. `null` is Infinity where a time is meant. */
export type Op =
  | readonly ['origin', origin: string]
  | readonly ['put', PutFields]
  | readonly ['start', ...nos: number[]]
  | readonly ['note', no: number, note: string]
  | readonly ['lease', ...nos: number[]]
  | readonly ['run', running: 0 | 1, ...nos: number[]]
  | readonly ['lapse', ...nos: number[]]
  | readonly ['gone', ...nos: number[]]
  | readonly ['move', no: number, dueAt: At | null, hold?: Hold | null, gate?: GateDecision | null]
  | readonly ['bury', queue: string, no: number, body: string, error: string, letter?: LetterFacts]
  | readonly ['exhume', no: number]
  | readonly ['gate', GateFields]
  | readonly ['gate-member', key: string, member: string, completed: 0 | 1]
  | readonly ['ungate', key: string]
  | readonly ['pause' | 'resume', what: 'queue' | 'type', name: string]

/** Fields that have their usual value are left out. */
export interface PutFields {
  readonly no: number
  readonly body: string
  readonly dueAt: At | null
  readonly queue?: string
  readonly priority?: number
  readonly dedupeKey?: string
  readonly deliveries?: number
  /** Where it is not the same as the deliveries. */
  readonly fence?: number
  readonly lapses?: number
  readonly crashes?: number
  readonly id?: string
  readonly starts?: number
  readonly note?: string
  readonly lease?: 'taken' | 'running'
  readonly hold?: Hold
  readonly gate?: GateDecision
}

export interface GateFields {
  readonly key: string
  readonly heldId: string
  readonly of: 'done' | 'success'
  readonly need: number
  readonly waiting: readonly string[]
}

export const DEFAULT_QUEUE = 'default'

export const pauseKey = (what: 'queue' | 'type', name: string): string => `${what}\n${name}`

export function nothingStored(): Stored {
  return { messages: new Map(), dead: new Map(), gates: new Map(), pauses: new Map(), origin: undefined }
}

/** Applies one change. A change that a later version added is skipped. */
export function applyOp(stored: Stored, op: Op): void {
  switch (op[0]) {
    case 'origin':
      stored.origin = op[1]
      return
    case 'put':
      stored.messages.set(op[1].no, fromPut(op[1], stored.origin))
      return
    case 'start':
      for (const no of op.slice(1) as number[]) {
        const message = stored.messages.get(no)
        if (message !== undefined) message.starts += 1
      }
      return
    case 'note': {
      const message = stored.messages.get(op[1])
      if (message !== undefined) message.note = op[2]
      return
    }
    case 'lease':
      for (const no of op.slice(1) as number[]) {
        const message = stored.messages.get(no)
        if (message === undefined) continue
        message.deliveries += 1
        message.fence += 1
        message.lease = 'taken'
      }
      return
    case 'run':
      for (const no of op.slice(2) as number[]) {
        const message = stored.messages.get(no)
        if (message !== undefined && message.lease !== 'none') message.lease = op[1] === 1 ? 'running' : 'taken'
      }
      return
    case 'lapse':
      for (const no of op.slice(1) as number[]) {
        const message = stored.messages.get(no)
        if (message !== undefined) lapse(message)
      }
      return
    case 'gone':
      for (const no of op.slice(1) as number[]) stored.messages.delete(no)
      return
    case 'move': {
      const message = stored.messages.get(op[1])
      if (message === undefined) return
      message.lease = 'none'
      message.dueAt = op[2] ?? Number.POSITIVE_INFINITY
      message.hold = op[3] ?? undefined
      message.gate = op[4] ?? undefined
      return
    }
    case 'bury':
      stored.dead.set(op[2], { queue: op[1], no: op[2], body: op[3], error: op[4], letter: op[5] })
      return
    case 'exhume':
      stored.dead.delete(op[1])
      return
    case 'gate':
      stored.gates.set(op[1].key, { ...op[1], waiting: new Set(op[1].waiting) })
      return
    case 'gate-member': {
      const gate = stored.gates.get(op[1])
      if (gate !== undefined) countMember(gate, op[2], op[3] === 1)
      return
    }
    case 'ungate':
      stored.gates.delete(op[1])
      return
    case 'pause':
      stored.pauses.set(pauseKey(op[1], op[2]), { what: op[1], name: op[2] })
      return
    case 'resume':
      stored.pauses.delete(pauseKey(op[1], op[2]))
      return
  }
}

/** Leases ended with the process that wrote the file. */
export function endLeases(stored: Stored): void {
  for (const message of stored.messages.values()) if (message.lease !== 'none') lapse(message)
}

function lapse(message: StoredMessage): void {
  message.lapses += 1
  if (message.lease === 'running') message.crashes += 1
  message.lease = 'none'
}

function fromPut(fields: PutFields, origin: string | undefined): StoredMessage {
  return {
    no: fields.no,
    queue: fields.queue ?? DEFAULT_QUEUE,
    body: fields.body,
    dedupeKey: fields.dedupeKey,
    priority: fields.priority ?? 0,
    dueAt: fields.dueAt ?? Number.POSITIVE_INFINITY,
    deliveries: fields.deliveries ?? 0,
    fence: fields.fence ?? fields.deliveries ?? 0,
    lapses: fields.lapses ?? 0,
    crashes: fields.crashes ?? 0,
    id: fields.id,
    starts: fields.starts ?? 0,
    note: fields.note,
    origin,
    lease: fields.lease ?? 'none',
    hold: fields.hold,
    gate: fields.gate,
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A message as the file knows it, without what has its usual value: most messages have nothing but a body and a due time. */
export function putFields(queue: string, message: Message): PutFields {
  const { no, body, dueAt, priority, dedupeKey, deliveries, fence, lapses, crashes, hold, gate, lease } = message
  const { starts, note, ownId } = message
  const fields: Writable<PutFields> = { no, body, dueAt: dueAt === Number.POSITIVE_INFINITY ? null : dueAt }
  if (queue !== DEFAULT_QUEUE) fields.queue = queue
  if (priority !== 0) fields.priority = priority
  if (dedupeKey !== undefined) fields.dedupeKey = dedupeKey
  if (deliveries !== 0) fields.deliveries = deliveries
  if (fence !== deliveries) fields.fence = fence
  if (lapses !== 0) fields.lapses = lapses
  if (crashes !== 0) fields.crashes = crashes
  if (ownId !== undefined) fields.id = ownId
  if (starts !== 0) fields.starts = starts
  if (note !== undefined) fields.note = note
  if (hold !== undefined) fields.hold = hold
  if (gate !== undefined) fields.gate = gate
  if (lease !== undefined) fields.lease = lease.running ? 'running' : 'taken'
  return fields
}
