/** Below this, wrapping would leave nothing to read. */
const LEAST = 24

/** How wide a line may be: what the terminal has now, or anything where there is none. A full line makes some terminals wrap. */
export function room(): number {
  const { isTTY, columns } = process.stdout
  return isTTY === true && columns > 0 ? Math.max(LEAST, columns - 1) : Number.POSITIVE_INFINITY
}

/** A text in lines of that width, broken between words only: a longer word, such as a path, stays whole. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** Prints a paragraph. */
export function print(text: string): void {
  for (const line of text.split('\n')) console.log(wrapped(line, room()).join('\n'))
}

/** A text beside something, going on below its own beginning; or below that something, where there is too little room beside it. */
export function beside(before: string, indent: number, text: string): string[] {
  const width = room()
  if (before.length + text.length <= width) return [`${before}${text}`.trimEnd()]
  if (width - before.length >= LEAST * 2) {
    const [first = '', ...rest] = wrapped(text, width - before.length)
    return [`${before}${first}`, ...rest.map((line) => ' '.repeat(before.length) + line)]
  }
  const below = wrapped(text, Math.max(LEAST, width - indent)).map((line) => ' '.repeat(indent) + line)
  return [before.trimEnd(), ...below]
}
