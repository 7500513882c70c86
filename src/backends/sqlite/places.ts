import { ACTIVE, WAITING } from '../shared/state-codes.js'
import type { Statements } from './sql.js'

/** What a statement takes a list of numbers as. */
export const listOf = (values: readonly unknown[]): string => JSON.stringify(values)

/** The column `state`: null for what has a row in `ready` or in `held`. */
export const storedState = (state: number): number | null => (state === WAITING || state === ACTIVE ? null : state)

/** Leases items of one queue; their tokens begin with `token`. Returns the number of the lease, which is their fence. */
export function holdItems(
  sql: Statements,
  seqs: readonly number[],
  lease: { readonly token: string; readonly queue: string; readonly until: number; readonly worker: string },
  now: number,
): number {
  const { token, queue, until, worker } = lease
  const [no] = sql.addLease.get(token, queue, until, worker, now, seqs.length)!
  sql.hold.run(no, until, listOf(seqs))
  return no
}

/** These items are no longer held by this lease, which goes with the last of its items. */
export function closeLease(sql: Statements, no: number, count: number): void {
  const open = sql.closeLease.get(count, no)?.[0]
  if (open !== undefined && open <= 0) sql.dropLease.run(no)
}

/** Takes an open item out of its place, before its row is changed: what is waiting is found by that row. */
export function leavePlace(sql: Statements, seq: number, state: number): void {
  if (state === WAITING) sql.dropReady.run(seq)
  else if (state === ACTIVE) {
    const lease = sql.dropHeld.get(seq)?.[0]
    if (lease !== undefined) closeLease(sql, lease, 1)
  }
}

/** Makes items ready that wait for something: their holds and due times are over. */
export function makeReady(sql: Statements, seqs: readonly number[]): void {
  const list = listOf(seqs)
  sql.free.run(list)
  sql.addReady.run(list)
}
