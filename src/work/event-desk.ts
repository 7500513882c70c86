import { tell } from '../core/tell.js'
import type { WorkEvent } from './events.js'
import type { Registry } from './registry.js'

/** What is owed: that the item was queued, or what came of the run under this fence. */
export type Owed = 'queued' | number

/** An event that is told in its turn, or the place of one that is owed. */
interface Entry {
  readonly owed?: Owed
  event?: WorkEvent
  /** What it will be, where that is known before it comes. */
  readonly early?: WorkEvent | undefined
  isOpen: boolean
}

/**
 * Tells events in the order in which things happened to an item. What is durable may be seen by another run of this process
 * before the commit that made it so has answered: `started` would then be heard before `queued`, or before the end of the run
 * before. So each event that is owed has its place, and the later events of the item wait for it.
 */
export class EventDesk {
  readonly #registry: Registry
  readonly #onEvent: ((event: WorkEvent) => unknown) | undefined
  readonly #waiting = new Map<string, Entry[]>()
  /** Items whose `queued` was told before its commit had answered: a run of them had ended. */
  readonly #toldEarly = new Set<string>()

  constructor(onEvent: ((event: WorkEvent) => unknown) | undefined, registry: Registry) {
    this.#onEvent = onEvent
    this.#registry = registry
  }

  get hasListeners(): boolean {
    return this.#onEvent !== undefined || this.#registry.hasListeners
  }

  /** An event of this item is on its way: this one, where that is known. */
  owe(id: string, owed: Owed, early?: WorkEvent): void {
    if (!this.hasListeners) return
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) this.#waiting.set(id, [{ owed, isOpen: true, early }])
    else if (!waiting.some((entry) => entry.isOpen && entry.owed === owed)) waiting.push({ owed, isOpen: true, early })
  }

  /** It has come, or will never come: what waited for it follows. */
  pay(id: string, owed: Owed, event?: WorkEvent): void {
    if (owed === 'queued' && this.#toldEarly.delete(id)) return
    const waiting = this.#waiting.get(id)
    const entry = waiting?.find((one) => one.isOpen && one.owed === owed)
    if (waiting === undefined || entry === undefined) {
      if (event !== undefined) this.emit(event)
      return
    }
    entry.isOpen = false
    if (event !== undefined) entry.event = event
    // What has run was queued, though nobody may ever say so: that is not waited for any longer.
    if (owed !== 'queued') for (const one of waiting) if (one.owed === 'queued' && one.isOpen) this.#close(id, one)
    while (waiting[0]?.isOpen === false) {
      const told = waiting.shift()!.event
      if (told !== undefined) this.say(told)
    }
    if (waiting.length === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id)
  }

  #close(id: string, entry: Entry): void {
    entry.isOpen = false
    if (entry.early === undefined) return
    entry.event = entry.early
    this.#toldEarly.add(id)
  }

  emit(event: WorkEvent): void {
    const waiting = event.kind === 'group-done' ? undefined : this.#waiting.get(event.id)
    if (waiting === undefined) this.say(event)
    else waiting.push({ event, isOpen: false })
  }

  /** Tells it now, whatever else is owed. */
  say(event: WorkEvent): void {
    const onEvent = this.#onEvent
    if (onEvent !== undefined) tell(() => onEvent(event))
    const own = event.kind === 'group-done' ? undefined : this.#registry.find(event.type)?.options.onEvent
    if (own !== undefined) tell(() => own(event))
  }
}
