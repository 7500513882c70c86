/** One at a time for each key, in the order of asking, within this process. */
export class Turns {
  readonly #tails = new Map<string, Promise<unknown>>()

  inTurn<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key)
    const turn = before === undefined ? act() : before.then(act, act)
    this.#tails.set(key, turn)
    const leave = () => {
      if (this.#tails.get(key) === turn) this.#tails.delete(key)
    }
    turn.then(leave, leave)
    return turn
  }
}
