/**
 * SQL's LIKE: `%` is any run of characters, `_` one; ASCII letters match in either case, all others exactly. There is no
 * escape. Time grows with the product of both lengths at worst; no pattern makes it explode.
 */
export function isLike(text: string, pattern: string): boolean {
  const [chars, wanted] = [[...text], [...pattern]]
  let [at, next] = [0, 0]
  // Where the last % stood, and where the text went on after it: the place to come back to.
  let [mark, resume] = [-1, 0]
  while (at < chars.length) {
    const want = wanted[next]
    if (want === '%') {
      mark = next
      resume = at
      next += 1
    } else if (want !== undefined && (want === '_' || fold(want) === fold(chars[at]!))) {
      at += 1
      next += 1
    } else if (mark >= 0) {
      resume += 1
      at = resume
      next = mark + 1
    } else {
      return false
    }
  }
  while (wanted[next] === '%') next += 1
  return next === wanted.length
}

function fold(char: string): string {
  return char >= 'A' && char <= 'Z' ? char.toLowerCase() : char
}
