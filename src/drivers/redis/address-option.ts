import { OptionError, OptionTypeError } from '../../core/options.js'
import type { RedisAddress } from './client.js'

/** The options that name a server. */
export const REDIS_ADDRESSES = [
  'url',
  'options',
  'cluster',
  'client',
] as const satisfies readonly (keyof RedisAddress)[]

/** Reads where the server is: exactly one way to say so, checked before anything is connected to. */
export function redisAddressOption(owner: string, given: RedisAddress): RedisAddress {
  const { url, options, cluster, client } = given
  const named = REDIS_ADDRESSES.filter((name) => given[name] !== undefined)
  if (client !== undefined) {
    if (named.length > 1) throw new OptionError(`${owner}.client`, 'given without url, options and cluster', named)
    const isClient = typeof client === 'object' && client !== null && typeof client.evalsha === 'function'
    if (!isClient) throw new OptionTypeError(`${owner}.client`, 'a client of ioredis', client)
    return { client }
  }
  if (cluster !== undefined) {
    if (named.length > 1) throw new OptionError(`${owner}.cluster`, 'given without url, options and client', named)
    if (!Array.isArray(cluster.nodes) || cluster.nodes.length === 0)
      throw new OptionTypeError(`${owner}.cluster.nodes`, 'a list of nodes', cluster.nodes)
    return { cluster }
  }
  if (url === undefined && options === undefined)
    throw new OptionError(`${owner}.url`, 'an address (or give options, cluster or a client)', undefined)
  // Not left to the driver: its error would quote the address, password included.
  if (url !== undefined && !(/^rediss?:\/\/./.test(url) && URL.canParse(url)))
    throw new OptionTypeError(`${owner}.url`, "'redis://host:port' or 'rediss://host:port'", url)
  return { ...(url === undefined ? {} : { url }), ...(options === undefined ? {} : { options }) }
}
