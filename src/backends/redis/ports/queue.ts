import { MillraceError } from '../../../core/error.js'
import { newToken } from '../../../core/ids.js'
import { numberOption } from '../../../core/options.js'
import { describeValue } from '../../../core/text/describe-value.js'
import { isWellFormed, toWellFormed } from '../../../core/text/well-formed.js'
import type { Ms } from '../../../core/time/time.js'
import type { FullQueue } from '../../../ports/full-ports.js'
import type { PulledWork, PushOptions } from '../../../ports/ports.js'
import { withHidden } from '../../shared/hidden.js'
import type { RedisContext } from '../context.js'
import { givenDuration } from '../time.js'

/** A pop reads at most this many lapsed and due messages. */
const STEP = 1_000
/** So many dead letters are kept of each queue. */
const MAX_DEAD = 10_000

/** A plain queue on Redis. */
export type RedisQueue = FullQueue

/** The plain port of one queue: its own bodies, separate from the items of the ledger until a claim takes them over. */
export function queuePort(context: RedisContext, queue: string, plain: () => Promise<void> | undefined): RedisQueue {
  const push = async (bodies: readonly { readonly body: string; readonly options?: PushOptions }[]): Promise<void> => {
    const words = bodies.flatMap(({ body, options = {} }) => {
      checkBody(body, context.maxItemBytes)
      const priority = numberOption('push.priority', options.priority, { default: 0 })
      const { dedupeKey } = options
      return [
        givenDuration('push.delay', options.delay),
        String(priority + 0),
        dedupeKey === undefined ? '' : `=${toWellFormed(dedupeKey)}`,
        body,
      ]
    })
    if (words.length > 0) await context.run('push', [queue, ...words])
  }
  const settle = async (verb: 'ack' | 'fail' | 'beat', ms: Ms | '', pulled: readonly PulledWork[]) => {
    const leases = pulled.map(({ handle }) => leaseOf(handle))
    const known = leases.flatMap((lease) => lease ?? [])
    if (known.length === 0) return leases.map(() => false)
    const held = (await context.run('settle-messages', [verb, ms, ...known])) as readonly number[]
    let next = 0
    return leases.map((lease) => lease !== undefined && held[next++] === 1)
  }
  const port = {
    push: (body: string, options?: PushOptions) => push([options === undefined ? { body } : { body, options }]),
    async pop(max: number, visibility: Ms): Promise<PulledWork[]> {
      await plain()
      const token = newToken()
      const most = Math.max(0, Math.floor(max))
      const lease = givenDuration('pop.visibility', visibility)
      const flat = (await context.run('pop', [queue, most, lease, token, STEP])) as readonly (string | number)[]
      const pulled: PulledWork[] = []
      for (let i = 0; i < flat.length; i += 3)
        pulled.push({ body: String(flat[i + 1]), handle: `${flat[i]}:${token}`, attempt: Number(flat[i + 2]) })
      return pulled
    },
    async heartbeat(pulled: PulledWork, visibility: Ms): Promise<boolean> {
      return (await settle('beat', givenDuration('heartbeat.visibility', visibility), [pulled]))[0] ?? false
    },
    async ack(pulled: PulledWork): Promise<void> {
      await settle('ack', '', [pulled])
    },
    async fail(pulled: PulledWork, delay?: Ms): Promise<void> {
      await settle('fail', givenDuration('fail.delay', delay), [pulled])
    },
    async deadLetter(body: string, error: string): Promise<void> {
      checkBody(body, context.maxItemBytes)
      await context.run('sink', [queue, MAX_DEAD, JSON.stringify({ body, error })])
    },
    size: async (): Promise<number> => Number(await context.run('facts', ['size', queue])),
  }
  return withHidden(port, {
    pushMany: push,
    async ackMany(pulled: readonly PulledWork[]): Promise<void> {
      await settle('ack', '', pulled)
    },
    heartbeatMany: (pulled: readonly PulledWork[], visibility: Ms) =>
      settle('beat', givenDuration('heartbeatMany.visibility', visibility), pulled),
  })
}

/** The two words of a handle; undefined for what cannot be one. */
function leaseOf(handle: unknown): readonly [string, string] | undefined {
  const found = typeof handle === 'string' ? /^(\d+):([\w-]+)$/.exec(handle) : null
  return found === null ? undefined : [found[1]!, found[2]!]
}

function checkBody(body: unknown, limit: number): void {
  if (typeof body !== 'string')
    throw new MillraceError(
      'BAD_BODY',
      `push(body): body must be a string, got ${describeValue(body)}. Encode it first.`,
    )
  if (!isWellFormed(body))
    throw new MillraceError('BAD_BODY', 'push(body): it holds half of a surrogate pair. Encode it, as JSON does.')
  const bytes = body.length * 3 <= limit ? 0 : Buffer.byteLength(body)
  if (bytes <= limit) return
  throw new MillraceError(
    'TOO_LARGE',
    `push(body): it takes ${bytes} bytes; the limit is ${limit}. Store it elsewhere and push a reference, or raise maxItemBytes.`,
    { facts: { bytes, limit } },
  )
}
