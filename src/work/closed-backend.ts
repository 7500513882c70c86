import { MillraceError } from '../core/error.js'

/** The backend was closed: no repetition will be answered. */
export function isClosedBackend(error: unknown): boolean {
  return error instanceof MillraceError && /(^|_)CLOSED$/.test(error.code)
}
