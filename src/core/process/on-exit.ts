/** What is to be called when the process emits an event: one listener for all of them, and none while there are none. */
class Callbacks {
  readonly #event: 'exit' | 'beforeExit'
  readonly #all = new Set<{ readonly call: () => void }>()
  readonly #listener = (): void => {
    for (const { call } of [...this.#all]) call()
  }

  constructor(event: 'exit' | 'beforeExit') {
    this.#event = event
  }

  /** Yields what takes it back. */
  readonly add = (call: () => void): (() => void) => {
    const one = { call }
    if (this.#all.size === 0) process.on(this.#event, this.#listener)
    this.#all.add(one)
    return () => {
      if (this.#all.delete(one) && this.#all.size === 0) process.off(this.#event, this.#listener)
    }
  }
}

/** Calls this when the process exits, however it came to that. Nothing asynchronous happens any more then. */
export const onExit = new Callbacks('exit').add

/** Calls this when nothing keeps the process alive any more. Not on `process.exit`, nor after an error that ends the process. */
export const onBeforeExit = new Callbacks('beforeExit').add

/** A process warning while the process exits: `process.emitWarning` waits for the next tick, which does not come any more. */
export function warnAtExit(text: string, code: string): void {
  process.emit('warning', Object.assign(new Error(text), { name: 'MillraceWarning', code }))
}
