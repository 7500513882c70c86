import { MillraceError } from '../core/error.js'

/** How systems use the data of a backend: by its native ledger, or only by its plain ports. */
export type Mode = 'native' | 'plain'

/** The data are used in the other mode: a group would live in two books. */
export class WrongModeError extends MillraceError {
  /** `where` names the data (`The schema "shop"`), `apart` what would separate two systems (`schema`, `prefix`). */
  constructor(where: string, apart: string, is: Mode, wanted: Mode) {
    super(
      'WRONG_MODE',
      is === 'native'
        ? `${where} is worked on natively, but this system takes bodies from its plain queue: it wraps the queue, pubsub or store of ` +
            `the backend (w.capabilities names which). Give the ports as they are, or use another ${apart}.`
        : `${where} is worked on over plain ports, because a system there wraps the queue, pubsub or store of the backend. Wrap ` +
            `none of them anywhere, or use another ${apart}.`,
      { facts: { where, is, wanted } },
    )
  }
}
