/** Those who wait for something to have nothing to do. */
export interface Idle {
  /** Resolves at the next `reached()`. */
  wait(): Promise<void>
  reached(): void
}

/** All callers that wait share one promise. */
export function idle(): Idle {
  let waiting: Promise<void> | undefined
  let resolve: (() => void) | undefined
  return {
    wait() {
      waiting ??= new Promise<void>((done) => {
        resolve = done
      })
      return waiting
    },
    reached() {
      waiting = undefined
      resolve?.()
      resolve = undefined
    },
  }
}
