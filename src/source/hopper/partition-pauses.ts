/** What can hold back one partition of a source. */
export interface PausableSource {
  pause(partition: string): void
  resume(partition: string): void
}

/** Which partitions are held back. Several lanes may want the same one held: it is resumed when the last of them has. */
export class PartitionPauses {
  readonly #source: PausableSource
  readonly #holders = new Map<string, number>()

  constructor(source: PausableSource) {
    this.#source = source
  }

  hold(partition: string): void {
    const holders = this.#holders.get(partition) ?? 0
    this.#holders.set(partition, holders + 1)
    if (holders === 0) this.#source.pause(partition)
  }

  free(partition: string): void {
    const holders = this.#holders.get(partition) ?? 0
    if (holders > 1) {
      this.#holders.set(partition, holders - 1)
      return
    }
    if (this.#holders.delete(partition)) this.#source.resume(partition)
  }
}
