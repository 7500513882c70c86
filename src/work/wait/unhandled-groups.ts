import type { WorkState } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import type { WorkSystemOptions } from '../options.js'
import { workStateOf } from './states.js'

/** A caller in this process may still start to wait for this long after the group has closed. */
const GRACE_MS = 100
const HANDLED_TTL_MS = 86_400_000
const MOST_AWAITED = 100_000

/** Reports groups that closed while no caller waited for them: once in the fleet, shortly after they closed. */
export class UnhandledGroups {
  readonly #context: EngineContext
  readonly #hook: NonNullable<WorkSystemOptions['unhandledWorkGroup']>
  /** Groups that a caller in this process waits for: they are handled, however they end. */
  readonly #awaited = new Set<string>()
  readonly #inGrace = new Map<string, () => void>()

  constructor(context: EngineContext, hook: NonNullable<WorkSystemOptions['unhandledWorkGroup']>) {
    this.#context = context
    this.#hook = hook
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
    const cancel = this.#context.o.clock.after(GRACE_MS, () => {
      this.#inGrace.delete(groupId)
      this.#report(groupId, lastResult).catch((error) => this.#context.failed(error, 'commit'))
    })
    this.#inGrace.set(groupId, cancel)
  }

  close(): void {
    for (const cancel of this.#inGrace.values()) cancel()
    this.#inGrace.clear()
  }

  /** Bounded, because this process never learns of groups that close elsewhere. The oldest are forgotten first. */
  #remember(groupId: string): void {
    this.#awaited.add(groupId)
    if (this.#awaited.size <= MOST_AWAITED) return
    const oldest = this.#awaited.values().next()
    if (oldest.done !== true) this.#awaited.delete(oldest.value)
  }

  async #report(groupId: string, lastResult: unknown): Promise<void> {
    const { ports, o } = this.#context
    const key = `${o.prefix}group-handled:${groupId}`
    if (!(await ports.store.setIfNotExists(key, '1', HANDLED_TTL_MS))) return
    await this.#hook({ groupId, lastResult, states: await this.#statesOf(groupId) })
  }

  async #statesOf(groupId: string): Promise<readonly WorkState[]> {
    const { ledger, known } = this.#context
    if (ledger.inspect === undefined) return known?.list(groupId) ?? []
    return (await ledger.inspect.list({ groupId, limit: 1_000 })).items.map((view) => workStateOf(view))
  }
}
