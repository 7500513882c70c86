import type { Clock } from '../core/clock.js'
import type { Store } from '../ports/ports.js'
import type { UnhandledWorkGroupInfo } from './system-options.js'
import type { WorkState } from './work.js'

/** A waiter of this process gets this long after the end of a group to say so. */
const GRACE_MS = 100
const HANDLED_TTL_MS = 86_400_000
const MOST_AWAITED = 100_000

export interface OrphanOptions {
  readonly clock: Clock
  readonly prefix: string
  readonly store: Store
  readonly states: (groupId: string) => Promise<readonly WorkState[]>
  readonly hook: (info: UnhandledWorkGroupInfo) => void | Promise<void>
  readonly onError: (error: unknown) => void
}

/** Tells of groups that ended while nobody waited for them: once in the fleet, shortly after the end. */
export class Orphans {
  readonly #o: OrphanOptions
  /** Groups that somebody here waits for: they are no orphans, however they end. */
  readonly #awaited = new Set<string>()
  readonly #inGrace = new Map<string, () => void>()

  constructor(options: OrphanOptions) {
    this.#o = options
  }

  awaited(groupId: string): void {
    const cancel = this.#inGrace.get(groupId)
    if (cancel === undefined) this.#remember(groupId)
    else {
      cancel()
      this.#inGrace.delete(groupId)
    }
  }

  closed(groupId: string, lastResult: unknown): void {
    if (this.#awaited.delete(groupId)) return
    const cancel = this.#o.clock.after(GRACE_MS, () => {
      this.#inGrace.delete(groupId)
      void this.#tell(groupId, lastResult).catch(this.#o.onError)
    })
    this.#inGrace.set(groupId, cancel)
  }

  close(): void {
    for (const cancel of this.#inGrace.values()) cancel()
    this.#inGrace.clear()
  }

  /** Bounded: groups that end elsewhere are never heard of here. The oldest are forgotten first. */
  #remember(groupId: string): void {
    this.#awaited.add(groupId)
    if (this.#awaited.size <= MOST_AWAITED) return
    const oldest = this.#awaited.values().next()
    if (oldest.done !== true) this.#awaited.delete(oldest.value)
  }

  async #tell(groupId: string, lastResult: unknown): Promise<void> {
    const key = `${this.#o.prefix}group-handled:${groupId}`
    if (!(await this.#o.store.setIfNotExists(key, '1', HANDLED_TTL_MS))) return
    await this.#o.hook({ groupId, lastResult, states: await this.#o.states(groupId) })
  }
}
