/** Wakes callers that wait for room when there is some again. All of them wait for one promise. */
export class RoomSignal {
  readonly #isCrowded: () => boolean
  #room: { readonly promise: Promise<void>; readonly open: () => void } | undefined

  constructor(isCrowded: () => boolean) {
    this.#isCrowded = isCrowded
  }

  /** Undefined where there is room, otherwise a promise of it. */
  whenRoom(): Promise<void> | undefined {
    if (!this.#isCrowded()) return undefined
    if (this.#room === undefined) {
      let open!: () => void
      const promise = new Promise<void>((resolve) => {
        open = resolve
      })
      this.#room = { promise, open }
    }
    return this.#room.promise
  }

  /** Something has left, so there may be room. */
  left(): void {
    if (this.#room === undefined || this.#isCrowded()) return
    this.#room.open()
    this.#room = undefined
  }
}
