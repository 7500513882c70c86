/** Listeners for room. */
export interface Wakeups {
  subscribe(listener: () => void): () => void
  wake(): void
}

/** A listener that throws stops neither the others nor the doer. */
export function wakeups(): Wakeups {
  const listeners = new Set<() => void>()
  return {
    subscribe(listener) {
      // Wrapped, so that the same function subscribed twice is two subscriptions, each ended by its own unsubscribe.
      const own = () => listener()
      listeners.add(own)
      return () => {
        listeners.delete(own)
      }
    },
    wake() {
      for (const listener of [...listeners]) {
        try {
          listener()
        } catch {
          // A listener has its own way to report; a doer has none, and goes on.
        }
      }
    },
  }
}
