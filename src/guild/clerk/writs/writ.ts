/** A writ: one thing that is owed, until it has ended. */
export interface WritDoc {
  readonly id: string
  /** Its type, which defines the phases it can be in. */
  readonly type: string
  readonly phase: string
  readonly title: string
  readonly body: string
  /** What it belongs to, in words of its users: a repository, a customer. A child inherits it. */
  readonly codex?: string
  readonly parentId?: string
  /** ISO 8601, like the following. */
  readonly createdAt: string
  readonly updatedAt: string
  /** When it reached a terminal phase. */
  readonly resolvedAt?: string
  /** What became of it, in words. */
  readonly resolution?: string
  /** It gets no rig before this. */
  readonly runAt?: string
  /** It fails when it has not ended by this. */
  readonly deadline?: string
  /** What plugins observed about it, each under its own id. No part of the state machine. */
  readonly status?: Readonly<Record<string, unknown>>
}

/** A new writ. */
export interface PostWrit {
  readonly title: string
  readonly body: string
  /** Default: `defaultType` of the Clerk's configuration, else `mandate`. */
  readonly type?: string
  readonly codex?: string
  /** Whether it waits in its initial phase until it is opened. Default: no. */
  readonly draft?: boolean
  readonly parentId?: string
  /** Children that are posted with it, in one transaction, so that none of them completes it before the others are there. */
  readonly children?: readonly ChildWrit[]
  /** It gets no rig before this: epoch ms, or a `Date`. */
  readonly runAt?: number | Date
  /** It fails when it has not ended by this: epoch ms, or a `Date`. A draft is not held to it before it is opened. */
  readonly deadline?: number | Date
}

/** A new writ that is posted with its parent. */
export type ChildWrit = Omit<PostWrit, 'parentId'>

/** A change of the contents of a writ. Type and codex can change in its initial phase only; an empty `codex` removes it. */
export interface EditWrit {
  readonly id: string
  readonly title?: string
  readonly body?: string
  readonly type?: string
  readonly codex?: string
  /** Null removes it. */
  readonly runAt?: number | Date | null
  /** Null removes it. */
  readonly deadline?: number | Date | null
}

/** Which writs. A list means any of them. */
export interface WritFilter {
  readonly phase?: string | readonly string[]
  readonly type?: string | readonly string[]
  readonly parentId?: string
}

/** Which writs, and how many of them. */
export interface WritListing extends WritFilter {
  /** Default: 20. */
  readonly limit?: number
  readonly offset?: number
}

/** What may be written together with a transition: the resolution, mostly. Fields that the Clerk manages are left out. */
export type TransitionFields = Readonly<Record<string, unknown>> & { readonly resolution?: string | undefined }

/** A directed relation between two writs. */
export interface LinkDoc {
  /** `source:target:label` */
  readonly id: string
  readonly sourceId: string
  readonly targetId: string
  /** In its one spelling. */
  readonly label: string
  /** What it means to a plugin; null when it means something to people only. */
  readonly kind: string | null
  readonly createdAt: string
}

/** The links of a writ, each in the order of their making. */
export interface WritLinks {
  readonly outbound: readonly LinkDoc[]
  readonly inbound: readonly LinkDoc[]
}
