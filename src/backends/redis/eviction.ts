import { MillraceError } from '../../core/error.js'
import type { RedisClientLike } from '../../drivers/redis/index.js'

/** The server may throw away what it has accepted. */
export class EvictionWarning extends MillraceError {
  constructor(policy: string) {
    super(
      'EVICTION_POLICY',
      `The maxmemory-policy of this Redis is ${policy}: when memory is full it removes keys, and accepted work with them. ` +
        'Set it to noeviction; what does not fit is then refused with an error.',
      { facts: { policy } },
    )
  }
}

/** Checks once whether the server may evict. A server that does not answer is not asked again. */
export function evictionCheck(onError: (error: Error) => void): (client: RedisClientLike) => void {
  let isAsked = false
  return (client) => {
    if (isAsked) return
    isAsked = true
    client.info('memory').then(
      (info) => {
        const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
        if (policy !== undefined && policy !== 'noeviction') onError(new EvictionWarning(policy))
      },
      () => undefined,
    )
  }
}
