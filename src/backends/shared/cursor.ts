import { MillraceError } from '../../core/error.js'

/** What a cursor says, as the groups of `form`. Undefined: the call starts at the beginning. `call` names it in the error. */
export function readCursor(call: string, cursor: string | undefined, form: RegExp): RegExpExecArray | undefined {
  if (cursor === undefined) return undefined
  const read = form.exec(cursor)
  if (read !== null) return read
  throw new MillraceError(
    'BAD_CURSOR',
    `${call}({ cursor }): "${cursor}" is not a cursor. Pass the \`next\` of the last page.`,
  )
}

/** For lists that go down from the newest: the number below which the next page starts. */
export function readNumberCursor(call: string, cursor: string | undefined): number {
  const read = readCursor(call, cursor, /^\d{1,16}$/)
  return read === undefined ? Number.MAX_SAFE_INTEGER : Number(read[0])
}
