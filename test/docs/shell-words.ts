/** The words of a simple command line, as a shell hands them over: quotes are taken off, a comment and a pipe end it. */
export function wordsOf(line: string): readonly string[] {
  const words: string[] = []
  for (const [word] of line.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)) {
    if (word === '|' || word.startsWith('#')) break
    words.push(word.replace(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''))
  }
  return words
}
