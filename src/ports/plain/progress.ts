/**
 * How far the steps of one settlement have come. A step that succeeded is not done again when the settlement is repeated; one
 * that failed is; one that is still under way is joined. It lives as long as the process: after a crash every step is
 * repeated, and each of them is made so that this does no harm.
 */
export class Progress {
  readonly #steps = new Map<string, Promise<unknown>>()

  has(step: string): boolean {
    return this.#steps.has(step)
  }

  once<T>(step: string, act: () => Promise<T>): Promise<T> {
    const known = this.#steps.get(step)
    // Each step has one name and one type of answer, here and in the two places that use progress.
    if (known !== undefined) return known as Promise<T>
    const under = act()
    this.#steps.set(step, under)
    under.catch(() => this.#steps.delete(step))
    return under
  }

  forget(step: string): void {
    this.#steps.delete(step)
  }
}
