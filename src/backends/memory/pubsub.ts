import { OptionTypeError } from '../../core/options.js'
import type { PubSub } from '../../ports/ports.js'

/** Fan-out within this process. */
export interface MemoryPubSub extends PubSub {
  publish(message: string): void
  /** Not enumerable: how many listen, so that a publisher can save itself the message. */
  readonly listeners: () => number
}

/**
 * Publish and subscribe within one process: `publish` calls everybody who was subscribed when it was called, at once. A
 * listener that throws stops neither the others nor the publisher; who unsubscribes during a delivery hears no more of it.
 */
export function memoryPubSub(): MemoryPubSub {
  const subscriptions = new Set<{ readonly hear: (message: string) => void }>()
  const port = {
    publish(message: string): void {
      for (const subscription of [...subscriptions]) {
        if (!subscriptions.has(subscription)) continue
        try {
          subscription.hear(message)
        } catch {
          // Loss is allowed on this channel, and a listener's fault is the listener's: there is nobody here to tell.
        }
      }
    },
    subscribe(hear: (message: string) => void): () => void {
      if (typeof hear !== 'function') throw new OptionTypeError('subscribe(listener)', 'a function', hear)
      // A fresh object each time: the same function may be subscribed twice and unsubscribed once.
      const subscription = { hear }
      subscriptions.add(subscription)
      return () => {
        subscriptions.delete(subscription)
      }
    },
  }
  Object.defineProperty(port, 'listeners', { value: () => subscriptions.size, enumerable: false })
  return port as MemoryPubSub
}
