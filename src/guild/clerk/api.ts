import type { LinkKind } from './links/link-kinds.js'
import type { WritTypeConfig } from './types/writ-type.js'
import type {
  EditWrit,
  LinkDoc,
  PostWrit,
  TransitionFields,
  WritDoc,
  WritFilter,
  WritLinks,
  WritListing,
} from './writs/writ.js'

/**
 * The Clerk: the one authority over writs. Every change is one transaction of the Stacks, and joins the caller's when there is
 * one. A rejected call has changed nothing.
 */
export interface ClerkApi {
  /**
   * Makes a writ and returns it. A child inherits its parent's codex, and its parent must not have ended. With `children` it makes
   * the whole family in one transaction, and returns the parent.
   */
  post(writ: PostWrit): Promise<WritDoc>
  /** The writ; rejects when there is none. */
  show(id: string): Promise<WritDoc>
  /** The whole id of a writ, from the id or its beginning. Rejects when none fits, or several. */
  resolveId(idOrPrefix: string): Promise<string>
  /** Writs, the newest first: 20 unless `limit` says otherwise. */
  list(listing?: WritListing): Promise<WritDoc[]>
  /** How many there are. */
  count(filter?: WritFilter): Promise<number>
  /**
   * Brings a writ to another phase. Its type's machine must allow the step. `fields` are written with it, except those that the
   * Clerk manages. At an end, parent and children follow as the type defines, in the same transaction.
   */
  transition(id: string, to: string, fields?: TransitionFields): Promise<WritDoc>
  /** Replaces what one plugin observed about a writ; what others observed stays. The only way to write it. */
  setWritStatus(id: string, pluginId: string, value: unknown): Promise<WritDoc>
  /** Whether a child of this writ has not ended. */
  hasOpenChildren(id: string): Promise<boolean>
  /** Changes the contents of a writ. */
  edit(change: EditWrit): Promise<WritDoc>
  /** Links two writs. A link that is there already is returned, with its kind replaced if another one is given. */
  link(sourceId: string, targetId: string, label: string, kind?: string | null): Promise<LinkDoc>
  /** Removes a link; one that is not there is no error. */
  unlink(sourceId: string, targetId: string, label: string): Promise<void>
  /** The links from and to a writ. */
  links(id: string): Promise<WritLinks>
  /** The kinds that plugins contributed. */
  listKinds(): LinkKind[]
  /**
   * Registers, during startup only, a condition under which the success of all its children does not end a writ: the plugin that
   * asks for it then ends the writ itself.
   */
  holdParents(isHeld: (parent: WritDoc) => boolean): void
  /** Registers a type, during startup only. */
  registerWritType(config: WritTypeConfig): void
  /** The type of that name; throws when there is none. */
  getWritTypeConfig(name: string): WritTypeConfig
  /** Whether the writ is in its initial phase. Throws for an unknown type or phase, as the next two do. */
  isInitial(writ: Pick<WritDoc, 'type' | 'phase'>): boolean
  /** Whether it has left its initial phase and not ended. */
  isActive(writ: Pick<WritDoc, 'type' | 'phase'>): boolean
  /** Whether it has ended. */
  isTerminal(writ: Pick<WritDoc, 'type' | 'phase'>): boolean
}
