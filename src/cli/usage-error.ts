import { closestName } from '../core/closest-name.js'
import { MillraceError } from '../core/error.js'

/** The person typed something that cannot be meant. Nothing has been done; the message says what to type instead. */
export class UsageError extends MillraceError {
  /** The command whose help would tell, where one was recognised. */
  readonly command: string | undefined
  constructor(message: string, command?: string) {
    super('USAGE', message)
    this.command = command
  }
}

/** ` Did you mean "x"?`, or nothing when no name is near. */
export function didYouMean(given: string, names: readonly string[]): string {
  const closest = closestName(given, names)
  return closest === undefined ? '' : ` Did you mean "${closest}"?`
}
