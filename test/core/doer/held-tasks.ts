/** Tasks that record when they start, and end when the test says so. */
export interface HeldTasks {
  readonly started: string[]
  task(name: string): () => Promise<void>
  end(...names: string[]): Promise<void>
  fail(name: string): Promise<void>
}

/** None yet. A task that was not given to a doer may be ended in advance. */
export function heldTasks(): HeldTasks {
  const started: string[] = []
  const ends = new Map<string, { resolve: () => void; reject: (error: unknown) => void }>()
  return {
    started,
    task(name) {
      const ended = new Promise<void>((resolve, reject) => ends.set(name, { resolve, reject }))
      return () => {
        started.push(name)
        return ended
      }
    },
    async end(...names) {
      for (const name of names) ends.get(name)!.resolve()
      await settled()
    },
    async fail(name) {
      ends.get(name)!.reject(new Error(name))
      await settled()
    },
  }
}

/** Lets all promise chains come to rest; timers do not move. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
