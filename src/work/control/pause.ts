import { MillraceError } from '../../core/error.js'
import { OptionTypeError, optionsObject } from '../../core/options.js'
import type { Queue } from '../../ports/ports.js'
import type { Settlement } from '../../ports/settlement.js'
import type { AnyWorkType } from '../define/work.js'

/** What can be paused: a queue, by its name or itself, or a work type, by its name or its builder. */
export type Pausable =
  | { readonly queue: string | Queue; readonly type?: never }
  | { readonly type: string | AnyWorkType; readonly queue?: never }

/** What to pause or resume, in the words of the ledger. */
export interface Paused {
  readonly what: 'queue' | 'type'
  readonly name: string
}

/** This backend cannot do what was asked. */
export class NotSupportedError extends MillraceError {
  constructor(what: string, capability: string) {
    super('NOT_SUPPORTED', `This backend cannot ${what}: it has no \`${capability}\`.`, { facts: { capability } })
  }
}

/** Reads what a caller wants paused. `queueName` knows the queues of this system. */
export function readPausable(owner: string, given: Pausable, queueName: (queue: Queue) => string | undefined): Paused {
  const { queue, type } = optionsObject(owner, given, ['queue', 'type'])
  if ((queue === undefined) === (type === undefined)) {
    throw new OptionTypeError(owner, 'either { queue } or { type }', given)
  }
  if (queue !== undefined) {
    const name = typeof queue === 'string' ? queue : queueName(queue)
    if (name === undefined || name === '') {
      throw new OptionTypeError(`${owner}.queue`, 'the name of a queue, or a queue that this system serves', queue)
    }
    return { what: 'queue', name }
  }
  const name: unknown = typeof type === 'string' ? type : type?.type
  if (typeof name !== 'string' || name === '') {
    throw new OptionTypeError(`${owner}.type`, 'the name of a work type, or its builder', type)
  }
  return { what: 'type', name }
}

/** What a pause or a resume writes. It has no guard: a repetition means the same. */
export function pauseOrResume(order: 'pause' | 'resume', { what, name }: Paused, who: string, why: string): Settlement {
  return {
    guard: { by: 'none' },
    effects: [
      { do: order, what, name },
      { do: 'log', who, why, what: `${order} ${what} ${name}` },
    ],
  }
}
