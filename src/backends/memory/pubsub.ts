import { OptionTypeError } from '../../core/options.js'
import type { PubSub } from '../../ports/ports.js'

/** Fan-out within this process. */
export interface MemoryPubSub extends PubSub {
  publish(message: string): void
}

/**
 * Publish and subscribe within one process: `publish` immediately calls every listener that is subscribed. A listener
 * that throws stops neither the others nor the publisher; one that unsubscribes during a delivery is not called any more.
 */
export function memoryPubSub(): MemoryPubSub {
  const subscriptions = new Set<{ readonly listener: (message: string) => void }>()
  return {
    publish(message: string): void {
      for (const subscription of [...subscriptions]) {
        if (!subscriptions.has(subscription)) continue
        try {
          subscription.listener(message)
        } catch {
          // Messages may be lost on this channel, and there is nothing to report the error to.
        }
      }
    },
    subscribe(listener: (message: string) => void): () => void {
      if (typeof listener !== 'function') throw new OptionTypeError('subscribe(listener)', 'a function', listener)
      // A fresh object each time: the same function may be subscribed twice and unsubscribed once.
      const subscription = { listener }
      subscriptions.add(subscription)
      return () => {
        subscriptions.delete(subscription)
      }
    },
  }
}
