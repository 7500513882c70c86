import type { Clock } from '../core/clock.js'
import type { Ms } from '../core/time.js'
import type { Store } from '../ports/ports.js'
import type { UnhandledWorkGroupInfo } from './system-options.js'
import type { WorkState } from './work.js'

/** A waiter of this process gets this long after the end of a group to say so. */
const GRACE_MS = 100
const HANDLED_TTL_MS = 86_400_000

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
  readonly #inGrace = new Map<string, () => void>()

  constructor(options: OrphanOptions) {
    this.#o = options
  }

  /** Somebody waits for it after all. */
  awaited(groupId: string): void {
    this.#inGrace.get(groupId)?.()
    this.#inGrace.delete(groupId)
  }

  closed(groupId: string, lastResult: unknown, graceMs: Ms = GRACE_MS): void {
    const cancel = this.#o.clock.after(graceMs, () => {
      this.#inGrace.delete(groupId)
      void this.#tell(groupId, lastResult).catch(this.#o.onError)
    })
    this.#inGrace.set(groupId, cancel)
  }

  async #tell(groupId: string, lastResult: unknown): Promise<void> {
    const key = `${this.#o.prefix}group-handled:${groupId}`
    if (!(await this.#o.store.setIfNotExists(key, '1', HANDLED_TTL_MS))) return
    await this.#o.hook({ groupId, lastResult, states: await this.#o.states(groupId) })
  }
}
