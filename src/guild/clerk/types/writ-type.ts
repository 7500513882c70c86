/** Where a phase is in the life of a writ: at its beginning, in its course, or at an end. */
export type Classification = 'initial' | 'active' | 'terminal'

/**
 * What a phase means beyond its name. The Clerk reads `success`, `failure` and `cancelled` of terminal phases; a type may have
 * more of its own.
 */
export type StateAttr = 'success' | 'failure' | 'cancelled' | 'stuck' | (string & {})

/** One phase of a type. */
export interface WritState {
  readonly name: string
  readonly classification: Classification
  readonly attrs?: readonly StateAttr[]
  /** Phases that a writ may go to from here. */
  readonly allowedTransitions: readonly string[]
}

/** What happens to a relative when a writ ends. */
export interface FamilyAction {
  /** The phase to bring the relative to, over the shortest legal path. */
  readonly transition: string
  /** A fixed resolution for it. */
  readonly resolution?: string
  /** Whether the resolution of the writ that ended is copied. Default: no. */
  readonly copyResolution?: boolean
}

/** How writs of a type and their children end together. */
export interface ChildrenBehavior {
  /** On the parent, once every child has ended in success. */
  readonly allSuccess?: FamilyAction
  /** On the parent, as soon as a child ends in failure. Checked before `allSuccess`. */
  readonly anyFailure?: FamilyAction
  /** On every child that has not ended, when the parent ends in failure or is cancelled. */
  readonly parentTerminal?: FamilyAction
}

/** A type of writ: its phases, the ways between them, and what it has to do with its children. */
export interface WritTypeConfig {
  readonly name: string
  /** The phase in which a writ is posted unless it is a draft. Default: the initial one. */
  readonly postTo?: string
  readonly states: readonly WritState[]
  readonly childrenBehavior?: ChildrenBehavior
}
