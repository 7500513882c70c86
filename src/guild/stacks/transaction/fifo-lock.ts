/** A lock for one holder at a time, handed on in the order of asking. */
export class FifoLock {
  #tail: Promise<void> = Promise.resolve()

  /** Resolves with the function that hands it on. */
  async take(): Promise<() => void> {
    const before = this.#tail
    const { promise, resolve } = later()
    this.#tail = promise
    await before
    return resolve
  }
}

function later(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
