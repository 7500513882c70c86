import { stringifyWithInfinity } from '../../core/codec/infinite-json.js'
import type { Ms } from '../../core/time/time.js'
import type { LeaseStatus, Ledger, WorkerRecord } from '../../ports/ledger.js'
import type { Connection } from './connection.js'
import { isUnstorable, wholeMs } from './storable.js'

type Held = Parameters<Ledger['extend']>[0]

const EXTEND = 'select {schema}.extend_leases($1, $2, $3, $4, $5, $6, $7, $8)'

/** Renews leases, and with them the record of the worker that holds them. */
export async function extendLeases(
  connection: Connection,
  held: Held,
  leaseMs: Ms,
  me: WorkerRecord,
  maxProgressBytes: number,
): Promise<readonly LeaseStatus[]> {
  const { driver, sql } = await connection.ready()
  // One lease may be listed twice; the server updates a row once.
  const places = new Map<string, number>()
  const sent: Held[number][] = []
  const placeOf = held.map((one) => {
    const key = `${one.lease.id}\0${one.lease.token}`
    const known = places.get(key)
    if (known !== undefined) return known
    places.set(key, sent.length)
    sent.push(one)
    return sent.length - 1
  })
  const { id, ...record } = me
  // The engine has checked the size and reported it; here it only must not pile up.
  const progress = sent.map(({ progress: text }) =>
    text !== undefined && text.length <= maxProgressBytes && !isUnstorable(text) ? text : null,
  )
  const [row] = await driver.query<[string]>(
    sql('extend', EXTEND, [
      connection.now(),
      sent.map(({ lease }) => lease.id),
      sent.map(({ lease }) => lease.token),
      sent.map(({ running }) => running),
      progress,
      wholeMs(leaseMs),
      id,
      stringifyWithInfinity(record),
    ]),
  )
  const { held: known, unknown } = JSON.parse(row![0]) as ExtendReply
  const statuses = new Map([...(known ?? []), ...(unknown ?? [])].map(([n, status]) => [n - 1, status]))
  return placeOf.map((place) => statuses.get(place) ?? 'lost')
}

interface ExtendReply {
  readonly held?: readonly [place: number, status: LeaseStatus][] | null
  readonly unknown?: readonly [place: number, status: LeaseStatus][] | null
}
