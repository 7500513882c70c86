import type { WritTypeConfig } from 'millrace/guild/clerk'

/** A writ of the model: only what families are about. */
export interface ModelWrit {
  readonly key: number
  readonly type: string
  readonly parent: number | undefined
  phase: string
  resolution: string | undefined
  trigger: number | undefined
}

/**
 * Families as a plain reading of their rules has them: arrays instead of books, recursion instead of events, and "is there any
 * way" instead of steps. A move that cannot be made leaves the world as it was.
 */
export class FamilyModel {
  #writs: ModelWrit[] = []
  readonly #types: ReadonlyMap<string, WritTypeConfig>

  constructor(types: readonly WritTypeConfig[]) {
    this.#types = new Map(types.map((type) => [type.name, type]))
  }

  get writs(): readonly ModelWrit[] {
    return this.#writs
  }

  /** Whether the post is accepted. */
  post(type: string, parent: number | undefined, draft: boolean): boolean {
    if (parent !== undefined && this.#isTerminal(this.#writs[parent]!)) return false
    const { states, postTo } = this.#type(type)
    const initial = states.find(({ classification }) => classification === 'initial')!.name
    const phase = draft ? initial : (postTo ?? initial)
    this.#writs.push({ key: this.#writs.length, type, parent, phase, resolution: undefined, trigger: undefined })
    return true
  }

  /** Whether the move is accepted. */
  move(key: number, to: string, resolution: string): boolean {
    const before = structuredClone(this.#writs)
    const writ = this.#writs[key]!
    if (!this.#state(writ).allowedTransitions.includes(to)) return false
    try {
      this.#arrive(writ, to, resolution)
      return true
    } catch {
      this.#writs = before
      return false
    }
  }

  #arrive(writ: ModelWrit, phase: string, resolution: string | undefined): void {
    writ.phase = phase
    if (resolution !== undefined) writ.resolution = resolution
    if (!this.#isTerminal(writ)) return
    const { parentTerminal } = this.#type(writ.type).childrenBehavior ?? {}
    if (parentTerminal !== undefined && (this.#is(writ, 'failure') || this.#is(writ, 'cancelled'))) {
      for (const child of this.#writs.filter(({ parent }) => parent === writ.key)) {
        if (!this.#isTerminal(child)) this.#bring(child, parentTerminal, writ)
      }
    }
    const parent = writ.parent === undefined ? undefined : this.#writs[writ.parent]!
    if (parent === undefined || this.#isTerminal(parent)) return
    const { anyFailure, allSuccess } = this.#type(parent.type).childrenBehavior ?? {}
    const siblings = this.#writs.filter((other) => other.parent === parent.key)
    const action = this.#is(writ, 'failure') && anyFailure !== undefined ? anyFailure : undefined
    const isDone =
      allSuccess !== undefined && siblings.every((other) => this.#isTerminal(other) && this.#is(other, 'success'))
    const chosen = action ?? (isDone ? allSuccess : undefined)
    if (chosen === undefined) return
    parent.trigger = writ.key
    this.#bring(parent, chosen, writ)
  }

  #bring(
    writ: ModelWrit,
    action: { transition: string; resolution?: string; copyResolution?: boolean },
    cause: ModelWrit,
  ): void {
    if (writ.phase === action.transition) return
    if (!this.#canReach(writ, action.transition)) throw new Error('unreachable')
    this.#arrive(writ, action.transition, action.resolution ?? (action.copyResolution ? cause.resolution : undefined))
  }

  #canReach(writ: ModelWrit, target: string): boolean {
    const { states } = this.#type(writ.type)
    let reached = [writ.phase]
    for (const _ of states) {
      reached = [...reached, ...states.filter((s) => reached.includes(s.name)).flatMap((s) => s.allowedTransitions)]
    }
    return reached.includes(target)
  }

  #type(name: string): WritTypeConfig {
    return this.#types.get(name)!
  }

  #state(writ: ModelWrit) {
    return this.#type(writ.type).states.find(({ name }) => name === writ.phase)!
  }

  #isTerminal(writ: ModelWrit): boolean {
    return this.#state(writ).classification === 'terminal'
  }

  #is(writ: ModelWrit, attr: string): boolean {
    return this.#state(writ).attrs?.includes(attr) ?? false
  }
}
