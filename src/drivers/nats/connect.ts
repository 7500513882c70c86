import { MillraceError } from '../../core/error.js'
import { OptionError, OptionTypeError } from '../../core/options.js'
import type { NatsAddress, NatsConnectionLike, NatsHeadersLike } from './client.js'

/** The options that name a server. */
export const NATS_ADDRESSES = ['servers', 'options', 'connection'] as const satisfies readonly (keyof NatsAddress)[]

/** Reads where the server is: exactly one way to say so, checked before anything is connected to. */
export function natsAddressOption(owner: string, given: NatsAddress): NatsAddress {
  const { servers, options, connection } = given
  if (connection !== undefined) {
    if (servers !== undefined || options !== undefined)
      throw new OptionError(`${owner}.connection`, 'given without servers and options', servers ?? options)
    if (typeof connection?.request !== 'function' || typeof connection.subscribe !== 'function')
      throw new OptionTypeError(`${owner}.connection`, 'a connection of @nats-io/transport-node', connection)
    return { connection }
  }
  if (servers === undefined && options === undefined)
    throw new OptionError(`${owner}.servers`, 'an address (or give options or a connection)', undefined)
  return { ...(servers === undefined ? {} : { servers }), ...(options === undefined ? {} : { options }) }
}

/** The one place that knows the driver. It is loaded when the first connection is made. */
async function loadDriver() {
  try {
    return await import('@nats-io/transport-node')
  } catch (error) {
    throw new MillraceError(
      'DRIVER_MISSING',
      'NATS needs the package @nats-io/transport-node, which could not be loaded. Install it: npm install @nats-io/transport-node',
      { cause: error },
    )
  }
}

/** The connection that was given, or a new one, which goes on connecting for as long as it is wanted. */
export async function connectNats({ servers, options, connection }: NatsAddress): Promise<NatsConnectionLike> {
  if (connection !== undefined) return connection
  const { connect } = await loadDriver()
  const at = servers === undefined ? {} : { servers: typeof servers === 'string' ? servers : [...servers] }
  const behaviour = { maxReconnectAttempts: -1, reconnectTimeWait: 200, ignoreAuthErrorAbort: true }
  return (await connect({ ...behaviour, ...options, ...at })) as unknown as NatsConnectionLike
}

/** Empty headers, to be filled. */
export async function natsHeaders(): Promise<NatsHeadersLike> {
  const { headers } = await loadDriver()
  return headers() as unknown as NatsHeadersLike
}
