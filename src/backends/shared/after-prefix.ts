const LAST = 0x10ffff
/** More than any name is long, where an index bounds names. */
const MANY = 300

/**
 * The end of a range in the order of code points, which is the order of bytes in UTF-8: every text that begins with the prefix is
 * at or after the prefix, and before this. The prefix must be well-formed, and not empty.
 */
export function afterPrefix(prefix: string): string {
  const points = [...prefix].map((one) => one.codePointAt(0)!)
  while (points.at(-1) === LAST) points.pop()
  const last = points.pop()
  // Nothing but the last code point: only longer runs of it come after.
  if (last === undefined) return prefix + String.fromCodePoint(LAST).repeat(MANY)
  // Surrogates are not code points of texts.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1)
}
