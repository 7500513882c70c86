import type { LifecycleHandler } from './plugin.js'

interface Subscription {
  readonly owner: string
  readonly event: string
  readonly handler: LifecycleHandler
}

/** The events of one guild. Handlers run one after the other, in the order of subscription, and are awaited. */
export class Lifecycle {
  readonly #subscriptions: Subscription[] = []

  on(owner: string, event: string, handler: LifecycleHandler): void {
    this.#subscriptions.push({ owner, event, handler })
  }

  /** Runs the handlers of an event. The first that throws ends it. */
  async fire(event: string, ...args: unknown[]): Promise<void> {
    for (const { handler } of this.#of(event)) await handler(...(args as never[]))
  }

  /** Runs them all, whatever one of them throws; returns what was thrown, with the subscriber. */
  async fireAll(event: string): Promise<{ id: string; error: unknown }[]> {
    const failures: { id: string; error: unknown }[] = []
    for (const { owner, handler } of this.#of(event)) {
      try {
        await handler()
      } catch (error) {
        failures.push({ id: owner, error })
      }
    }
    return failures
  }

  #of(event: string): Subscription[] {
    return this.#subscriptions.filter((subscription) => subscription.event === event)
  }
}
