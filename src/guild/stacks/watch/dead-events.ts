import { integerOption, optionsObject, stringOption } from '../../../core/options.js'
import { errorText } from '../../../core/text/error-text.js'
import type { Clock } from '../../../core/time/clock.js'
import type { Book } from '../api.js'
import type { OutboxEntry, StacksBackend } from '../backend.js'
import { type BookRef, indexesOf } from '../documents/names.js'
import type { Doc } from '../documents/value.js'
import { DeadEventNotFoundError, NoHandlerError, StacksValueError } from '../errors.js'
import type { ChangeEvent } from './events.js'
import type { DurableWatcher } from './watchers.js'

/** Where dead events are kept: an ordinary book, so that whatever reads the store can read them. */
export const DEAD_EVENTS: BookRef = { ownerId: 'stacks', book: 'dead-events' }

/** An event that a durable watcher could not handle, with the reason. */
export interface DeadEvent {
  /** `watcher/place`. */
  readonly id: string
  /** The name of the watcher. */
  readonly watcher: string
  /** Absent if it is larger than a document may be. */
  readonly event?: ChangeEvent<Doc>
  readonly hops: number
  /** What the handler threw last. */
  readonly error: string
  /** How often it was delivered. */
  readonly tries: number
  /** ISO 8601. */
  readonly deadAt: string
}

/** Which dead events. */
export interface DeadEventListing {
  /** Those of one durable watcher. */
  readonly watcher?: string
  /** Default: 100. */
  readonly limit?: number
}

export interface DeadEventsOptions {
  readonly backend: StacksBackend
  readonly clock: Clock
  readonly book: () => Book<DeadEvent>
  readonly handlerOf: (watcher: string) => DurableWatcher | undefined
}

/** Events that durable watchers could not handle: kept until they are delivered again or deleted. */
export class DeadEvents {
  readonly #options: DeadEventsOptions

  constructor(options: DeadEventsOptions) {
    this.#options = options
  }

  async add(watcher: DurableWatcher, { seq, hops, event }: OutboxEntry, error: unknown, tries: number): Promise<void> {
    const { backend, clock, book } = this.#options
    // Most stores never need the book, so it is made with the first event.
    await backend.ensureBook(DEAD_EVENTS, indexesOf({ indexes: ['watcher'] }, DEAD_EVENTS))
    const dead: DeadEvent = {
      // In commit order.
      id: `${watcher.name}/${String(seq).padStart(16, '0')}`,
      watcher: watcher.name,
      event,
      hops,
      error: errorText(error),
      tries,
      deadAt: new Date(clock.now()).toISOString(),
    }
    try {
      await book().put(dead)
    } catch (refusal) {
      // An update has a document twice, and may be larger than one is allowed to be.
      if (!(refusal instanceof StacksValueError)) throw refusal
      const { event: _, ...rest } = dead
      await book().put(rest)
    }
  }

  list(given?: DeadEventListing): Promise<DeadEvent[]> {
    const { watcher, limit } = optionsObject('deadEvents()', given, ['watcher', 'limit'])
    const where =
      watcher === undefined ? [] : [['watcher', '=', stringOption('deadEvents().watcher', watcher)] as const]
    const most = integerOption('deadEvents().limit', limit, { min: 1, default: 100 })
    return this.#options.book().find({ where, orderBy: ['id', 'asc'], limit: most })
  }

  /** How many each watcher has. */
  async counts(watchers: readonly string[]): Promise<number[]> {
    const book = this.#options.book()
    return Promise.all(watchers.map((name) => book.count([['watcher', '=', name]])))
  }

  /** Calls the handler of this process with the event, and forgets it once that has handled it. */
  async redeliver(
    id: string,
    handle: (watcher: DurableWatcher, event: ChangeEvent<Doc>) => Promise<void>,
  ): Promise<void> {
    const { book, handlerOf } = this.#options
    const dead = await book().get(stringOption('redeliver(id)', id))
    if (dead?.event === undefined) throw new DeadEventNotFoundError(id, dead !== null)
    const watcher = handlerOf(dead.watcher)
    if (watcher === undefined) throw new NoHandlerError(dead.watcher)
    await handle(watcher, dead.event)
    await book().delete(id)
  }
}
