/**
 * The members of a JSON object, each as the text it was written in. A number keeps every digit that way (a JavaScript
 * number has 53 bits; a log position of a database has 64), and what is never read is not decoded.
 *
 * Throws what `JSON.parse` throws when the text is no JSON, and a `TypeError` when it is JSON but no object. Of a name that
 * occurs twice the last counts, as in `JSON.parse`.
 */
export function jsonMembers(text: string): ReadonlyMap<string, string> {
  // The parser has checked it: what follows need not look for mistakes.
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(
      `expected a JSON object, got ${value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value}`,
    )
  }
  const members = new Map<string, string>()
  let at = skipSpace(text, skipSpace(text, 0) + 1)
  while (text[at] !== '}') {
    const nameEnd = skipString(text, at)
    const name = JSON.parse(text.slice(at, nameEnd)) as string
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const end = skipValue(text, start)
    members.set(name, text.slice(start, end))
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return members
}

/** The value behind a member's text, with a number as it was written; `''` for what is absent or null. */
export function scalarText(raw: string | undefined): string {
  if (raw === undefined || raw === 'null') return ''
  return raw.startsWith('"') ? (JSON.parse(raw) as string) : raw
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\n\r'.includes(text[at]!)) at += 1
  return at
}

/** `from` is at the opening quote; the answer is behind the closing one. */
function skipString(text: string, from: number): number {
  let at = from + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function skipValue(text: string, from: number): number {
  let at = from
  let depth = 0
  do {
    const c = text[at]
    if (c === '"') at = skipString(text, at)
    else {
      if (c === '{' || c === '[') depth += 1
      if (c === '}' || c === ']') depth -= 1
      at += 1
    }
    // A number or a word ends where something else begins; everything else ends with its last bracket or quote.
    if (depth === 0 && isBare(c)) while (at < text.length && isBare(text[at])) at += 1
  } while (depth > 0)
  return at
}

function isBare(c: string | undefined): boolean {
  return c !== undefined && !'"{}[],: \t\n\r'.includes(c)
}
