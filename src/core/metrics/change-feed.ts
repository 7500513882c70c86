/** Passes subscribers what changed, in batches. */
export interface ChangeFeed<S extends Changeable, V> {
  /** False while there is no subscriber; sources ask it before they report a change. */
  readonly isHeard: boolean
  /** Puts `source` into the next batch. Call it only while `isHeard`, and only where `source.isChanged` is not yet set. */
  changed(source: S): void
  subscribe(listener: (changed: readonly V[]) => void): () => void
}

/** A source remembers for itself whether it is in the next batch, so that a repeated change costs one comparison. */
export interface Changeable {
  isChanged: boolean
}

/** How a feed reads its sources, when it delivers, and what is called when a listener throws. */
export interface ChangeFeedOptions<S, V> {
  readonly read: (source: S) => V
  readonly schedule: (flush: () => void) => void
  readonly onError?: ((error: unknown) => void) | undefined
}

/** A feed without subscribers. Listeners receive values as they are at delivery, not at the change. */
export function changeFeed<S extends Changeable, V>(options: ChangeFeedOptions<S, V>): ChangeFeed<S, V> {
  const listeners = new Set<(changed: readonly V[]) => void>()
  let batch: S[] = []

  function report(error: unknown): void {
    try {
      options.onError?.(error)
    } catch {
      // The reporter of last resort is broken too; the change of a metric must still not fail.
    }
  }

  function flush(): void {
    const sources = batch
    if (sources.length === 0) return
    batch = []
    for (const source of sources) source.isChanged = false
    if (listeners.size === 0) return
    const values = Object.freeze(sources.map(options.read))
    for (const listener of [...listeners]) notify(listener, values)
  }

  function notify(listener: (changed: readonly V[]) => void, values: readonly V[]): void {
    try {
      const answer: unknown = listener(values)
      // An async listener is allowed; its rejection must not end the process.
      if (answer instanceof Promise) answer.catch(report)
    } catch (error) {
      report(error)
    }
  }

  function deliverLater(): void {
    try {
      options.schedule(flush)
    } catch (error) {
      report(error)
      queueMicrotask(flush)
    }
  }

  const feed = {
    isHeard: false,
    changed(source: S): void {
      source.isChanged = true
      if (batch.push(source) === 1) deliverLater()
    },
    subscribe(listener: (changed: readonly V[]) => void): () => void {
      // Wrapped, so that the same function subscribed twice is two subscriptions, each ended by its own unsubscribe.
      const own = (changed: readonly V[]): void => listener(changed)
      listeners.add(own)
      feed.isHeard = true
      return () => {
        listeners.delete(own)
        feed.isHeard = listeners.size > 0
      }
    },
  }
  return feed
}
