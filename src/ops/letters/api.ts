import type { FailureClass } from '../../core/failure/failure.js'
import type { At } from '../../core/time/time.js'
import type { Actor } from '../api.js'

/** The dead letters of streams: what people and tools can ask of them and do with them. */
export interface LetterOps {
  /** What streams have dead-lettered on a queue, oldest first, page by page. Items that died are in `list`. */
  letters(query?: LetterQuery): Promise<LetterPage>
  /** One dead letter with its body; `undefined` when the queue has none with that id. */
  letter(id: string, where?: { readonly queue?: string }): Promise<LetterReport | undefined>
  /** Puts dead letters back on their queue, with their headers and ids: they run again from attempt 1. */
  redriveLetters(what: LetterSelector, by: LetterActionOptions): Promise<LetterActionReport>
  /** Removes dead letters completely. */
  discardLetters(what: LetterSelector, by: LetterActionOptions): Promise<LetterActionReport>
}

/** Options of an action on dead letters. */
export interface LetterActionOptions extends Actor {
  /** Only counts. */
  readonly dryRun?: boolean
  /** How many letters one step moves. Default 500. */
  readonly pageSize?: number
  /** Called after every page. */
  readonly onProgress?: (report: LetterActionReport) => void
  /** Stops it after the current page. */
  readonly signal?: AbortSignal
}

/** Which dead letters. */
export interface LetterFilter {
  /** Default: `default`. */
  readonly queue?: string
  readonly class?: FailureClass
  readonly subject?: string
  /** Part of the error, upper and lower case alike. */
  readonly error?: string
  /** Dead-lettered before then. */
  readonly before?: At
}

/** Options of `letters`. */
export interface LetterQuery extends LetterFilter {
  readonly limit?: number
  /** Of the page before. */
  readonly cursor?: string
}

/** One by id, or all that match. An empty query means all of the queue. */
export type LetterSelector = ({ readonly id: string } & Pick<LetterFilter, 'queue'>) | LetterFilter

/** A dead letter in a list. The error is its first line, passed through `redact`; bodies are not shown. */
export interface ListedLetter {
  readonly id: string
  readonly queue: string
  readonly at: At
  readonly error: string
  /** Absent where no stream wrote it: `deadLetter` of a plain queue keeps a body and an error only. */
  readonly class?: FailureClass
  /** The same, as labels say it: `poison`, `invalid_for_state`, `retryable` (gave up). */
  readonly reason?: string
  readonly subject?: string
  /** Deliveries that ran. */
  readonly attempts?: number
  /** The hopper that gave it up. */
  readonly source?: string
}

/** One page of dead letters. */
export interface LetterPage {
  readonly letters: readonly ListedLetter[]
  /** Cursor of the next page. */
  readonly next?: string
}

/** One dead letter with what it carries. The value and the error have passed through `redact`, headers are shown as they are. */
export interface LetterReport extends ListedLetter {
  readonly value: string
  readonly headers: readonly { readonly key: string; readonly value: string }[]
  readonly key?: string
}

/** What an action on dead letters did. To go on after an interruption, repeat it: what it has moved no longer matches. */
export interface LetterActionReport {
  readonly id: string
  readonly verb: 'redrive' | 'discard'
  readonly queue: string
  readonly who: string
  readonly why: string
  readonly startedAt: At
  /** How many matched when it began. */
  readonly total: number
  readonly done: number
  /** How many were gone when it reached them. */
  readonly passed: number
  readonly state: 'running' | 'done' | 'stopped'
  /** Why it stopped early. */
  readonly because?: string
}
