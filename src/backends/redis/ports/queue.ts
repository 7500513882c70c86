import { MillraceError } from '../../../core/error.js'
import { newToken } from '../../../core/ids.js'
import { numberOption } from '../../../core/options.js'
import { describeValue } from '../../../core/text/describe-value.js'
import { isWellFormed, toWellFormed } from '../../../core/text/well-formed.js'
import type { Ms } from '../../../core/time/time.js'
import type { FullQueue } from '../../../ports/full-ports.js'
import type { DeadLetter, DeadLetterSink, PulledWork, PushOptions } from '../../../ports/ports.js'
import { NotAnEnvelopeError } from '../../../ports/pushed-natively.js'
import { withHidden } from '../../shared/hidden.js'
import { PulledMessage } from '../../shared/pulled-message.js'
import type { RedisContext } from '../context.js'
import { givenDuration } from '../time.js'

/** A pop reads at most this many lapsed and due messages. */
const STEP = 1_000
/** So many dead letters are kept of each queue. */
const MAX_DEAD = 10_000

/** A plain queue on Redis. */
export type RedisQueue = FullQueue

type Verb = 'ack' | 'fail' | 'beat' | 'start'

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
        newToken(),
        body,
      ]
    })
    if (words.length === 0) return
    const refused = Number(await context.run('push', [queue, ...words]))
    if (refused > 0) throw new NotAnEnvelopeError(bodies[refused - 1]!.body)
  }
  const settle = async (verb: Verb, ms: Ms | '', pulled: readonly PulledWork[], note = '') => {
    const leases = pulled.map(({ handle }) => leaseOf(handle))
    const known = leases.flatMap((lease) => lease ?? [])
    if (known.length === 0) return leases.map(() => false)
    const held = (await context.run('settle-messages', [verb, ms, note, ...known])) as readonly number[]
    let next = 0
    return leases.map((lease) => lease !== undefined && held[next++] === 1)
  }
  const act = async (verb: 'redrive' | 'discard', letters: readonly DeadLetter[]): Promise<number> => {
    if (letters.length === 0) return 0
    const words = letters.flatMap(({ cursor, id }) => [cursor, id])
    const count = Number(await context.run('sink', [queue, verb, ...words]))
    if (count < 0) throw new NotAnEnvelopeError(letters[-count - 1]!.body)
    return count
  }
  const deadLetters: DeadLetterSink = {
    async add({ id = newToken(), body, error, detail }) {
      checkBody(body, context.maxItemBytes)
      await context.run('sink', [queue, 'add', MAX_DEAD, toWellFormed(id), JSON.stringify({ body, error, detail })])
    },
    async list({ after = '-1', limit }) {
      const flat = (await context.run('sink', [queue, 'list', after, limit])) as readonly string[]
      return Array.from({ length: flat.length / 3 }, (_, i) => letterFrom(flat.slice(3 * i, 3 * i + 3)))
    },
    count: async () => Number(await context.run('sink', [queue, 'count'])),
    redrive: (letters) => act('redrive', letters),
    discard: (letters) => act('discard', letters),
  }
  const port = {
    push: (body: string, options?: PushOptions) => push([options === undefined ? { body } : { body, options }]),
    async pop(max: number, visibility: Ms): Promise<PulledWork[]> {
      await plain()
      const token = newToken()
      const most = Math.max(0, Math.floor(max))
      const lease = givenDuration('pop.visibility', visibility)
      const flat = (await context.run('pop', [queue, most, lease, token, STEP])) as readonly (string | number | null)[]
      const pulled: PulledWork[] = []
      for (let i = 0; i < flat.length; i += 6) {
        const [no, body, attempt, id, starts, note] = flat.slice(i, i + 6)
        pulled.push(
          new PulledMessage(
            { body: String(body), handle: `${no}:${token}`, attempt: Number(attempt) },
            { id: String(id), starts: Number(starts), note: typeof note === 'string' ? note : undefined },
          ),
        )
      }
      return pulled
    },
    async heartbeat(pulled: PulledWork, visibility: Ms): Promise<boolean> {
      return (await settle('beat', givenDuration('heartbeat.visibility', visibility), [pulled]))[0] ?? false
    },
    async ack(pulled: PulledWork): Promise<void> {
      await settle('ack', '', [pulled])
    },
    async fail(pulled: PulledWork, delay?: Ms, note?: string): Promise<void> {
      const kept = note === undefined ? '' : `=${toWellFormed(note)}`
      await settle('fail', givenDuration('fail.delay', delay), [pulled], kept)
    },
    deadLetter: async (body: string, error: string): Promise<void> => deadLetters.add({ body, error }),
    size: async (): Promise<number> => Number(await context.run('facts', ['size', queue])),
  }
  return withHidden(port, {
    pushMany: push,
    async ackMany(pulled: readonly PulledWork[]): Promise<void> {
      await settle('ack', '', pulled)
    },
    heartbeatMany: (pulled: readonly PulledWork[], visibility: Ms) =>
      settle('beat', givenDuration('heartbeatMany.visibility', visibility), pulled),
    start: (pulled: readonly PulledWork[]) => settle('start', '', pulled),
    deadLetters,
  })
}

/** A row of sink.lua. */
function letterFrom([cursor, id, text]: readonly string[]): DeadLetter {
  const cut = text!.indexOf('\n')
  // Only this file and claim.lua write them.
  const kept = JSON.parse(text!.slice(cut + 1)) as Pick<DeadLetter, 'body' | 'error' | 'detail'>
  return { cursor: cursor!, id: id!, at: Number(text!.slice(0, cut)), ...kept }
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
