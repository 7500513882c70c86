import type { At } from '../../core/time.js'
import type { Envelope } from '../../ports/item.js'
import { envelopeOf, hasEnded, type Marks, type StoredState, stateOf, writeState } from '../../ports/plain/state.js'
import type { ItemRecord } from './item-record.js'

/** The text of `state:<id>`: what a system on the plain path would have written. */
export function stateText(record: ItemRecord): string {
  const { status, runAt, endAt } = record
  const error = record.extras?.error
  return writeState(
    stateOf(record.envelope, {
      status,
      ...(error === undefined ? {} : { error }),
      ...(runAt === undefined ? {} : { runAt }),
      ...(endAt === undefined ? {} : { endAt }),
      marks: marksOf(record),
    }),
  )
}

/** Whether the outcome counts: a success does once its result is there, which is written last. */
export function isOver(state: StoredState, hasResult: boolean): boolean {
  return state.status === 'dead' || (state.status === 'success' && (hasResult || state.marks?.isResultless === true))
}

/** Takes over what a system on the plain path wrote about an item of ours. `isEnd`: its outcome counts. */
export function applyStateText(record: ItemRecord, state: StoredState, isEnd: boolean): void {
  const { status, runAt, endAt, startAt, marks } = state
  // The input is not in the state: it stays what it was. A state written by hand may know little of the envelope.
  const { groupId, input } = record.envelope
  const before = state.envelope === undefined ? record.envelope : undefined
  record.envelope = { ...before, ...envelopeOf(state), groupId, input }
  record.status = isEnd || !hasEnded(status) ? status : 'running'
  record.runAt = runAt
  record.endAt = isEnd ? (endAt ?? startAt) : undefined
  record.ending = isEnd ? (marks?.ending ?? (status === 'success' ? 'done' : 'exhausted')) : undefined
  applyExtras(record, state)
}

/** An envelope from a state alone: enough to read the item, not to run it. */
export function envelopeFromState(state: StoredState): Envelope {
  const known = envelopeOf(state)
  const groupId = typeof known['groupId'] === 'string' ? known['groupId'] : ''
  return { ...known, groupId, input: '' } as Envelope
}

function applyExtras(record: ItemRecord, { status, error, marks }: StoredState): void {
  const holder = status === 'running' ? marks?.holder : undefined
  const crashes = marks?.crashes ?? 0
  const isNothing = error === undefined && holder === undefined && marks?.class === undefined && crashes === 0
  if (record.extras === undefined && isNothing) return
  const extras = record.withExtras()
  extras.error = error
  extras.holder = holder
  extras.class = marks?.class
  extras.crashes = crashes
}

function marksOf(record: ItemRecord): Marks {
  const { ending, holder, fence, message, result, keepUntil, endAt, extras } = record
  const gate = message?.hold?.by === 'gate' ? message.hold.key : message?.gate?.key
  const dueAt = message !== undefined && message.place !== 'leased' ? finite(message.dueAt) : undefined
  return {
    queue: record.queue.name,
    fence,
    ...(ending === undefined ? {} : { ending }),
    ...(extras?.class === undefined ? {} : { class: extras.class }),
    ...(holder === undefined ? {} : { holder }),
    ...(message === undefined || message.crashes === 0 ? {} : { crashes: message.crashes }),
    ...(endAt === undefined || finite(keepUntil) === undefined ? {} : { keepMs: keepUntil - endAt }),
    ...(record.status === 'success' && result === undefined ? { isResultless: true } : {}),
    ...(gate === undefined ? {} : { gate }),
    ...(dueAt === undefined ? {} : { dueAt }),
  }
}

function finite(at: At): At | undefined {
  return at === Number.POSITIVE_INFINITY ? undefined : at
}
