import type { Clock } from '../../core/time/clock.js'
import type { Book, StacksApi } from '../stacks/api.js'
import { IllegalTransitionError, WritNotFoundError } from './errors.js'
import { openDescendants } from './families/strict-completion.js'
import type { WritTypes } from './types/writ-types.js'
import type { LinkDoc, WritDoc } from './writs/writ.js'

/** What the Clerk goes by. A client of the guild reads them from the store, where they may change. */
export interface ClerkRules {
  readonly types: WritTypes
  /** The type of a writ that is posted without one. */
  readonly defaultType: string
  /** Whether a writ may end in success only when everything below it has ended. */
  readonly isStrict: boolean
}

/** What every part of the Clerk works with: the books, the types, the time, and the one way to move a writ. */
export class ClerkContext {
  readonly writs: Book<WritDoc>
  readonly linkBook: Book<LinkDoc>
  readonly #stacks: StacksApi
  readonly #clock: Clock
  readonly #holds: ((parent: WritDoc) => boolean)[] = []
  readonly #rules: () => ClerkRules

  constructor(stacks: StacksApi, clock: Clock, rules: () => ClerkRules) {
    this.#stacks = stacks
    this.writs = stacks.book('clerk', 'writs')
    this.linkBook = stacks.book('clerk', 'links')
    this.#clock = clock
    this.#rules = rules
  }

  get types(): WritTypes {
    return this.#rules().types
  }

  get defaultType(): string {
    return this.#rules().defaultType
  }

  holdParents(isHeld: (parent: WritDoc) => boolean): void {
    this.#holds.push(isHeld)
  }

  /** Whether a plugin ends this writ itself, once its children have ended. */
  isHeld(parent: WritDoc): boolean {
    return this.#holds.some((isHeld) => isHeld(parent))
  }

  /** Now, as documents write it. */
  now(): string {
    return new Date(this.#clock.now()).toISOString()
  }

  /** Everything in `fn` happens, or nothing; it runs again when another process was faster. */
  change<R>(fn: () => Promise<R>): Promise<R> {
    return this.#stacks.transaction(fn)
  }

  async need(id: string, role?: string): Promise<WritDoc> {
    const writ = await this.writs.get(id)
    if (writ === null) throw new WritNotFoundError(id, role)
    return writ
  }

  /**
   * Writes a document as it is, so that of two transactions about one family only one gets through, and the other one reads
   * again. Without it, on a store that lets transactions run side by side, two last children could end at the same time, each
   * seeing the other one open, and their parent would never follow.
   */
  async touch(writ: WritDoc): Promise<void> {
    await this.writs.patch(writ.id, {})
  }

  /** One legal step. Inside `change` only: what was read must still hold when it is written. */
  async step(writ: WritDoc, to: string, fields: Readonly<Record<string, unknown>> = {}): Promise<WritDoc> {
    const machine = this.types.machine(writ.type)
    const { allowedTransitions } = machine.state(writ.phase)
    if (!allowedTransitions.includes(to)) throw new IllegalTransitionError(writ.id, writ.phase, to, allowedTransitions)
    if (this.#rules().isStrict && machine.hasAttr(to, 'success')) await openDescendants(this, writ, to)
    const updatedAt = this.now()
    const end = machine.isTerminal(to) ? { resolvedAt: updatedAt } : {}
    return this.writs.patch(writ.id, { ...fields, phase: to, updatedAt, ...end })
  }
}
