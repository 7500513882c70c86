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
        ? `${where} is worked on natively, and bodies were asked of its plain queue: by a stream (QueueInlet), or by a work system ` +
            `that wraps the queue, pubsub or store of the backend (w.capabilities names which). Give a stream another ${apart}; give a ` +
            'work system the ports as they are.'
        : `${where} is used over plain ports: by a stream, or by a work system that wraps the queue, pubsub or store of the backend. ` +
            `Use another ${apart} for one of the two, or wrap none of these ports anywhere.`,
      { facts: { where, is, wanted } },
    )
  }
}
