import { callObserver } from '../../core/call-observer.js'
import type { ErrorDetail } from '../../core/failure/error-detail.js'
import type { FailureClass } from '../../core/failure/failure.js'
import type { Registry } from '../define/registry.js'

interface OfItem {
  readonly id: string
  readonly type: string
  readonly groupId: string
  readonly attempt: number
  readonly at: number
}

/** What happens to items, reported once it is durable. Per item in this order; `group-done` comes last. */
export type WorkEvent =
  | (OfItem & { readonly kind: 'queued'; readonly startAt: number })
  | (OfItem & { readonly kind: 'started' })
  | (OfItem & { readonly kind: 'succeeded'; readonly result: unknown })
  | (OfItem & {
      readonly kind: 'failed'
      readonly error: string
      /** The error with its stack and its causes, limited in size. */
      readonly detail?: ErrorDetail
      readonly willRetry: boolean
      readonly class: FailureClass
      readonly rule: string
    })
  | (OfItem & { readonly kind: 'deferred'; readonly runAt: number })
  | (OfItem & { readonly kind: 'expired'; readonly deadline: number })
  | (OfItem & { readonly kind: 'cancelled'; readonly reason: string })
  | { readonly kind: 'group-done'; readonly groupId: string; readonly result: unknown; readonly at: number }

/** The event that is expected: that the item was queued, or the outcome of the run with this fence. */
export type Expected = 'queued' | number

/** An event that waits for its turn, or the place of one that is expected. */
interface Entry {
  readonly expected?: Expected
  event?: WorkEvent
  /** What it will be, where that is known before it comes. */
  readonly early?: WorkEvent | undefined
  isOpen: boolean
}

/**
 * Emits events in the order in which things happened to an item. Another run of this process may see what a commit wrote before
 * the commit is answered: `started` would then come before `queued`, or before the end of the previous run. So each event that is
 * expected has its place, and later events of the item wait for it.
 */
export class OrderedEvents {
  readonly #registry: Registry
  readonly #onEvent: ((event: WorkEvent) => unknown) | undefined
  readonly #waiting = new Map<string, Entry[]>()
  /** Items whose `queued` was emitted before its commit was answered, because a run of them had ended. */
  readonly #emittedEarly = new Set<string>()

  constructor(onEvent: ((event: WorkEvent) => unknown) | undefined, registry: Registry) {
    this.#onEvent = onEvent
    this.#registry = registry
  }

  get hasListeners(): boolean {
    return this.#onEvent !== undefined || this.#registry.hasListeners
  }

  /** An event of this item will come. `early`: that event, where it is known already. */
  expect(id: string, expected: Expected, early?: WorkEvent): void {
    if (!this.hasListeners) return
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) this.#waiting.set(id, [{ expected, isOpen: true, early }])
    else if (!waiting.some((entry) => entry.isOpen && entry.expected === expected))
      waiting.push({ expected, isOpen: true, early })
  }

  /** The event has come, or will never come: what waited for it follows. */
  resolve(id: string, expected: Expected, event?: WorkEvent): void {
    if (expected === 'queued' && this.#emittedEarly.delete(id)) return
    const waiting = this.#waiting.get(id)
    const entry = waiting?.find((one) => one.isOpen && one.expected === expected)
    if (waiting === undefined || entry === undefined) {
      if (event !== undefined) this.emit(event)
      return
    }
    entry.isOpen = false
    if (event !== undefined) entry.event = event
    // An item that has run was queued, even if its commit is never answered.
    if (expected !== 'queued')
      for (const one of waiting) if (one.expected === 'queued' && one.isOpen) this.#close(id, one)
    while (waiting[0]?.isOpen === false) {
      const next = waiting.shift()!.event
      if (next !== undefined) this.emitNow(next)
    }
    if (waiting.length === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id)
  }

  #close(id: string, entry: Entry): void {
    entry.isOpen = false
    if (entry.early === undefined) return
    entry.event = entry.early
    this.#emittedEarly.add(id)
  }

  emit(event: WorkEvent): void {
    const waiting = event.kind === 'group-done' ? undefined : this.#waiting.get(event.id)
    if (waiting === undefined) this.emitNow(event)
    else waiting.push({ event, isOpen: false })
  }

  /** Emits it now, whatever else is expected. */
  emitNow(event: WorkEvent): void {
    const onEvent = this.#onEvent
    if (onEvent !== undefined) callObserver(() => onEvent(event))
    const own = event.kind === 'group-done' ? undefined : this.#registry.find(event.type)?.options.onEvent
    if (own !== undefined) callObserver(() => own(event))
  }
}
