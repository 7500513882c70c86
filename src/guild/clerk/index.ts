/** The Clerk: writs, their types and phases, and the links between them. */
import type { Apparatus } from '../host/plugin.js'
import { createClerk } from './apparatus.js'

/** A new Clerk each time it is read, so two guilds in one process do not share one. */
const clerk: { readonly apparatus: Apparatus } = {
  get apparatus() {
    return createClerk()
  },
}

// biome-ignore lint/style/noDefaultExport: a plugin is the default export of its package.
export default clerk

export type { ClerkApi } from './api.js'
export type { ClerkConfig } from './apparatus.js'
export {
  IllegalTransitionError,
  LinkError,
  OpenDescendantsError,
  ParentEndedError,
  RegistrationError,
  UnknownLinkKindError,
  UnknownPhaseError,
  UnknownWritTypeError,
  UnreachablePhaseError,
  WritNotFoundError,
  WritReferenceError,
  WritSettledError,
  WritTypeError,
} from './errors.js'
export type { LinkKind, LinkKindContribution } from './links/link-kinds.js'
export { canonicalLabel } from './links/link-label.js'
export { MANDATE } from './types/mandate.js'
export type {
  ChildrenBehavior,
  Classification,
  FamilyAction,
  StateAttr,
  WritState,
  WritTypeConfig,
} from './types/writ-type.js'
export type {
  ChildWrit,
  EditWrit,
  LinkDoc,
  PostWrit,
  TransitionFields,
  WritDoc,
  WritFilter,
  WritLinks,
  WritListing,
} from './writs/writ.js'
export { shortWritId } from './writs/writ-ids.js'
