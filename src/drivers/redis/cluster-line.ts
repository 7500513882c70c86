import type { RedisClientLike } from './client.js'

/** Where a node is. */
export interface NodeAddress {
  readonly host: string
  readonly port: number
}

/** A plain client of one node, whose address can be changed between two connections. */
export interface NodeClient extends RedisClientLike {
  readonly options: { host?: string; port?: number }
  cluster(what: 'SLOTS'): Promise<unknown>
}

/**
 * A line to listen on in a cluster: one plain connection to one node, because what is published on any of them is heard on all.
 * So a cut is noticed and the line can be asked, which a client of the whole cluster hides. When it is cut, the next node is taken.
 *
 * @param isLearning whether to ask for the nodes there are with each connection: those to begin with may leave
 */
export function clusterLine(
  seeds: readonly NodeAddress[],
  isLearning: boolean,
  pause: (times: number) => number,
  make: (first: NodeAddress, retryStrategy: (times: number) => number) => NodeClient,
): NodeClient {
  let known = seeds
  const client = make(seeds[0]!, (times) => {
    const { host, port } = client.options
    const at = known.findIndex((node) => node.host === host && node.port === port)
    Object.assign(client.options, known[(at + 1) % known.length])
    return pause(times)
  })
  if (isLearning)
    // Before anything is subscribed to: afterwards a connection may not ask.
    client.on('ready', () => {
      client.cluster('SLOTS').then(
        (slots) => {
          const found = nodesFrom(slots)
          const isNew = ({ host, port }: NodeAddress) => !found.some((node) => node.host === host && node.port === port)
          known = [...found, ...seeds.filter(isNew)]
        },
        () => undefined, // This user may not ask: the seed nodes remain.
      )
    })
  return client
}

/** The reply of CLUSTER SLOTS: for each range its first and last slot, then the nodes. */
function nodesFrom(slots: unknown): readonly NodeAddress[] {
  const found = new Map<string, NodeAddress>()
  for (const range of Array.isArray(slots) ? slots : [])
    for (const node of Array.isArray(range) ? range.slice(2) : []) {
      const [host, port] = Array.isArray(node) ? node : []
      if (typeof host === 'string' && host !== '' && typeof port === 'number')
        found.set(`${host}:${port}`, { host, port })
    }
  return [...found.values()]
}
