import { type Facts, MillraceError } from '../../core/error.js'
import { describeValue } from '../../core/text/describe-value.js'

/** A document or a value in it that JSON cannot carry unchanged, or that one of the backends could not keep. */
export class StacksValueError extends MillraceError {
  /** Where in the value: `doc.items[3].at`. */
  readonly path: string
  constructor(path: string, problem: string, facts: Facts = {}) {
    super('STACKS_VALUE', `${path} ${problem}`, { facts: { path, ...facts } })
    this.path = path
  }
}

/** A name of an owner, a book, a field or a watcher that is not allowed. Nothing reached the backend. */
export class StacksNameError extends MillraceError {
  constructor(what: string, allowed: string, given: unknown) {
    super('STACKS_NAME', `${what} must be ${allowed}, got ${describeValue(given)}.`, {
      facts: { what, given: describeValue(given) },
    })
  }
}

/** A query that means nothing: an unknown operator, a value of the wrong type, an offset without a limit. */
export class StacksQueryError extends MillraceError {
  constructor(path: string, problem: string) {
    super('STACKS_QUERY', `${path} ${problem}`, { facts: { path } })
  }
}

/** A write to a book that was not declared. (Reading such a book gives nothing, without an error.) */
export class UnknownBookError extends MillraceError {
  constructor(ownerId: string, book: string) {
    super(
      'UNKNOWN_BOOK',
      `No book "${book}" of "${ownerId}" was declared. Contribute it under \`books\` of that plugin, or call declare().`,
      { facts: { ownerId, book } },
    )
  }
}

/** `patch` of a document that is not there. */
export class DocumentNotFoundError extends MillraceError {
  constructor(ownerId: string, book: string, id: string) {
    super(
      'DOCUMENT_NOT_FOUND',
      `There is no document ${describeValue(id)} in ${ownerId}/${book}. Use put() to create one.`,
      {
        facts: { ownerId, book, id },
      },
    )
  }
}

/** A write with `ifRev` met another revision: another call wrote in between. Nothing was changed. */
export class StaleWriteError extends MillraceError {
  /** The revision that is there now; null when the document is gone. */
  readonly rev: string | null
  constructor(ownerId: string, book: string, id: string, rev: string | null) {
    super(
      'STALE_WRITE',
      rev === null
        ? `${describeValue(id)} in ${ownerId}/${book} is gone, so the write was refused. Read it again and decide again.`
        : `${describeValue(id)} in ${ownerId}/${book} was changed meanwhile. Read it again and decide again.`,
      { facts: { ownerId, book, id } },
    )
    this.rev = rev
  }
}

/** The transaction will be rolled back, whatever is done now: a phase-1 handler or a nested transaction failed in it. */
export class TransactionDoomedError extends MillraceError {
  constructor(cause: unknown) {
    super(
      'TRANSACTION_DOOMED',
      'The transaction is rolled back because something inside it failed (see cause). Let that error through instead of ' +
        'catching it.',
      { cause },
    )
  }
}

/** An operation of a transaction that has already ended: somewhere an `await` is missing. */
export class TransactionClosedError extends MillraceError {
  constructor(what = 'transaction') {
    super(
      'TRANSACTION_CLOSED',
      `The ${what} that this operation belongs to has ended. Await the operation inside it, or start it with detached().`,
    )
  }
}

/** A write inside a transaction that was opened with `readOnly`. */
export class ReadOnlyTransactionError extends MillraceError {
  constructor() {
    super('TRANSACTION_READ_ONLY', 'The transaction was opened with readOnly: true. Leave that out to write in it.')
  }
}

/**
 * The database refused because another transaction was faster (a serialisation failure, a deadlock, a lock that took too
 * long), also after all its `retries`. Nothing was changed; the same transaction may succeed when it runs again.
 */
export class RetryableTransactionError extends MillraceError {
  constructor(cause: unknown) {
    super(
      'TRANSACTION_CONFLICT',
      'Another transaction wrote the same documents first; this one was rolled back. Run it again, or raise { retries } of ' +
        'transaction().',
      { cause },
    )
  }
}

/** The transaction, or what doomed it, lost against another one. */
export function isConflict(error: unknown): boolean {
  if (error instanceof RetryableTransactionError) return true
  return error instanceof Error && error.cause instanceof RetryableTransactionError
}

const REFUSALS = [
  StacksValueError,
  StacksNameError,
  StacksQueryError,
  UnknownBookError,
  DocumentNotFoundError,
  StaleWriteError,
]

/** The store refused what it was asked for, and the transaction is as it was. After any other error its state is not known. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.some((refusal) => error instanceof refusal)
}

/** Phase-1 handlers wrote, and triggered handlers that wrote, more than 16 levels deep. */
export class CascadeDepthError extends MillraceError {
  constructor(limit: number, ownerId: string, book: string) {
    super(
      'CASCADE_DEPTH',
      `Maximum cascade depth (${limit}) reached while writing to ${ownerId}/${book}: phase-1 handlers trigger each other. ` +
        'The transaction is rolled back.',
      { facts: { limit, ownerId, book } },
    )
  }
}

/** Phase-2 handlers wrote, and triggered handlers that wrote, more than 16 hops far. */
export class ReentryDepthError extends MillraceError {
  constructor(limit: number) {
    super(
      'REENTRY_DEPTH',
      `Phase-2 re-entry depth (${limit}) reached: post-commit handlers trigger each other. This write was refused; those ` +
        'before it stay.',
      { facts: { limit } },
    )
  }
}

/** `watch` after startup: a handler that comes late would have missed events. */
export class WatchClosedError extends MillraceError {
  constructor(ownerId: string, book: string) {
    super(
      'WATCH_CLOSED',
      `Watchers are registered during startup only, and startup has ended. Watch ${ownerId}/${book} in start().`,
      { facts: { ownerId, book } },
    )
  }
}

/** A durable name that belongs to a watcher of another book: taking it would leave that one without its events. */
export class WatcherTakenError extends MillraceError {
  constructor(name: string, { ownerId, book }: { readonly ownerId: string; readonly book: string }) {
    super(
      'WATCHER_TAKEN',
      `The durable watcher "${name}" is known in this store as one of ${ownerId}/${book}. Choose another name, or call ` +
        `forgetWatcher("${name}") first when no program watches ${ownerId}/${book} with it any more.`,
      { facts: { name, ownerId, book } },
    )
  }
}

/** A dead event that is not there, or was too large to be kept whole. */
export class DeadEventNotFoundError extends MillraceError {
  constructor(id: string, isThere: boolean) {
    super(
      'DEAD_EVENT_NOT_FOUND',
      isThere
        ? `The event of ${describeValue(id)} was too large to be kept, so it cannot be delivered again. Do by hand what its watcher would have done.`
        : `There is no dead event ${describeValue(id)}. deadEvents() lists them.`,
      { facts: { id } },
    )
  }
}

/** A dead event whose watcher this process does not have. */
export class NoHandlerError extends MillraceError {
  constructor(watcher: string) {
    super(
      'NO_HANDLER',
      `This process has no durable watcher "${watcher}". Deliver its dead events again in a process that registers it.`,
      { facts: { watcher } },
    )
  }
}

/** A call that would wait for the very transaction or handler that makes it. */
export class InsideTransactionError extends MillraceError {
  constructor(call: string, where: 'transaction' | 'handler') {
    super(
      'INSIDE_TRANSACTION',
      `${call} waits for transactions and handlers on their way, so inside a ${where} it would wait for itself. Call it ` +
        `when the ${where} has ended.`,
      { facts: { call, where } },
    )
  }
}

/** A detached write that is awaited inside the very transaction that keeps it waiting. */
export class DetachedDeadlockError extends MillraceError {
  constructor() {
    super(
      'DETACHED_DEADLOCK',
      'This transaction holds the only writer lock and awaits a detached write that needs it. Await it after the ' +
        'transaction, or write without detached().',
    )
  }
}

/** Processes that write to one store load different phase-1 watchers, so some writes would miss some handlers. */
export class WatcherMismatchError extends MillraceError {
  constructor(mine: string, theirs: string) {
    super(
      'WATCHER_MISMATCH',
      `Another process writes to this store with other phase-1 watchers (here: ${mine || 'none'}; there: ${theirs || 'none'}). ` +
        'Load the same plugins everywhere, wait until the others have stopped, or allow it with ' +
        "differentWatchers: 'allow' (under `stacks` in guild.json). A process that only posts writs needs none of them: use guildClient().",
      { facts: { mine, theirs } },
    )
  }
}

/** The store is closed. */
export class StacksClosedError extends MillraceError {
  constructor() {
    super('STACKS_CLOSED', 'The store is closed. Open it again to use it.')
  }
}
