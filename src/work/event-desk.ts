import { tell } from '../core/tell.js'
import type { WorkEvent } from './events.js'
import type { Registry } from './registry.js'

/**
 * Tells events in the order in which things happened to an item. What is durable may be seen by another run of this process
 * before the commit that made it so has answered: `started` would then be heard before `queued`. So while an event is owed
 * for an item, its later events wait.
 */
export class EventDesk {
  readonly #registry: Registry
  readonly #onEvent: ((event: WorkEvent) => unknown) | undefined
  readonly #owed = new Map<string, WorkEvent[]>()

  constructor(onEvent: ((event: WorkEvent) => unknown) | undefined, registry: Registry) {
    this.#onEvent = onEvent
    this.#registry = registry
  }

  get hasListeners(): boolean {
    return this.#onEvent !== undefined || this.#registry.hasListeners
  }

  /** An event of this item is on its way. */
  owe(id: string): void {
    if (this.hasListeners && !this.#owed.has(id)) this.#owed.set(id, [])
  }

  /** It has come, or will never come: what waited for it follows. */
  pay(id: string, event?: WorkEvent): void {
    const waiting = this.#owed.get(id)
    this.#owed.delete(id)
    if (event !== undefined) this.say(event)
    for (const later of waiting ?? []) this.say(later)
  }

  emit(event: WorkEvent): void {
    const waiting = event.kind === 'group-done' ? undefined : this.#owed.get(event.id)
    if (waiting === undefined) this.say(event)
    else waiting.push(event)
  }

  /** Tells it now, whatever else is owed. */
  say(event: WorkEvent): void {
    const onEvent = this.#onEvent
    if (onEvent !== undefined) tell(() => onEvent(event))
    const own = event.kind === 'group-done' ? undefined : this.#registry.find(event.type)?.options.onEvent
    if (own !== undefined) tell(() => own(event))
  }
}
