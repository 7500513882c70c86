import { MillraceError } from '../../core/error.js'

/** No guild has run on this store, so nothing is known of its writs. */
export class GuildNotStartedError extends MillraceError {
  constructor() {
    super(
      'GUILD_NOT_STARTED',
      'No process of a guild (of this version of millrace) has started on this store yet, so its writ types are not known. Start a worker on it once; then writs can be posted, also while none runs.',
    )
  }
}

/** The workers run plugins inside the transactions that write writs, which this process does not have. */
export class ClientWatchersError extends MillraceError {
  constructor(theirs: number, mine: number, plugins: readonly string[]) {
    super(
      'WATCHER_MISMATCH',
      `The workers of this guild run ${theirs} watchers in every transaction that writes a writ, and a client has the ${mine} of Clerk and Spider only. ` +
        `Their plugins are: ${plugins.join(', ')}. Write from a process that loads the plugin in question with createGuild(), ` +
        "or, where that plugin need not see what a client writes, pass differentWatchers: 'allow'.",
      { facts: { theirs, mine } },
    )
  }
}

/** There is no question with this id. */
export class QuestionNotFoundError extends MillraceError {
  constructor(id: string) {
    super('QUESTION_NOT_FOUND', `No engine has asked a question with the id ${id}. questions() lists the open ones.`, {
      facts: { id },
    })
  }
}

/** The question has been answered already, or is not waited for any more. The first answer stands. */
export class QuestionClosedError extends MillraceError {
  constructor(id: string, status: 'completed' | 'rejected', message: string | undefined) {
    const why =
      status === 'completed'
        ? 'was answered already, and the first answer stands'
        : `was withdrawn: ${message ?? 'no reason was given'}`
    super('QUESTION_CLOSED', `Question ${id} ${why}. questions() lists the open ones.`, { facts: { id, status } })
  }
}

/** What was asked of a writ does not apply to the phase that it is in. Nothing was changed. */
export class WrongPhaseError extends MillraceError {
  constructor(act: 'open' | 'cancel' | 'retry', id: string, phase: string, next: string) {
    const takes = {
      open: 'drafts',
      cancel: 'writs that have not ended',
      retry: 'writs that are stuck, or that wait for their next rig',
    }
    super('WRONG_PHASE', `${act} applies to ${takes[act]}, and writ ${id} is ${phase}. ${next}`, {
      facts: { act, id, phase },
    })
  }
}
