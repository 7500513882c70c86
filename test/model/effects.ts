import type { At, Ms } from '../../src/core/time/time.js'
import { unreachable } from '../../src/core/unreachable.js'
import { nextTry, redrivenEnvelope } from '../../src/ports/envelope.js'
import type { Effect } from '../../src/ports/settlement.js'
import type { Book } from './book.js'
import { Gate } from './gate.js'
import { newRow, type Row } from './row.js'

type Of<Word extends Effect['do']> = Extract<Effect, { readonly do: Word }>

/** What each word of a settlement does. */
export function applyEffect(book: Book, effect: Effect): void {
  const now = book.now()
  switch (effect.do) {
    case 'enqueue':
      push(book, effect)
      return
    case 'recordAttempt': {
      const row = book.rows.get(effect.id)
      if (row === undefined) return
      row.attempts.push(effect.was)
      row.parkedAs = undefined
      return
    }
    case 'retry': {
      const row = giveBack(book, effect.id, now + effect.delayMs)
      if (row === undefined) return
      row.envelope = nextTry(row.envelope, effect.attempt, row.dueAt)
      row.deliveries = 0
      return
    }
    case 'release':
      giveBack(book, effect.id, effect.delayMs === undefined ? undefined : now + effect.delayMs, effect.hold)
      return
    case 'complete': {
      const { id, ending, result, keepMs } = effect
      end(book, id, { status: 'completed', ending, result }, keepMs)
      return
    }
    case 'deadLetter': {
      const { id, ending, error, keepMs, fingerprint } = effect
      const parkedAs = fingerprint ?? book.rows.get(id)?.parkedAs
      end(book, id, { status: 'dead', ending, error, class: effect.class, parkedAs }, keepMs)
      return
    }
    case 'redrive':
      reopen(book, effect.id, effect.delayMs)
      return
    case 'delete':
      book.rows.delete(effect.id)
      return
    case 'joinGroup':
      book.group(effect.groupId).open += effect.count
      return
    case 'leaveGroup':
      book.group(effect.groupId).open -= effect.count
      return
    case 'setGroupValue': {
      const group = book.group(effect.groupId)
      if (group.final) return
      group.value = effect.value
      group.final = effect.final
      group.version += 1
      return
    }
    case 'openGate':
      openGate(book, effect)
      return
    case 'notifyGate':
      book.gates.get(effect.key)?.tell(effect.member, effect.completed)
      return
    case 'notify':
      book.tell(effect.inbox, { itemIds: effect.ids })
      return
    case 'schedule':
      book.schedules.set(effect.name, { spec: effect.spec, nextAt: effect.nextAt })
      return
    case 'requestCancel': {
      const row = book.rows.get(effect.id)
      if (row?.status === 'running') row.cancelled = effect.reason
      return
    }
    case 'pause':
      book.paused.add(`${effect.what} ${effect.name}`)
      return
    case 'resume':
      resume(book, effect.what, effect.name)
      return
    case 'log':
      book.log.push({ who: effect.who, why: effect.why, what: effect.what, at: now })
      return
    default:
      unreachable(effect)
  }
}

function push(book: Book, { item, queue, delayMs, hold, leasedTo }: Of<'enqueue'>): void {
  if (book.rows.has(item.id)) {
    book.group(item.groupId).open -= 1
    return
  }
  const now = book.now()
  book.arrivals += 1
  const row = newRow(item, queue, book.arrivals, now + delayMs, hold)
  book.rows.set(item.id, row)
  if (item.waiter !== undefined) book.group(item.groupId).watchers.add(item.waiter)
  if (leasedTo === undefined) {
    book.wake(row)
    return
  }
  const { worker, token, leaseMs } = leasedTo
  row.status = 'running'
  row.fence = 1
  row.deliveries = 1
  row.runAt = now
  row.lease = { token, worker, until: now + leaseMs, running: false }
}

/** Pending again. Without a new due time it keeps its place. */
function giveBack(book: Book, id: string, dueAt: At | undefined, hold?: Row['hold']): Row | undefined {
  const row = book.rows.get(id)
  if (row === undefined) return undefined
  row.status = 'pending'
  row.lease = undefined
  row.runAt = undefined
  row.hold = hold
  row.dueAt = dueAt ?? row.dueAt
  book.wake(row)
  return row
}

function end(
  book: Book,
  id: string,
  how: Pick<Row, 'status' | 'ending'> & Partial<Pick<Row, 'result' | 'error' | 'class' | 'parkedAs'>>,
  keepMs: Ms,
): void {
  const row = book.rows.get(id)
  if (row === undefined) return
  const now = book.now()
  Object.assign(row, how, { lease: undefined, hold: undefined, endAt: now, goneAt: now + keepMs })
  const { waiter } = row.envelope
  for (const to of new Set([...row.watchers, ...(waiter === undefined ? [] : [waiter])]))
    book.tell(to, { itemIds: [id] })
  row.watchers.clear()
  for (const gate of book.gates.values()) gate.tell(id, row.status === 'completed')
}

/** As if it had arrived now, for the first time; only its history, what it failed of, its fence and who settled it last go on. */
function reopen(book: Book, id: string, delayMs: Ms): void {
  const row = book.rows.get(id)
  if (row === undefined) return
  const dueAt = book.now() + delayMs
  book.arrivals += 1
  const { queue, fence, attempts, settledBy, parkedAs } = row
  const again = newRow(redrivenEnvelope(row.envelope, book.now(), dueAt), queue, book.arrivals, dueAt)
  Object.assign(row, again, { fence, attempts, settledBy, parkedAs })
  book.wake(row)
}

function openGate(book: Book, effect: Of<'openGate'>): void {
  if (book.gates.has(effect.key)) return
  const gate = new Gate(effect)
  book.gates.set(effect.key, gate)
  for (const member of effect.members) {
    const status = book.rows.get(member)?.status
    if (status === 'completed' || status === 'dead') gate.tell(member, status === 'completed')
  }
}

/** Held items whose gate has decided become ready, once. */
export function freeGates(book: Book): void {
  for (const [key, gate] of book.gates) {
    const met = gate.verdict()
    const row = book.rows.get(gate.holds)
    if (met === undefined || gate.isFreed || row === undefined) continue
    gate.isFreed = true
    if (row.status !== 'pending' || row.hold?.by !== 'gate' || row.hold.key !== key) continue
    row.hold = undefined
    row.dueAt = book.now()
    row.gate = { met }
    book.wake(row)
  }
}

function resume(book: Book, what: 'queue' | 'type', name: string): void {
  if (!book.paused.delete(`${what} ${name}`)) return
  for (const row of book.rows.values()) {
    const isOne = (what === 'queue' ? row.queue : row.envelope.type) === name
    if (isOne && row.status === 'pending' && row.dueAt <= book.now() && !book.isPaused(row)) book.wake(row)
  }
}
