import { MillraceError, type WithCause } from '../../core/error.js'
import { PoisonError } from '../../core/failure/failure-errors.js'
import type { At } from '../../core/time/time.js'
import { Headers } from '../message/headers.js'
import type { Codec } from './codec-registry.js'
import { jsonMembers, scalarText } from './json-members.js'

/** The content type under which {@link debeziumCodec} is registered. */
export const DEBEZIUM_CONTENT_TYPE = 'application/vnd.debezium.cdc+json'

/** What happened to a row. `read`: it was there when the snapshot was taken. `tombstone`: an empty payload after a delete. */
export type ChangeOperation = 'create' | 'read' | 'update' | 'delete' | 'truncate' | 'message' | 'tombstone'

/** Where a change comes from. What is not known is `''`. */
export interface ChangeSource {
  readonly connector: string
  readonly database: string
  readonly schema: string
  readonly table: string
  /** Part of a snapshot rather than of the log. */
  readonly isSnapshot: boolean
  /** The position in the log, as text: it may have more digits than a number can hold. */
  readonly lsn: string
  readonly txId: string
  /** The whole block as JSON text, for what a connector adds; `''` when there is none. */
  readonly json: string
}

/** A change to a row, as Debezium publishes it. The images are JSON text: read them with {@link imageOf}. */
export interface DebeziumChange {
  readonly operation: ChangeOperation
  readonly before: string | undefined
  readonly after: string | undefined
  /** Of operation `message`: its block, as JSON text. */
  readonly message: string | undefined
  readonly source: ChangeSource
  /** When the connector saw it. */
  readonly tsMs: At | undefined
  /** What it is about, as headers to pass on: `cdc-op`, `cdc-connector`, … */
  readonly headers: Headers
}

/** A payload that is no change event. */
export class BadChangeEventError extends MillraceError {
  constructor(what: string, options?: WithCause) {
    super('BAD_CHANGE_EVENT', `Not a Debezium change event: ${what}`, options)
  }
}

/** A change event without the image that was asked for. Poison: the same event will never have it. */
export class MissingImageError extends PoisonError {
  readonly image: 'before' | 'after'
  constructor(event: DebeziumChange, image: 'before' | 'after') {
    super(
      `A change event (${event.operation} on "${event.source.table}") has no "${image}" image. ` +
        'Whether the connector records it depends on the database (in PostgreSQL: REPLICA IDENTITY FULL).',
    )
    this.image = image
  }
}

/**
 * Reads change events of Debezium, with or without the `{ schema, payload }` wrapper of Kafka Connect. An empty payload is a
 * tombstone, not an error.
 *
 * @example
 * ```ts
 * const registry = new CodecRegistry().register(DEBEZIUM_CONTENT_TYPE, debeziumCodec())
 * ```
 */
export function debeziumCodec(): Codec<DebeziumChange> {
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  return {
    decode(data) {
      if (data.length === 0) return changeEvent('tombstone', new Map())
      const envelope = unwrapped(utf8.decode(data))
      return envelope === undefined ? changeEvent('tombstone', new Map()) : changeEvent(operationOf(envelope), envelope)
    },
  }
}

/**
 * The row before or after a change, read by `parse`. Throws {@link MissingImageError} where the event has none.
 *
 * @example
 * ```ts
 * const order = imageOf(event, 'after', (row) => Order.parse(row))
 * ```
 */
export function imageOf<T = unknown>(
  event: DebeziumChange,
  image: 'before' | 'after',
  parse: (row: unknown) => T = (row) => row as T,
): T {
  const json = event[image]
  if (json === undefined) throw new MissingImageError(event, image)
  return parse(JSON.parse(json))
}

type Members = ReadonlyMap<string, string>

/** The envelope itself; `undefined` when it is null, which is how a converter writes a tombstone. */
function unwrapped(text: string): Members | undefined {
  if (text.trim() === 'null') return undefined
  const outer = jsonMembers(text)
  const payload = outer.get('payload')
  if (payload === undefined || outer.has('op')) return outer
  if (payload === 'null') return undefined
  if (!payload.startsWith('{')) throw new BadChangeEventError('its "payload" is no object')
  return jsonMembers(payload)
}

const OPERATIONS: Readonly<Record<string, ChangeOperation>> = {
  c: 'create',
  r: 'read',
  u: 'update',
  d: 'delete',
  t: 'truncate',
  m: 'message',
}

function operationOf(envelope: Members): ChangeOperation {
  const op = scalarText(envelope.get('op'))
  if (op === '') throw new BadChangeEventError('it has no "op"')
  const operation = Object.hasOwn(OPERATIONS, op) ? OPERATIONS[op] : undefined
  if (operation === undefined) throw new BadChangeEventError(`its "op" is ${JSON.stringify(op.slice(0, 40))}`)
  return operation
}

function changeEvent(operation: ChangeOperation, envelope: Members): DebeziumChange {
  const source = sourceOf(envelope.get('source'))
  const tsMs = Number(envelope.get('ts_ms') ?? Number.NaN)
  return Object.freeze({
    operation,
    before: present(envelope.get('before')),
    after: present(envelope.get('after')),
    message: present(envelope.get('message')),
    source,
    tsMs: envelope.get('ts_ms') === 'null' || !Number.isFinite(tsMs) ? undefined : tsMs,
    headers: headersOf(operation, source),
  })
}

function sourceOf(raw: string | undefined): ChangeSource {
  const json = present(raw) ?? ''
  if (json !== '' && !json.startsWith('{')) throw new BadChangeEventError('its "source" is no object')
  const block: Members = json === '' ? new Map() : jsonMembers(json)
  const text = (name: string) => scalarText(block.get(name))
  return Object.freeze({
    connector: text('connector'),
    database: text('db'),
    schema: text('schema'),
    table: text('table'),
    isSnapshot: isTruthy(block.get('snapshot')),
    lsn: text('lsn'),
    txId: text('txId'),
    json,
  })
}

/** Connectors write `true`, `"true"`, `"first"`, `"last"`, `"incremental"`, … and `false` or `"false"` for "no". */
function isTruthy(raw: string | undefined): boolean {
  if (raw?.startsWith('"') === true) return !['', 'false'].includes(scalarText(raw))
  return raw === 'true'
}

function headersOf(operation: ChangeOperation, source: ChangeSource): Headers {
  const pairs: [string, string][] = [
    ['cdc-op', operation],
    ['cdc-connector', source.connector],
    ['cdc-database', source.database],
    ['cdc-schema', source.schema],
    ['cdc-table', source.table],
    ['cdc-snapshot', source.isSnapshot ? 'true' : ''],
    ['cdc-lsn', source.lsn],
    ['cdc-txid', source.txId],
  ]
  return new Headers(pairs.filter(([, value]) => value !== ''))
}

function present(raw: string | undefined): string | undefined {
  return raw === 'null' ? undefined : raw
}
