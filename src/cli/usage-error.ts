import { MillraceError } from '../core/error.js'
import { closestName } from '../core/text/closest-name.js'

/** Wrong arguments. Nothing has been done; the message says what to type instead. */
export class UsageError extends MillraceError {
  /** The command whose help to show, if one was recognised. */
  readonly command: string | undefined
  constructor(message: string, command?: string) {
    super('USAGE', message)
    this.command = command
  }
}

/** ` Did you mean "x"?`, or nothing if no name is close. */
export function didYouMean(given: string, names: readonly string[]): string {
  const closest = closestName(given, names)
  return closest === undefined ? '' : ` Did you mean "${closest}"?`
}
