/** What was done to a process, or happened to it, in machine time. */
export interface Disturbance {
  /** The name of a process; absent: all of them. */
  readonly who?: string
  readonly kind: 'death' | 'stop' | 'cut' | 'reply' | 'restart' | 'disk' | 'lock' | 'stall' | 'server'
  readonly from: number
  readonly to: number
}

/** Not caused on purpose. */
const NOT_OURS: readonly Disturbance['kind'][] = ['stall', 'lock', 'server']

/** Who was disturbed when. Only these excuse a lost lease; clocks that step and users who hold locks do not. */
export class Timeline {
  readonly #ofAll: Disturbance[] = []
  readonly #ofOne = new Map<string, Disturbance[]>()

  add(disturbance: Disturbance): void {
    const { who } = disturbance
    if (who === undefined) this.#ofAll.push(disturbance)
    else if (this.#ofOne.has(who)) this.#ofOne.get(who)!.push(disturbance)
    else this.#ofOne.set(who, [disturbance])
  }

  /** Whether anything was done to it that touches this span of time. */
  isDisturbed(who: string, from: number, to: number): boolean {
    return this.#of(who).some((one) => one.from <= to && one.to >= from)
  }

  /** How often it was disturbed by us meanwhile. What stalled by itself does not count: it may be its own fault. */
  faultsOf(who: string, from: number, to: number): number {
    return this.#of(who).filter(({ kind, ...one }) => !NOT_OURS.includes(kind) && one.from <= to && one.to >= from)
      .length
  }

  diedAt(who: string): number | undefined {
    return this.#ofOne.get(who)?.find(({ kind }) => kind === 'death')?.from
  }

  count(kind: Disturbance['kind']): number {
    return [this.#ofAll, ...this.#ofOne.values()].flat().filter((one) => one.kind === kind).length
  }

  #of(who: string): readonly Disturbance[] {
    return [...this.#ofAll, ...(this.#ofOne.get(who) ?? [])]
  }
}
