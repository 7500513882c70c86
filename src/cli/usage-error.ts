import { MillraceError } from '../core/error.js'

/** Wrong arguments. Nothing has been done; the message says what to type instead. */
export class UsageError extends MillraceError {
  /** The command whose help to show, if one was recognised. */
  readonly command: string | undefined
  constructor(message: string, command?: string) {
    super('USAGE', message)
    this.command = command
  }
}
